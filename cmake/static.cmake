# SIDETRACK_STATIC: the program once more, of the same objects, as one file that needs nothing of the system that it runs on.
enable_language(C)
string(REPLACE x86_64 amd64 architecture ${CMAKE_SYSTEM_PROCESSOR})
string(REPLACE aarch64 arm64 architecture ${architecture})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS scripts/static-libraries)
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/static-libraries ${architecture}
  OUTPUT_VARIABLE libraries OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# libiptc. iptables' configure would write the header.
file(WRITE ${PROJECT_BINARY_DIR}/include/xtables-version.h "#define XTABLES_VERSION \"1.8.9\"\n")
add_library(static_iptc STATIC ${libraries}/iptables/libiptc/libip4tc.c ${libraries}/iptables/libiptc/libip6tc.c)
target_include_directories(static_iptc PRIVATE ${libraries}/iptables/include ${PROJECT_BINARY_DIR}/include)
target_compile_options(static_iptc PRIVATE -w -ffile-prefix-map=${libraries}/= -ffunction-sections -fdata-sections ${hardening})

add_executable(sidetrack_static $<TARGET_OBJECTS:sidetrack>)
set_target_properties(sidetrack_static PROPERTIES OUTPUT_NAME sidetrack RUNTIME_OUTPUT_DIRECTORY static)
# By file: the target libsidetrack brings shared libraries along.
add_dependencies(sidetrack_static libsidetrack)
target_link_libraries(sidetrack_static PRIVATE $<TARGET_FILE:libsidetrack> static_iptc -l:libnftnl.a -l:libyaml.a ${libraries}/libmnl.a Threads::Threads)
# Not beside -static-libstdc++ or -static-libgcc: with those g++ links libc as a shared library, but without a loader for it.
# lld keeps a bit for each relative relocation instead of 24 bytes, on every architecture, and equal functions and
# constants once: those of templates, above all. None of the program's is told from another by its address.
find_program(lld ld.lld REQUIRED)
# A compiler for another architecture looks for a linker of that one's name alone, but in this folder.
file(REAL_PATH ${lld} lld_itself)
cmake_path(GET lld_itself PARENT_PATH lld_folder)
set(static_link -static-pie -fuse-ld=lld -B${lld_folder} -Wl,-O2 -Wl,--gc-sections -Wl,--pack-dyn-relocs=relr -Wl,-z,relro,-z,now)
target_link_options(sidetrack_static PRIVATE ${static_link} -Wl,--icf=all -Wl,--ignore-data-address-equality)

if(TARGET sidetrack-injector)
  add_executable(sidetrack_injector_static $<TARGET_OBJECTS:sidetrack-injector>)
  set_target_properties(sidetrack_injector_static PROPERTIES OUTPUT_NAME sidetrack-injector RUNTIME_OUTPUT_DIRECTORY static)
  add_dependencies(sidetrack_injector_static libsidetrack)
  target_link_libraries(sidetrack_injector_static PRIVATE $<TARGET_FILE:libsidetrack> -l:libyaml.a -l:libssl.a -l:libcrypto.a Threads::Threads)
  target_link_options(sidetrack_injector_static PRIVATE ${static_link})
endif()
