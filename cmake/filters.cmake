# The filters of system calls, made by libseccomp for the architecture of the program: src/system/filters.py.
foreach(python python3 /usr/bin/python3) # that for which Debian's package is
  execute_process(COMMAND ${python} -c "import seccomp" RESULT_VARIABLE lacking OUTPUT_QUIET ERROR_QUIET)
  if(lacking EQUAL 0)
    set(python_with_seccomp ${python})
    break()
  endif()
endforeach()
if(NOT python_with_seccomp)
  message(FATAL_ERROR "Python's module seccomp is missing: install python3-seccomp (scripts/setup build)")
endif()

set(filters ${PROJECT_BINARY_DIR}/generated/system/seccomp_filters.h)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/system)
add_custom_command(OUTPUT ${filters}
  COMMAND ${python_with_seccomp} ${PROJECT_SOURCE_DIR}/src/system/filters.py ${CMAKE_SYSTEM_PROCESSOR} ${filters}
  DEPENDS ${PROJECT_SOURCE_DIR}/src/system/filters.py
  COMMENT "Making the filters of system calls")
target_sources(libsidetrack PRIVATE ${filters})
target_include_directories(libsidetrack PRIVATE ${PROJECT_BINARY_DIR}/generated)
