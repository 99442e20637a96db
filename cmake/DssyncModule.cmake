# Declares the parts of the project. Every list of files is explicit; tests/repository checks that no file is left out.

include(GNUInstallDirs)
if(DSSYNC_TESTS)
  include(GoogleTest)
endif()

# dssync_module(NAME
#   [INTERNAL]          not installed, and built only where something needs it
#   [RUNTIME]           part of the package's component `runtime`, which needs PyTorch
#   [TORCH]             its sources include PyTorch's headers; the tests run in one process, since loading PyTorch takes longer than most
#   [HEADERS file...]   public: installed, and compiled on their own where CMAKE_VERIFY_INTERFACE_HEADER_SETS is on
#   SOURCES file...     with the headers that only the project itself includes
#   [DEPENDS target...] modules that the public headers include
#   [USES target...]    libraries that only the sources need
#   [TESTS file...]     unit tests, beside the sources
#   [TEST_USES target...])
#
# A static library `dssync_NAME`, called `dssync::NAME` by those who use it, and its unit tests `dssync_NAME_test`: each case
# is a test of ctest, or all together are one.
function(dssync_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INTERNAL;RUNTIME;TORCH" "" "HEADERS;SOURCES;DEPENDS;USES;TESTS;TEST_USES")
  add_library(dssync_${name} STATIC ${arg_SOURCES})
  add_library(dssync::${name} ALIAS dssync_${name})
  set_target_properties(dssync_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(dssync_${name} PUBLIC cxx_std_20)
  target_link_libraries(dssync_${name} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_USES} $<BUILD_INTERFACE:dssync_flags>)
  dssync_join_sources(dssync_${name})
  if(arg_TORCH)
    target_precompile_headers(dssync_${name} REUSE_FROM dssync_torch_headers)
  endif()
  if(arg_INTERNAL)
    set_target_properties(dssync_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  else()
    target_sources(
      dssync_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated
                                               FILES ${arg_HEADERS})
    if(arg_RUNTIME)
      install(TARGETS dssync_${name} EXPORT dssync-runtime-targets FILE_SET HEADERS)
    else()
      install(TARGETS dssync_${name} EXPORT dssync-targets FILE_SET HEADERS)
    endif()
  endif()
  if(DSSYNC_TESTS AND arg_TESTS)
    dssync_program(dssync_${name}_test
      SOURCES ${arg_TESTS} USES dssync_${name} ${arg_TEST_USES} GTest::gmock GTest::gtest_main)
    target_compile_definitions(dssync_${name}_test PRIVATE DSSYNC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    if(arg_TORCH)
      target_precompile_headers(dssync_${name}_test REUSE_FROM dssync_torch_headers)
      add_test(NAME ${name} COMMAND dssync_${name}_test)
      set_tests_properties(${name} PROPERTIES TIMEOUT 900 COST 500)
    else()
      gtest_discover_tests(dssync_${name}_test DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300)
    endif()
  endif()
endfunction()

# dssync_program(NAME [TORCH] SOURCES file... USES target...): an executable that is compiled as the modules are.
function(dssync_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;USES")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_USES} dssync_flags)
  dssync_join_sources(${name})
  if(arg_TORCH)
    target_precompile_headers(${name} REUSE_FROM dssync_torch_headers)
  endif()
endfunction()

# dssync_join_sources(TARGET): with DSSYNC_UNITY, the compiler reads so many sources at once, and the headers that they share once.
function(dssync_join_sources target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${DSSYNC_UNITY} UNITY_BUILD_BATCH_SIZE ${DSSYNC_UNITY_BATCH})
endfunction()
