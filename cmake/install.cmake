# What `cmake --install` installs: the program as the component `runtime`; the library, with what pkg-config and
# find_package(sidetrack) read, as `development`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME runtime)
if(SIDETRACK_STATIC)
  set(installed sidetrack_static)
else()
  set(installed sidetrack)
endif()
install(TARGETS ${installed} RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
# Of a build of some targets alone it may be missing.
if(TARGET sidetrack-injector)
  install(TARGETS sidetrack-injector RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT injector OPTIONAL)
endif()
# The drop-in forms: links by which the program is istio-iptables and istio-clean-iptables.
foreach(name istio-iptables istio-clean-iptables)
  file(CREATE_LINK sidetrack ${PROJECT_BINARY_DIR}/${name} SYMBOLIC)
  install(FILES ${PROJECT_BINARY_DIR}/${name} DESTINATION ${CMAKE_INSTALL_SBINDIR})
endforeach()
# The licence, and those of what the program has in it, as Debian says them.
set(copyright "")
foreach(package gcc-12-base libc6-dev libnftnl-dev libmnl-dev libip4tc-dev libyaml-dev libcli11-dev libfmt-dev libspdlog-dev
    nlohmann-json3-dev)
  if(EXISTS /usr/share/doc/${package}/copyright)
    file(READ /usr/share/doc/${package}/copyright text)
    string(APPEND copyright "\n---- Parts of the program are from Debian's ${package}:\n\n${text}")
  endif()
endforeach()
file(READ LICENSE text)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/copyright CONTENT "@text@@copyright@" @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The manual page and the completions, which share.cmake lays out.
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR})

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sidetrack-dev RENAME copyright)
set(for_cmake ${CMAKE_INSTALL_LIBDIR}/cmake/sidetrack)
set(for_pkg_config ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(configured ${PROJECT_BINARY_DIR}/install)

install(DIRECTORY include/sidetrack ${PROJECT_BINARY_DIR}/include/sidetrack DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN *.h)
set_target_properties(libsidetrack PROPERTIES EXPORT_NAME sidetrack)
install(TARGETS libsidetrack EXPORT sidetrack ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT sidetrack NAMESPACE sidetrack:: FILE sidetrackTargets.cmake DESTINATION ${for_cmake})
configure_package_config_file(cmake/sidetrackConfig.cmake.in ${configured}/sidetrackConfig.cmake
  INSTALL_DESTINATION ${for_cmake} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${configured}/sidetrackConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${configured}/sidetrackConfig.cmake ${configured}/sidetrackConfigVersion.cmake DESTINATION ${for_cmake})

# Paths relative to the file itself: the tree may be moved.
file(RELATIVE_PATH pkg_config_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pkg_config_to_prefix ${pkg_config_to_prefix})
configure_file(cmake/sidetrack.pc.in ${configured}/sidetrack.pc @ONLY)
install(FILES ${configured}/sidetrack.pc DESTINATION ${for_pkg_config})
