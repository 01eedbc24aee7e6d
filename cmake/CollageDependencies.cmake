# Looks for the third parties. A missing optional one is a smaller build and one sentence, unless it was asked for.
#
# Sets COLLAGE_HAS_<PART> for EIGEN, OPENBLAS, ONEDNN, OPENVINO, CUDA, STACKED, JIT, PLACE, IO, ONNX and XGBOOST.

# OpenMP is not optional: all host code shares one team of threads.
find_package(OpenMP QUIET COMPONENTS CXX)
if(NOT OpenMP_CXX_FOUND)
  message(FATAL_ERROR "collage needs OpenMP, which ${CMAKE_CXX_COMPILER} does not offer: use g++, or install libomp "
                      "for clang.")
endif()
find_package(Threads REQUIRED)

# collage_part(PART found sentence): decides about one optional part.
function(collage_part part found sentence)
  set(has OFF)
  if(found)
    set(has ON)
  elseif(COLLAGE_WITH_${part} STREQUAL "AUTO")
    string(TOLOWER "${part}" name)
    message(STATUS "collage: without ${name}: ${sentence}")
  elseif(COLLAGE_WITH_${part})
    message(FATAL_ERROR "COLLAGE_WITH_${part} is ON, but ${sentence}")
  endif()
  set(COLLAGE_HAS_${part} ${has} PARENT_SCOPE)
endfunction()

set(found OFF)
if(COLLAGE_WITH_EIGEN)
  find_package(Eigen3 3.4 QUIET NO_MODULE)
  set(found ${Eigen3_FOUND})
endif()
collage_part(EIGEN "${found}" "Eigen 3.4 was not found (Debian and Ubuntu: libeigen3-dev).")

set(found OFF)
if(COLLAGE_WITH_OPENBLAS)
  find_package(OpenBLASOpenMP QUIET)
  set(found ${OpenBLASOpenMP_FOUND})
endif()
collage_part(OPENBLAS "${found}" "OpenBLAS's OpenMP build was not found (Debian and Ubuntu: libopenblas-openmp-dev).")

set(found OFF)
if(COLLAGE_WITH_ONEDNN)
  include(CollageFindOneDNN)
  collage_find_onednn("${COLLAGE_DEPS}/onednn")
  set(found ${dnnl_FOUND})
endif()
collage_part(ONEDNN "${found}" "oneDNN 3 for GNU OpenMP was not found in ${COLLAGE_DEPS}/onednn (tools/setup fetches it).")

set(found OFF)
set(missing "OpenVINO from 2025 on was not found in ${COLLAGE_DEPS}/openvino (tools/setup fetches it).")
if(COLLAGE_WITH_OPENVINO AND COLLAGE_SANITIZE MATCHES "address")
  set(missing "its threads open a library with RTLD_DEEPBIND, which the address sanitizer does not allow.")
elseif(COLLAGE_WITH_OPENVINO)
  # Its package takes no version but those of its own year.
  find_package(OpenVINO QUIET CONFIG COMPONENTS Runtime HINTS "${COLLAGE_DEPS}/openvino/cmake")
  if(OpenVINO_FOUND AND OpenVINO_VERSION VERSION_GREATER_EQUAL 2025)
    set(found ON)
  endif()
endif()
collage_part(OPENVINO "${found}" "${missing}")
unset(missing)

# CUDA's headers are seen, and its libraries are opened while the program runs: a build needs neither a device nor a driver.
set(found OFF)
if(COLLAGE_WITH_CUDA)
  find_package(CudaHeaders 12.0 QUIET)
  set(found ${CudaHeaders_FOUND})
endif()
collage_part(CUDA "${found}" "the headers of CUDA 12 or newer were not found: name the toolkit's folder in the environment variable CUDA_HOME.")

set(found OFF)
if(COLLAGE_WITH_STACKED)
  find_package(hwy 1.0 QUIET NO_MODULE)
  set(found ${hwy_FOUND})
endif()
collage_part(STACKED "${found}" "Highway 1.0 was not found (Debian and Ubuntu: libhwy-dev).")

# Generated code, and its portable replica on Highway. Xbyak is headers alone, without a package file.
set(found OFF)
if(COLLAGE_WITH_JIT)
  find_package(Xbyak 6.0 QUIET)
  find_package(hwy 1.0 QUIET NO_MODULE)
  if(Xbyak_FOUND AND hwy_FOUND AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(found ON)
  endif()
endif()
collage_part(JIT "${found}" "Xbyak 6 and Highway 1.0 were not both found, or this is not x86-64 (Debian and Ubuntu: libxbyak-dev, libhwy-dev).")

set(found OFF)
if(COLLAGE_WITH_PLACE)
  if(POLICY CMP0167)
    cmake_policy(SET CMP0167 NEW)  # Boost's own package file, not CMake's retired FindBoost
  endif()
  find_package(Boost 1.74 QUIET)
  find_package(SQLite3 3.31 QUIET)
  find_package(nlohmann_json 3.10 QUIET)
  if(Boost_FOUND AND SQLite3_FOUND AND nlohmann_json_FOUND)
    set(found ON)
  endif()
endif()
collage_part(PLACE "${found}" "Boost's headers from 1.74, SQLite from 3.31 and nlohmann-json from 3.10 were not all found (Debian 12: libboost1.81-dev, Ubuntu: libboost-dev; both: libsqlite3-dev, nlohmann-json3-dev).")

set(found OFF)
if(COLLAGE_WITH_IO)
  find_package(nlohmann_json 3.10 QUIET)
  set(found ${nlohmann_json_FOUND})
endif()
collage_part(IO "${found}" "nlohmann-json 3.10 was not found (Debian and Ubuntu: nlohmann-json3-dev).")

set(found OFF)
if(COLLAGE_WITH_ONNX)
  find_package(OnnxProto QUIET)
  set(found ${OnnxProto_FOUND})
endif()
collage_part(ONNX "${found}" "ONNX's messages for protobuf were not found (Debian and Ubuntu: libonnx-dev and libprotobuf-dev).")

# As with CUDA, XGBoost's header is seen, and the library is opened while the program runs.
set(found OFF)
if(COLLAGE_WITH_XGBOOST)
  find_package(Xgboost 1.7 QUIET)
  set(found ${Xgboost_FOUND})
endif()
collage_part(XGBOOST "${found}" "XGBoost 1.7 was not found, so that configurations are ranked by closed forms alone (Debian and Ubuntu: libxgboost-dev).")
unset(found)

# The program, the tests and the examples need both.
if(COLLAGE_BUILD_PROGRAM OR COLLAGE_BUILD_TESTS OR COLLAGE_BUILD_EXAMPLES)
  if(NOT (COLLAGE_HAS_PLACE AND COLLAGE_HAS_IO))
    message(FATAL_ERROR "the program, the tests and the examples need the components place and io: install Boost's "
                        "headers, SQLite and nlohmann-json (tools/setup does), or configure with -DCOLLAGE_BUILD_PROGRAM=OFF "
                        "-DCOLLAGE_BUILD_TESTS=OFF -DCOLLAGE_BUILD_EXAMPLES=OFF.")
  endif()
endif()
