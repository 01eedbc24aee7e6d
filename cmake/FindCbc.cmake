# COIN-OR's solver of integer programs, by its C interface: an oracle of the tests and a rival in the benchmarks. Its package
# has no CMake file. Gives Cbc::cbc. Named libraries instead of what its pkg-config file lists, which adds a second BLAS.
find_path(Cbc_INCLUDE_DIR coin/Cbc_C_Interface.h DOC "Folder that holds coin/Cbc_C_Interface.h")
find_library(Cbc_LIBRARY CbcSolver DOC "libCbcSolver.so")
mark_as_advanced(Cbc_INCLUDE_DIR Cbc_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Cbc REQUIRED_VARS Cbc_LIBRARY Cbc_INCLUDE_DIR)
if(Cbc_FOUND AND NOT TARGET Cbc::cbc)
  add_library(Cbc::cbc UNKNOWN IMPORTED)
  set_target_properties(Cbc::cbc PROPERTIES IMPORTED_LOCATION "${Cbc_LIBRARY}"
                                            INTERFACE_INCLUDE_DIRECTORIES "${Cbc_INCLUDE_DIR}")
endif()
