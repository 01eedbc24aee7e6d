# Finds the OpenMP build of OpenBLAS: its header folder and the file of the shared library, not a library to link.
#
# The library is opened at run time by its full path, because its kernels are chosen while it loads and because the
# build on plain threads carries the same soname: whichever the loader finds first would win.
#
#   OpenBLASOpenMP_FOUND, OpenBLASOpenMP_INCLUDE_DIR (holds cblas.h), OpenBLASOpenMP_LIBRARY (the file to open),
#   OpenBLASOpenMP_FOLDER (where that file lies)
find_path(OpenBLASOpenMP_INCLUDE_DIR cblas.h
          PATH_SUFFIXES openblas-openmp "${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp"
          NO_CACHE)
# Without the suffix find_path would also take another BLAS's cblas.h.
if(OpenBLASOpenMP_INCLUDE_DIR AND NOT OpenBLASOpenMP_INCLUDE_DIR MATCHES "openblas-openmp")
  set(OpenBLASOpenMP_INCLUDE_DIR "OpenBLASOpenMP_INCLUDE_DIR-NOTFOUND")
endif()
find_library(OpenBLASOpenMP_LIBRARY NAMES libopenblas.so.0
             PATH_SUFFIXES openblas-openmp "${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp"
             NO_CACHE)
if(OpenBLASOpenMP_LIBRARY AND NOT OpenBLASOpenMP_LIBRARY MATCHES "openblas-openmp")
  set(OpenBLASOpenMP_LIBRARY "OpenBLASOpenMP_LIBRARY-NOTFOUND")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLASOpenMP
                                  REQUIRED_VARS OpenBLASOpenMP_LIBRARY OpenBLASOpenMP_INCLUDE_DIR)
cmake_path(GET OpenBLASOpenMP_LIBRARY PARENT_PATH OpenBLASOpenMP_FOLDER)
