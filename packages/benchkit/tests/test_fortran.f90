! The Fortran module: outside a job its calls do nothing, and say so.
! SPDX-License-Identifier: Apache-2.0 OR MIT
program test_fortran
    use joulemark
    implicit none
    type(joulemark_energy) :: energy
    logical :: taken
    character(16) :: padded = "solve"

    taken = .true.
    call joulemark_region_begin(padded, taken)
    if (taken) stop 1
    energy%energy_uj = 7
    taken = .true.
    call joulemark_region_end(padded, energy, taken)
    if (taken .or. energy%energy_uj /= 0) stop 1
    call joulemark_region_end("never begun")
end program test_fortran
