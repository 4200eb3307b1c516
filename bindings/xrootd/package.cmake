# The package byname-xrootd: plug-in, the library that it needs, example configuration.
include(GNUInstallDirs)
set(libraries /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
# The library lies in a folder of the package's own until it has a package of its own.
set(own ${libraries}/byname-xrootd)

set_target_properties(plugin PROPERTIES
  BUILD_RPATH "$ORIGIN"
  INSTALL_RPATH "$ORIGIN/byname-xrootd")
install(TARGETS plugin LIBRARY DESTINATION ${libraries})
install(PROGRAMS ${BYNAME_LIBRARY} DESTINATION ${own} RENAME libbyname.so.1)
install(FILES package/xrootd-byname.cfg.example DESTINATION /etc/xrootd)
install(FILES ${BYNAME_ROOT}/docs/xrootd.md DESTINATION /usr/share/doc/byname-xrootd)
install(FILES ${BYNAME_ROOT}/LICENSE-MIT ${BYNAME_ROOT}/LICENSE-APACHE
  DESTINATION /usr/share/doc/byname-xrootd)

file(STRINGS ${BYNAME_ROOT}/Cargo.toml version REGEX "^version = " LIMIT_COUNT 1)
string(REGEX REPLACE "version = \"(.*)\"" "\\1" version "${version}")
execute_process(COMMAND dpkg --print-architecture OUTPUT_VARIABLE architecture
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME byname-xrootd)
set(CPACK_PACKAGE_VERSION ${version})
set(CPACK_PACKAGE_CONTACT "the byname project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Storage plug-in for xrootd that serves files by name")
set(CPACK_PACKAGE_DESCRIPTION
  "Clients of XRootD read what is published by name, verified against its publisher's signature.")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_FILE_NAME byname-xrootd_${version}_${architecture}.deb)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "xrootd-server (>= 5.5), xrootd-server (<< 6)")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_CURRENT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_CURRENT_SOURCE_DIR}/package/postinst ${CMAKE_CURRENT_SOURCE_DIR}/package/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)
include(CPack)
