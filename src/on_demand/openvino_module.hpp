// The interface of the OpenVINO module (libcollage_openvino_module.so): a table of the adapter's functions under one C
// symbol.
//
// The functions take and return C++ types, so the module and the program must come from the same build. The table identifies the
// module's build.
#pragma once

#include <array>
#include <collage/backend.hpp>
#include <collage/fwd.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

struct openvino_module {
  const char* version;
  const char* compiler;
  std::array<std::size_t, 10> sizes;
  verdict (*takes)(const graph& network, std::uint32_t node);
  verdict (*joins)(const graph& network, std::uint32_t node);
  kernel (*build)(const node_group& group, build_context& context);
  kernel (*build_bf16)(const node_group& group, build_context& context);
  kernel (*build_int8)(const node_group& group, build_context& context);
  probe_result (*probe)();
  probe_result (*probe_bf16)();
  probe_result (*probe_int8)();
};

// These identify a build.
inline constexpr const char* module_version = COLLAGE_VERSION;
inline constexpr const char* module_compiler = __VERSION__;
inline constexpr std::array<std::size_t, 10> module_sizes = {
    sizeof(graph),        sizeof(kernel),      sizeof(node_group), sizeof(build_context), sizeof(node_record),
    sizeof(value_record), sizeof(tensor_type), sizeof(kind_info),  sizeof(probe_result),  sizeof(openvino_module)};

inline constexpr const char* openvino_module_file = "libcollage_openvino_module.so";
inline constexpr const char* openvino_module_symbol = "collage_openvino";

}  // namespace collage::inline v0::detail
