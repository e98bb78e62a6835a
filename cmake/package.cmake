# What `cmake --install` installs, and the Debian package that scripts/package makes of it with CPack.
include(GNUInstallDirs)

if(SIDETRACK_STATIC)
  set(installed sidetrack_static)
else()
  set(installed sidetrack)
endif()
install(TARGETS ${installed} RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
# The drop-in form: a link by which the program is istio-iptables.
file(CREATE_LINK sidetrack ${PROJECT_BINARY_DIR}/istio-iptables SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/istio-iptables DESTINATION ${CMAKE_INSTALL_SBINDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
# The manual page and the completions, which share.cmake lays out.
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Sidetrack <sidetrack@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
if(SIDETRACK_STATIC)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${architecture})
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # Depends: is computed
endif()
set(CPACK_PACKAGE_DESCRIPTION "A drop-in for istio-iptables: programs the netfilter rules of a service mesh in a pod's network
 namespace through nf_tables or libiptc, atomically, and explains them.")
include(CPack)
