# Configures, builds and runs one consumer project. Its build folder is made anew, so that nothing of the last run, an
# older installation's paths above all, can make it pass.
#   -DSOURCE= -DBINARY= -DGENERATOR= -DBUILD_TYPE= -DCOMPILER= [-DLAUNCHER=] [-DPREFIX=] [-DCOLLAGE=] [-DRUN=] [-DARGUMENT=]
file(REMOVE_RECURSE "${BINARY}")
if(NOT LAUNCHER)
  set(LAUNCHER "")  # no compiler cache was found
endif()
execute_process(
  COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BINARY}" -G "${GENERATOR}" -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
          -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_PREFIX_PATH=${PREFIX}
          -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCOLLAGE=${COLLAGE} -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BINARY}" --parallel 2 COMMAND_ERROR_IS_FATAL ANY)
if(RUN)
  execute_process(COMMAND "${BINARY}/${RUN}" ${ARGUMENT} COMMAND_ERROR_IS_FATAL ANY)
endif()
