# collage_build_info(FILE): writes a source file that says how this build was made, and with which libraries
# (tools/collage/build_info.hpp declares what it defines).
#
# Each library has a version as it was found here, a licence by its SPDX identifier, and how it gets into the program:
# "inside" (compiled in), "shared" (a shared object that is loaded with the program) or "opened" (when it is first needed).

# collage_build_library(NAME VERSION LICENCE HOW FOR): one line of the table.
macro(collage_build_library name version licence how use)
  string(APPEND collage_libraries "    {\"${name}\", \"${version}\", \"${licence}\", \"${how}\", \"${use}\"},\n")
endmacro()

function(collage_build_info file)
  set(collage_libraries "")
  if(COLLAGE_HAS_PLACE)
    collage_build_library(Boost "${Boost_VERSION_STRING}" BSL-1.0 inside "search and placing")
    collage_build_library(SQLite "${SQLite3_VERSION}" blessing shared "the store of costs")
  endif()
  if(COLLAGE_HAS_IO)
    collage_build_library(nlohmann-json "${nlohmann_json_VERSION}" MIT inside "plan files and JSON")
  endif()
  collage_build_library(CLI11 "${CLI11_VERSION}" BSD-3-Clause inside "the command line")
  if(COLLAGE_HAS_ONNX)
    set(onnx_version "")
    if(EXISTS "${OnnxProto_INCLUDE_DIR}/onnx/common/version.h")
      file(STRINGS "${OnnxProto_INCLUDE_DIR}/onnx/common/version.h" line REGEX "LAST_RELEASE_VERSION")
      string(REGEX REPLACE ".*\"(.*)\".*" "\\1" onnx_version "${line}")
    endif()
    collage_build_library(ONNX "${onnx_version}" Apache-2.0 shared "the format of models")
    collage_build_library(protobuf "${Protobuf_VERSION}" BSD-3-Clause shared "reading models")
  endif()
  if(COLLAGE_HAS_STACKED OR COLLAGE_HAS_JIT)
    collage_build_library(Highway "${hwy_VERSION}" "Apache-2.0 OR BSD-3-Clause" shared "backends stacked and jit")
  endif()
  if(COLLAGE_HAS_JIT)
    collage_build_library(Xbyak "${Xbyak_VERSION}" BSD-3-Clause inside "backend jit")
  endif()
  if(COLLAGE_HAS_EIGEN)
    collage_build_library(Eigen "${Eigen3_VERSION}" MPL-2.0 inside "backend eigen")
  endif()
  if(COLLAGE_HAS_OPENBLAS)
    collage_build_library(OpenBLAS "" BSD-3-Clause opened "backend openblas")
  endif()
  if(COLLAGE_HAS_ONEDNN)
    collage_build_library(oneDNN "${dnnl_VERSION}" Apache-2.0 shared "backend onednn")
  endif()
  if(COLLAGE_HAS_OPENVINO)
    collage_build_library(OpenVINO "${OpenVINO_VERSION}" Apache-2.0 opened "backend openvino")
  endif()
  if(COLLAGE_HAS_CUDA)
    collage_build_library(CUDA "${CudaHeaders_VERSION}" LicenseRef-NVIDIA-CUDA opened "backends cuda and cublas")
  endif()
  collage_build_library("OpenMP (${CMAKE_CXX_COMPILER_ID})" "${CMAKE_CXX_COMPILER_VERSION}"
                        "GPL-3.0-or-later WITH GCC-exception-3.1" shared "threads")

  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}" collage_flags)
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT [[// Written by cmake/CollageBuildInfo.cmake.
#include "collage/build_info.hpp"

namespace program {

const build_info the_build = {
    "@CMAKE_CXX_COMPILER_ID@ @CMAKE_CXX_COMPILER_VERSION@",
    "@CMAKE_SYSTEM_NAME@ @CMAKE_SYSTEM_PROCESSOR@",
    "@CMAKE_BUILD_TYPE@",
    "@collage_flags@",
    "@COLLAGE_ARCH_NAME@",
};

const std::vector<build_library>& build_libraries() {
  static const std::vector<build_library> list = {
@collage_libraries@  };
  return list;
}

}  // namespace program
]])
endfunction()
