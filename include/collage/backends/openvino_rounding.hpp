// The values and weights that regions of OpenVINO round, in bfloat16 or in integers of 8 bits. They depend on the nodes of the region alone. So
// errors can be predicted without the library.
#pragma once

#include <algorithm>
#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/kind.hpp>
#include <collage/ops.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/run/views.hpp>
#include <collage/shape.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail {

/// Whether the library computes a node rightly in lower precision. 10,000 random convolutions showed where its kernels for AMX (2026.4)
/// err. Some have strides along rows and one place in a row. In others, pads are more than half a window, or the window is larger than
/// the image.
inline verdict openvino_rounds_rightly(const graph& network, std::uint32_t node) {
  const graph_view view = network.view();
  if (view.kind_id_of(node) != kind_id<struct ops::conv>) return {};
  const auto a = from_words<ops::conv_attributes>(view.words_of(node));
  const shape &x = network.type_of(view.inputs_of(node)[0]).dims, &w = network.type_of(view.inputs_of(node)[1]).dims,
              &y = network.type_of(view.output_of(node)).dims;
  const std::size_t last = a.strides.size() - 1;
  if (a.strides[last] > 1 && y[y.size() - 1] == 1)
    return {false, "openvino errs in lower precision where a window with strides has one place in a row"};
  for (std::size_t i = 0; i <= last; ++i) {
    const std::int64_t window = (w[i + 2] - 1) * a.dilations[i] + 1;
    if (2 * std::max(a.pads_begin[i], a.pads_end[i]) > window)
      return {false, "openvino errs in lower precision where pads are larger than half a window"};
    if (x[i + 2] < window) return {false, "openvino errs in lower precision where a window is larger than the image"};
  }
  return {};
}

/// The values that one region rounds.
class openvino_rounding {
 public:
  /// `scales` may be null: no value has one.
  openvino_rounding(const graph& network, const node_group& group, const value_scales* scales)
      : network_(network), view_(network_.view()), group_(group), scales_(scales) {}

  /// In an element type: bfloat16, or uint8 for integers of 8 bits.
  std::vector<rounded_value> all_to(dtype element) const {
    return element == dtype::bf16 ? in_bfloat16() : in_integers();
  }

  /// In bfloat16, the library stores every value and every weight. A value stays in float32 if the library fuses its only
  /// reader with the operator that computes it. Operators that only move numbers round nothing.
  std::vector<rounded_value> in_bfloat16() const {
    std::vector<rounded_value> list;
    for (const std::uint32_t v : group_.arguments) {
      const bool is_constant = network_.at(v).role == value_role::constant;
      if (is_float(v) && (!is_constant || is_weight(network_, v))) list.push_back({v, dtype::bf16});
    }
    for (const std::uint32_t n : group_.nodes) {
      const std::uint32_t v = view_.output_of(n);
      if (is_float(v) && !moves_or_picks(view_, n) && !is_fused(v)) list.push_back({v, dtype::bf16});
    }
    return sorted(std::move(list));
  }

  /// As integers of 8 bits, the model that the adapter builds has what convolutions, products, sums, means and maxima read. Values
  /// are uint8, and weights int8.
  std::vector<rounded_value> in_integers() const {
    std::vector<rounded_value> list;
    for (const std::uint32_t n : group_.nodes) {
      const std::vector<rounded_value> its = operands_of(n);
      list.insert(list.end(), its.begin(), its.end());
    }
    return sorted(std::move(list));
  }

  /// The operands of a node that it reads as integers. Empty: it reads float32.
  std::vector<rounded_value> operands_of(std::uint32_t node) const {
    const std::uint64_t kind = view_.kind_id_of(node);
    const auto in = view_.inputs_of(node);
    if (kind == kind_id<struct ops::conv> || kind == kind_id<struct ops::matmul>) {
      const bool is_product = kind == kind_id<struct ops::matmul>;
      // The library (2026.4) gives products with vectors results of another shape.
      const bool has_vector = network_.type_of(in[0]).dims.size() < 2 || network_.type_of(in[1]).dims.size() < 2;
      if (!has_scale(in[0]) || (is_product && has_vector)) return {};
      if (network_.at(in[1]).role == value_role::constant) {
        if (!is_float(in[1]) || (is_product && network_.type_of(in[1]).dims.size() != 2)) return {};
        return {{in[0], dtype::u8}, {in[1], dtype::i8}};
      }
      if (!is_product || !has_scale(in[1])) return {};
      return {{in[0], dtype::u8}, {in[1], dtype::u8}};
    }
    // The largest of a window is exact as an integer. So the convolution before it may write bytes.
    if (kind == kind_id<struct ops::average_pool> || kind == kind_id<struct ops::reduce_mean> ||
        kind == kind_id<struct ops::max_pool>) {
      if (!has_scale(in[0])) return {};
      return {{in[0], dtype::u8}};
    }
    return kind == kind_id<struct ops::add> ? summands_of(node) : std::vector<rounded_value>();
  }

 private:
  /// Where both are integers, the library adds inside the convolution that computes one of them.
  std::vector<rounded_value> summands_of(std::uint32_t node) const {
    const auto in = view_.inputs_of(node);
    const bool is_sum_of_values = in[0] != in[1] && network_.type_of(in[0]).dims == network_.type_of(in[1]).dims &&
                                  has_scale(in[0]) && has_scale(in[1]);
    if (!is_sum_of_values) return {};
    return {{in[0], dtype::u8}, {in[1], dtype::u8}};
  }
  /// Whether the library computes the only reader of a value together with it: an elementwise operator with what stands before it. It fuses the first operand that it can.
  bool is_fused(std::uint32_t value) const {
    const auto readers = view_.uses_of(value);
    if (readers.size() != 1 || !can_be_fused(value) || !group_.contains(readers[0].node)) return false;
    const auto in = view_.inputs_of(readers[0].node);
    const auto first = std::ranges::find_if(in, [&](std::uint32_t v) { return can_be_fused(v); });
    return is_elementwise(readers[0].node) && *first == value;
  }
  bool can_be_fused(std::uint32_t value) const {
    const std::int32_t producer = network_.at(value).producer;
    if (producer < 0 || !group_.contains(static_cast<std::uint32_t>(producer)) || network_.at(value).is_output ||
        view_.uses_of(value).size() != 1)
      return false;
    const auto node = static_cast<std::uint32_t>(producer);
    const std::uint64_t kind = view_.kind_id_of(node);
    return is_elementwise(node) || kind == kind_id<struct ops::conv> || kind == kind_id<struct ops::conv_transpose> ||
           kind == kind_id<struct ops::matmul>;
  }
  bool is_elementwise(std::uint32_t node) const { return network_.node(node).kind->body != nullptr; }
  bool is_float(std::uint32_t value) const { return network_.type_of(value).type == dtype::f32; }
  bool has_scale(std::uint32_t value) const {
    return is_float(value) && network_.at(value).role != value_role::constant && scales_ != nullptr &&
           scales_->of(value, dtype::u8).has_value();
  }
  static std::vector<rounded_value> sorted(std::vector<rounded_value> list) {
    std::ranges::sort(list);
    const auto repeated = std::ranges::unique(list);
    list.erase(repeated.begin(), repeated.end());
    return list;
  }

  const graph& network_;
  graph_view view_;
  const node_group& group_;
  const value_scales* scales_;
};

}  // namespace collage::inline v0::detail
