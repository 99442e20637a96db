# Found by find_package(dssync). The modules are static libraries, so what they use must be there to link with.
include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(yaml-cpp)
include(${CMAKE_CURRENT_LIST_DIR}/dssync-targets.cmake)
