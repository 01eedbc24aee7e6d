# collage_find_onednn(PREFIX): oneDNN 3 from PREFIX or from the usual places; sets dnnl_FOUND and DNNL::dnnl.
# Used by the build and by the installed package alike.
macro(collage_find_onednn prefix)
  # The package files of oneDNN 3.2 ask for CMake 2.6's policies, which CMake 4 refuses without this.
  set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
  find_package(dnnl 3 CONFIG QUIET HINTS "${prefix}")
  unset(CMAKE_POLICY_VERSION_MINIMUM)
  if(dnnl_FOUND AND NOT "${DNNL_CPU_THREADING_RUNTIME}" STREQUAL "OMP")
    # A build on TBB or its own threads would fight with the one OpenMP team that everybody else shares.
    message(STATUS "collage: the oneDNN in ${dnnl_DIR} runs on ${DNNL_CPU_THREADING_RUNTIME}, not OpenMP, and is not used")
    set(dnnl_FOUND FALSE)
  endif()
endmacro()
