# What `find_package(dssync)` finds after an install: the targets dssync::base, dssync::topology, dssync::codec, dssync::discovery, dssync::planner,
# dssync::monitor and dssync::launch; `find_package(dssync COMPONENTS runtime)` also dssync::runtime, which needs PyTorch.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dssync)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dssync-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/dssync-config.cmake ${PROJECT_BINARY_DIR}/dssync-config-version.cmake DESTINATION ${package_dir})
install(EXPORT dssync-targets NAMESPACE dssync:: DESTINATION ${package_dir})
if(DSSYNC_TORCH)
  install(EXPORT dssync-runtime-targets NAMESPACE dssync:: DESTINATION ${package_dir})
endif()
