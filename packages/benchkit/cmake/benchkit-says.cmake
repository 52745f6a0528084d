# Runs a command; its exit status must be STATUS and its output match SAYS. See benchkit_says().
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
#   cmake -DSTATUS=0 -DSAYS=REGEX -P benchkit-says.cmake -- PROGRAM [ARGUMENT...]

set(command)
set(after FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(after)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(after TRUE)
  endif()
endforeach()
execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said
                ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE)
if(NOT status STREQUAL STATUS)
  message(SEND_ERROR "exit status ${status}, not ${STATUS}")
endif()
if(NOT said MATCHES "${SAYS}")
  message(SEND_ERROR "the output does not match: ${SAYS}")
endif()
