# Finds the headers of CUDA's driver and of cuBLAS, wherever they come from: a toolkit, or a wheel for Python.
#
# Sets CudaHeaders_INCLUDE_DIRS, CudaHeaders_VERSION, and CudaHeaders_LIBRARY_DIR, the folder of the libraries beside them if it
# has any. Not with FindCUDAToolkit, which wants a compiler.

set(hints "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" /usr/local/cuda)
find_path(CudaHeaders_DRIVER_DIR cuda.h HINTS ${hints} PATH_SUFFIXES include)
find_path(CudaHeaders_CUBLAS_DIR cublasLt.h HINTS ${hints} PATH_SUFFIXES include)
find_path(CudaHeaders_LIBRARY_DIR NAMES libcublasLt.so.13 libcublasLt.so.12 HINTS ${hints} PATH_SUFFIXES lib64 lib)
mark_as_advanced(CudaHeaders_DRIVER_DIR CudaHeaders_CUBLAS_DIR CudaHeaders_LIBRARY_DIR)

if(CudaHeaders_DRIVER_DIR)
  file(STRINGS "${CudaHeaders_DRIVER_DIR}/cuda.h" line REGEX "^#define CUDA_VERSION [0-9]+" LIMIT_COUNT 1)
  if(line MATCHES "([0-9]+)$")
    math(EXPR major "${CMAKE_MATCH_1} / 1000")
    math(EXPR minor "${CMAKE_MATCH_1} % 1000 / 10")
    set(CudaHeaders_VERSION "${major}.${minor}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaHeaders REQUIRED_VARS CudaHeaders_DRIVER_DIR CudaHeaders_CUBLAS_DIR
                                  VERSION_VAR CudaHeaders_VERSION)
set(CudaHeaders_INCLUDE_DIRS "${CudaHeaders_DRIVER_DIR}" "${CudaHeaders_CUBLAS_DIR}")
list(REMOVE_DUPLICATES CudaHeaders_INCLUDE_DIRS)
