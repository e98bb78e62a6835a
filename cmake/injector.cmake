# sidetrack-injector, the admission webhook: a program of its own, by OpenSSL and Boost.Beast.
find_package(OpenSSL 3 QUIET COMPONENTS SSL Crypto)
find_package(Boost 1.81 QUIET)
if(NOT OPENSSL_FOUND OR NOT Boost_FOUND)
  message(STATUS "sidetrack-injector is not built: it needs OpenSSL 3 and Boost 1.81, which `scripts/setup injector` installs; "
    "-DSIDETRACK_INJECTOR=OFF says that it is not wanted")
  return()
endif()
file(GLOB injector_sources CONFIGURE_DEPENDS src/inject/injector/*.cc)
add_executable(sidetrack-injector ${injector_sources})
target_include_directories(sidetrack-injector PRIVATE src)
target_include_directories(sidetrack-injector SYSTEM PRIVATE ${Boost_INCLUDE_DIRS})
target_link_libraries(sidetrack-injector PRIVATE sidetrack_flags libsidetrack spdlog::spdlog_header_only
  CLI11::CLI11 nlohmann_json::nlohmann_json OpenSSL::SSL OpenSSL::Crypto ${yaml} Threads::Threads)
target_compile_options(sidetrack-injector PRIVATE $<$<CONFIG:Release>:-O2>)
if(NOT SIDETRACK_SANITIZE)
  target_link_options(sidetrack-injector PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections)
endif()
