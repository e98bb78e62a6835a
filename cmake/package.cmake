# The Debian packages that scripts/package makes with CPack of what install.cmake installs: sidetrack, sidetrack-dev.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Sidetrack <sidetrack@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME sidetrack)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME sidetrack-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libip4tc-dev, libip6tc-dev, libnftnl-dev, libmnl-dev, pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "The library of Sidetrack, a drop-in for istio-iptables: headers and a static library.")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON) # Depends: is computed
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "A drop-in for istio-iptables: programs the netfilter rules of a service mesh in a pod's network
 namespace through nf_tables or libiptc, atomically, and explains them.")
include(CPack)
