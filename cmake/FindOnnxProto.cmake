# Finds ONNX's messages for protobuf: the format of its files, and nothing else of ONNX. Used by the build and by the
# installed package alike.
#
#   OnnxProto_FOUND, OnnxProto::onnx_proto (the library, its headers and protobuf)
find_path(OnnxProto_INCLUDE_DIR onnx/onnx-ml.pb.h NO_CACHE)
find_library(OnnxProto_LIBRARY NAMES onnx_proto NO_CACHE)
# CMake's own module does not know what newer versions of protobuf rest on; their package files do.
find_package(Protobuf QUIET CONFIG)
if(NOT TARGET protobuf::libprotobuf)
  find_package(Protobuf 3.12 QUIET MODULE)
endif()
if(TARGET protobuf::libprotobuf)
  set(OnnxProto_PROTOBUF protobuf::libprotobuf)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OnnxProto REQUIRED_VARS OnnxProto_LIBRARY OnnxProto_INCLUDE_DIR OnnxProto_PROTOBUF)

if(OnnxProto_FOUND AND NOT TARGET OnnxProto::onnx_proto)
  add_library(OnnxProto::onnx_proto UNKNOWN IMPORTED)
  # ONNX_ML: the package has the one of two sets of messages that knows functions and maps.
  set_target_properties(OnnxProto::onnx_proto PROPERTIES
                        IMPORTED_LOCATION "${OnnxProto_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${OnnxProto_INCLUDE_DIR}"
                        INTERFACE_COMPILE_DEFINITIONS ONNX_ML=1
                        INTERFACE_LINK_LIBRARIES protobuf::libprotobuf)
endif()
