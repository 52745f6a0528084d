! Energy regions for Fortran programs: the calls of joulemark.h.
! SPDX-License-Identifier: Apache-2.0 OR MIT
!
!     use joulemark
!     call joulemark_region_begin("solve")
!     call solve()
!     call joulemark_region_end("solve")
!
! Compile this file with the program and link with libjoulemark. Names are trimmed on the right.
module joulemark
    use, intrinsic :: iso_c_binding, only: c_bool, c_char, c_double, c_int64_t, c_null_char
    implicit none
    private
    public :: joulemark_energy, joulemark_region_begin, joulemark_region_end

    ! What the caller's step was charged on this node between one begin and its end.
    type, bind(c) :: joulemark_energy
        integer(c_int64_t) :: energy_uj     ! microjoules
        real(c_double) :: uncertainty_uj    ! microjoules, coverage factor k=2
        real(c_double) :: seconds           ! between the marks
        integer(c_int64_t) :: samples       ! instrument readings inside the region
        logical(c_bool) :: estimated        ! from a model of the machine, not from an instrument
    end type joulemark_energy

    interface
        function c_begin(name) bind(c, name="joulemark_region_begin") result(taken)
            import :: c_bool, c_char
            character(kind=c_char), intent(in) :: name(*)
            logical(c_bool) :: taken
        end function c_begin

        function c_end(name) bind(c, name="joulemark_region_end") result(taken)
            import :: c_bool, c_char
            character(kind=c_char), intent(in) :: name(*)
            logical(c_bool) :: taken
        end function c_end

        function c_end_energy(name, energy) bind(c, name="joulemark_region_end_energy") result(known)
            import :: c_bool, c_char, joulemark_energy
            character(kind=c_char), intent(in) :: name(*)
            type(joulemark_energy), intent(out) :: energy
            logical(c_bool) :: known
        end function c_end_energy
    end interface

contains

    ! taken: the daemon has the mark; without one nothing happens.
    subroutine joulemark_region_begin(name, taken)
        character(*), intent(in) :: name
        logical, intent(out), optional :: taken
        logical :: ok

        ok = c_begin(trim(name) // c_null_char)
        if (present(taken)) taken = ok
    end subroutine joulemark_region_begin

    ! With energy, the call waits for the instruments, about 20 ms; taken: the energy is known.
    subroutine joulemark_region_end(name, energy, taken)
        character(*), intent(in) :: name
        type(joulemark_energy), intent(out), optional :: energy
        logical, intent(out), optional :: taken
        logical :: ok

        if (present(energy)) then
            ok = c_end_energy(trim(name) // c_null_char, energy)
        else
            ok = c_end(trim(name) // c_null_char)
        end if
        if (present(taken)) taken = ok
    end subroutine joulemark_region_end
end module joulemark
