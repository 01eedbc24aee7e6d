// Loading networks from ONNX files. Needs the component `onnx` (collage::onnx), which reads them with protobuf.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/io/onnx/lowering.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::onnx {

/// The operator sets that every rule was written for. Older ones are refused; newer ones are tried.
inline constexpr std::int64_t oldest_opset = 7, newest_opset = 22;

/// An input whose extents are given.
struct bound_shape {
  std::string input;
  shape dims;
};
/// An input that becomes a constant before anything else is decided: its value may fix a shape. The contents are copied
/// while loading.
struct bound_value {
  std::string input;
  const_tensor_view contents;
};

struct load_options {
  std::vector<bound_shape> shapes = {};
  std::vector<bound_value> values = {};
  /// Rules of the user's own, tried before the built-in ones.
  std::span<const lowering_rule> rules = {};
  /// A constant that loading would compute, and whose bytes are more, stays a node, unless its operands are as large.
  std::size_t largest_folded = std::size_t{16} << 20;
  /// Bytes of constants and, by itself, nodes: what loading may make out of the file before it gives up. Loops that are
  /// unrolled and tensors filled by a number can ask for any amount.
  std::size_t most_bytes = std::size_t{1} << 36;
  std::size_t most_nodes = 1000000;
};

/// What loading found besides the network.
struct load_report {
  std::int64_t opset = 0;
  std::string producer;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< the model's own, as in the file
  std::vector<std::string> notes;  ///< sentences worth telling: an operator set newer than we know, symbols bound
};

/// Reads a model, binds its inputs, and lowers it onto our operators; constants filled by rule are left to
/// `fill_constants`. Errors: a file that is no model; inputs whose extents are not known, all in one message with the
/// option that binds them; everything that is not supported, all in one message with each node's name, operator, opset,
/// types and attributes.
graph load(const std::string& file, const load_options& options = {}, load_report* report = nullptr);

/// The operators that have a rule here, "Conv" or "com.microsoft.Gelu", sorted.
std::vector<std::string> supported_operators();

}  // namespace collage::inline v0::onnx
