// Loading networks from ONNX files. Needs the component `onnx` (collage::onnx), which reads them with protobuf.
#pragma once

#include <array>
#include <collage/graph/graph.hpp>
#include <collage/io/onnx/lowering.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {

template <auto Kind>
constexpr const kind_info* kind_with_onnx_name() {
  using K = std::remove_cv_t<decltype(Kind)>;
  static_assert(operator_kind<K>, "onnx::kinds<...> lists operator kinds: constants whose types derive from kind");
  static_assert(has_onnx_name<K>,
                "a kind that models are read with needs its name in ONNX: "
                "static constexpr onnx_name onnx{domain, operator}");
  return &kind_of<K>;
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0::onnx {

/// The user's operator kinds, for `load_options::kinds`: `load(file, {.kinds = onnx::kinds<my::snake, my::spread>})`.
template <auto... Kind>
inline constexpr std::array<const kind_info*, sizeof...(Kind)> kinds = {detail::kind_with_onnx_name<Kind>()...};

/// The versions of ONNX's operator set that all lowering rules support. Older versions are read as far as their
/// operators have not changed until the oldest here. Newer versions are tried.
inline constexpr std::int64_t oldest_opset = 7, newest_opset = 27;

/// The extents of an input. Those that are `unknown` stay open: they follow from a symbol that has an extent in another input, or a
/// session learns them (io/onnx/model_source.hpp).
struct bound_shape {
  std::string input;
  shape dims;
};
/// The contents of an input. It becomes a constant before any node is lowered, because its value may decide a shape. Loading
/// copies the contents.
struct bound_value {
  std::string input;
  const_tensor_view contents;
};

struct load_options {
  std::vector<bound_shape> shapes = {};
  std::vector<bound_value> values = {};
  /// The user's operator kinds. A node with the ONNX name of a kind (`kind::onnx`) becomes a node of that kind. Its inputs
  /// become the operands, and only the last ones may be left out. Its attributes are read by the names in the kind's `visit`.
  /// The file has an int for each bool, integer and enumeration, and a float for each double. It has ints for a shape, floats
  /// for a real_list and a string for a short_text. An attribute that the kind does not have is an error.
  std::span<const kind_info* const> kinds = {};
  /// The user's lowering rules. They are tried first, then `kinds`, the model's functions and the built-in rules.
  std::span<const lowering_rule> rules = {};
  /// Nodes whose operands are constants are computed while loading, if the result has at most this many bytes. A node with a
  /// larger result stays, unless its operands are as large as the result.
  std::size_t largest_folded = std::size_t{16} << 20;
  /// Loading gives up if it would make more bytes of constants, or more nodes. Unrolled loops and tensors filled with one
  /// number could need any amount.
  std::size_t most_bytes = std::size_t{1} << 36;
  std::size_t most_nodes = 1000000;
};

/// Facts about the model that are not in the network.
struct load_report {
  std::int64_t opset = 0;
  std::string producer;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< as in the file
  std::vector<std::string> notes;  ///< sentences for the user: a newer operator set, a bound symbol
};

/// Reads a model, binds its inputs, and lowers it to collage's operators. `fill_constants` fills constants that have a
/// generator. Throws for
/// - kinds without a name in ONNX, with the same name, or with the name of a built-in kind,
/// - a file that is no model,
/// - inputs whose extents are not known, all in one message with the option that binds them,
/// - all that is not supported, in one message with the name, operator, opset, types and attributes of each node.
graph load(const std::string& file, const load_options& options = {}, load_report* report = nullptr);
/// The same for a model in memory, which is only read. Errors name it `name`. Weights in other files cannot be found.
graph load(std::span<const std::byte> model, const std::string& name, const load_options& options = {},
           load_report* report = nullptr);

/// The operators that have a built-in rule, as "Conv" or "com.microsoft.Gelu", sorted.
std::vector<std::string> supported_operators();

}  // namespace collage::inline v0::onnx
