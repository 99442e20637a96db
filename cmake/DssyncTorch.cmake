# PyTorch as one target, `dssync_torch`: headers as system headers, libtorch with c10d and Gloo.
#
# The package's own targets bring compiler flags for everything that links them; what is needed is named here instead.

if(DSSYNC_PYTHON_PACKAGE)
  # The PyTorch that the interpreter has, also while pip hides it from builds (-I: as if pip had not set PYTHONPATH).
  execute_process(
    COMMAND ${DSSYNC_PYTHON} -I -c "import torch; print(torch.utils.cmake_prefix_path)"
    OUTPUT_VARIABLE torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_is_missing)
  if(torch_is_missing)
    message(FATAL_ERROR "${DSSYNC_PYTHON} has no PyTorch: install it first (pip install torch)")
  endif()
  # Debian's is with the other packages of the system instead. The libraries of another one must not come first.
  list(PREPEND CMAKE_PREFIX_PATH ${torch_prefix})
  list(PREPEND CMAKE_LIBRARY_PATH ${torch_prefix}/../../lib)
endif()
find_package(Torch REQUIRED)

add_library(dssync_torch INTERFACE)
add_library(dssync::torch ALIAS dssync_torch)
set_target_properties(dssync_torch PROPERTIES EXPORT_NAME torch)
target_link_libraries(dssync_torch INTERFACE torch)
if(Torch_VERSION VERSION_LESS 2)
  find_library(DSSYNC_GLOO gloo)  # Debian packages Gloo apart; PyTorch's own builds contain it
  if(DSSYNC_GLOO)
    target_link_libraries(dssync_torch INTERFACE gloo)
  endif()
else()
  target_compile_definitions(dssync_torch INTERFACE FMT_HEADER_ONLY)  # it brings {fmt}'s headers without the library
endif()
install(TARGETS dssync_torch EXPORT dssync-runtime-targets)

# Most of the time to compile a source that uses PyTorch goes into its headers, so they are compiled once for all modules.
set(nothing ${PROJECT_BINARY_DIR}/generated/torch_headers.cc)
file(CONFIGURE OUTPUT ${nothing} CONTENT "")
add_library(dssync_torch_headers OBJECT EXCLUDE_FROM_ALL ${nothing})
target_link_libraries(dssync_torch_headers PRIVATE dssync_torch dssync_flags)
target_precompile_headers(
  dssync_torch_headers PRIVATE <ATen/ATen.h> <torch/csrc/distributed/c10d/ProcessGroup.hpp> <torch/nn/module.h>
                               <torch/optim/optimizer.h>)
