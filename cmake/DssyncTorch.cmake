# PyTorch as one target, `dssync_torch`: headers as system headers, libtorch with c10d and Gloo.
#
# The package's own targets bring compiler flags for everything that links them; what is needed is named here instead.

find_package(Torch REQUIRED)
find_library(DSSYNC_GLOO gloo)  # Debian packages Gloo apart; PyTorch's own builds contain it

add_library(dssync_torch INTERFACE)
add_library(dssync::torch ALIAS dssync_torch)
set_target_properties(dssync_torch PROPERTIES EXPORT_NAME torch)
target_link_libraries(dssync_torch INTERFACE torch)
if(DSSYNC_GLOO)
  target_link_libraries(dssync_torch INTERFACE gloo)
endif()
install(TARGETS dssync_torch EXPORT dssync-runtime-targets)

# dssync_precompile_torch(TARGET...): most of the time to compile a source that uses PyTorch goes into its headers.
function(dssync_precompile_torch)
  foreach(target ${ARGV})
    if(TARGET ${target})
      target_precompile_headers(${target} PRIVATE <ATen/ATen.h> <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>)
    endif()
  endforeach()
endfunction()
