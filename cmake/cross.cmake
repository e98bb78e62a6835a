# Toolchain for another architecture, with Debian's cross compiler and, for what the build runs, qemu:
#   cmake --preset PRESET --toolchain cmake/cross.cmake -DSIDETRACK_ARCHITECTURE=aarch64|s390x      needs scripts/setup cross-…
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SIDETRACK_ARCHITECTURE)
set(triple ${SIDETRACK_ARCHITECTURE}-linux-gnu)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${SIDETRACK_ARCHITECTURE})
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)
# The cross compiler's own libc and libstdc++ get no security updates; those of the architecture do, where they are installed.
if(EXISTS /usr/lib/${triple}/libc.a AND EXISTS /usr/lib/gcc/${triple}/12/libstdc++.a)
  foreach(folder /usr/lib/gcc/${triple}/12 /usr/lib/${triple})
    string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -B${folder} -L${folder}") # as link_folders() of scripts/program.sh
  endforeach()
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${SIDETRACK_ARCHITECTURE}-static)
set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST) # by qemu it takes long
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/${triple}/pkgconfig:/usr/share/pkgconfig)
