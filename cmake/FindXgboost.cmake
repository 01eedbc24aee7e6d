# Finds XGBoost: its header folder and the file of the shared library, not a library to link. It is opened when the first cost model
# is needed, so that nothing that is linked with collage needs it.
#
#   Xgboost_FOUND, Xgboost_INCLUDE_DIR (holds xgboost/c_api.h), Xgboost_LIBRARY (the file to open), Xgboost_VERSION
find_path(Xgboost_INCLUDE_DIR xgboost/c_api.h DOC "The folder that holds xgboost/c_api.h")
find_library(Xgboost_LIBRARY NAMES libxgboost.so.0 xgboost DOC "libxgboost.so.0")
mark_as_advanced(Xgboost_INCLUDE_DIR Xgboost_LIBRARY)

set(Xgboost_VERSION "")
if(Xgboost_INCLUDE_DIR AND EXISTS "${Xgboost_INCLUDE_DIR}/xgboost/version_config.h")
  file(STRINGS "${Xgboost_INCLUDE_DIR}/xgboost/version_config.h" found REGEX "define XGBOOST_VER_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" found "${found}")
  string(REPLACE ";" "." Xgboost_VERSION "${found}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Xgboost REQUIRED_VARS Xgboost_LIBRARY Xgboost_INCLUDE_DIR VERSION_VAR Xgboost_VERSION)
