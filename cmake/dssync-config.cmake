# Found by find_package(dssync). The modules are static libraries, so what they use must be there to link with.
include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(yaml-cpp)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/dssync-targets.cmake)

foreach(component ${dssync_FIND_COMPONENTS})
  if(component STREQUAL "runtime" AND EXISTS ${CMAKE_CURRENT_LIST_DIR}/dssync-runtime-targets.cmake)
    find_dependency(Torch)
    include(${CMAKE_CURRENT_LIST_DIR}/dssync-runtime-targets.cmake)
    set(dssync_runtime_FOUND TRUE)
  elseif(dssync_FIND_REQUIRED_${component})
    set(dssync_FOUND FALSE)
    set(dssync_NOT_FOUND_MESSAGE
        "component '${component}' is not part of this installation ('runtime' is, where it was built with PyTorch)")
  endif()
endforeach()
