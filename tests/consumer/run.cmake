# Installs the build in BUILD into a fresh prefix; then configures, builds and runs the projects in SOURCE against it.

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Every installed header must find whatever it includes; those of the runtime include PyTorch's.
function(consume name with_runtime)
  file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*.h)
  if(with_runtime)
    list(FILTER headers INCLUDE REGEX "/(comm|collective|live|sync)/")
  else()
    list(FILTER headers EXCLUDE REGEX "/(comm|collective|live|sync)/")
  endif()
  list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n")
  file(WRITE ${WORK}/${name}_headers.cc ${headers})
  run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${WORK}/${name} -D CMAKE_CXX_COMPILER=${COMPILER}
      -D CMAKE_PREFIX_PATH=${WORK}/prefix -D DSSYNC_WANTED=${VERSION} -D ALL_HEADERS=${WORK}/${name}_headers.cc
      -D WITH_RUNTIME=${with_runtime})
  run(${CMAKE_COMMAND} --build ${WORK}/${name})
  run(${WORK}/${name}/consumer)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
consume(plans OFF)
if(RUNTIME)
  consume(trains ON)
endif()
run(${WORK}/prefix/bin/dssync --version)
