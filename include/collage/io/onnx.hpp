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

/// Kinds of the user's own for `load_options::kinds`: `load(file, {.kinds = onnx::kinds<my::snake, my::spread>})`.
template <auto... Kind>
inline constexpr std::array<const kind_info*, sizeof...(Kind)> kinds = {detail::kind_with_onnx_name<Kind>()...};

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
  /// Kinds of the user's own: a node that has the name of one (`kind::onnx`) becomes a node of that kind. Its inputs are
  /// the operands, where only the last may be left out; its attributes are read by the names in the kind's `visit`: an int
  /// as bool, integer or enumeration, a float as double, ints as shape, floats as real_list, a string as short_text.
  /// What a kind does not know is an error.
  std::span<const kind_info* const> kinds = {};
  /// Rules of the user's own. Of several that know a node's operator, the first of these takes it: these rules, `kinds`,
  /// the model's own functions, the built-in rules.
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
/// `fill_constants`. Errors: kinds without a name in ONNX, of one name, or named as a built-in one; a file that is no
/// model; inputs whose extents are not known, all in one message with the option that binds them; everything that is not
/// supported, all in one message with each node's name, operator, opset, types and attributes.
graph load(const std::string& file, const load_options& options = {}, load_report* report = nullptr);

/// The operators that have a rule here, "Conv" or "com.microsoft.Gelu", sorted.
std::vector<std::string> supported_operators();

}  // namespace collage::inline v0::onnx
