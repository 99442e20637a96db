# How everything is compiled: the language, the warnings, the sanitizers. The functions of DssyncModule apply it.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(dssync_flags INTERFACE)
# Programs are compiled as libraries are (-fPIC), because both share precompiled headers (DssyncTorch).
target_compile_options(dssync_flags INTERFACE -fPIC)
# GCC 12 warns of overlapping copies in plain `"text" + std::string` (its bug 105651), so that one warning is off.
target_compile_options(
  dssync_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                         $<$<BOOL:${DSSYNC_WERROR}>:-Werror>)
if(DSSYNC_UNITY)
  # GCC takes a source that is joined with others for a header, in which a type of an anonymous namespace would be a mistake.
  target_compile_options(dssync_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

if(DSSYNC_SANITIZE)
  target_compile_options(
    dssync_flags INTERFACE -fsanitize=${DSSYNC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(dssync_flags INTERFACE -fsanitize=${DSSYNC_SANITIZE})
endif()
