// The model of a region, from the models of its operators (openvino_model.hpp), in float32 or with operands as integers of 8 bits.
#pragma once

#include <algorithm>
#include <collage/backends/impl/byte_weights.hpp>
#include <collage/backends/impl/openvino_model.hpp>
#include <collage/backends/openvino_rounding.hpp>
#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <openvino/openvino.hpp>
#include <openvino/opsets/opset13.hpp>
#include <string>
#include <vector>

namespace collage::inline v0::detail::openvino {
namespace {

/// Makes the model of a region. Its parameters are the group's arguments that are not constants, in their order. Its results are the
/// group's outputs.
///
/// With integers, a value that an operator reads as such passes through a FakeQuantize, and weights are int8 that are dequantised. The
/// library multiplies integers where it finds both (its low precision transformations).
class region_model {
 public:
  region_model(const node_group& group, const build_context& context, bool with_integers)
      : network_(context.network()),
        view_(network_.view()),
        group_(group),
        context_(context),
        quantised_(network_, group, with_integers ? context.scales() : nullptr) {}

  std::shared_ptr<ov::Model> model() {
    for (const std::uint32_t v : group_.arguments) add_argument(v);
    std::vector<ov_value> operands;
    for (const std::uint32_t n : group_.nodes) {
      const std::vector<rounded_value> rounded = quantised_.operands_of(n);
      operands.clear();
      for (const std::uint32_t v : view_.inputs_of(n)) {
        const auto its = std::ranges::find(rounded, v, &rounded_value::value);
        // A reshape's second operand may have a type that the model lacks; it is not read.
        const auto found = made_.find(v);
        operands.push_back(its != rounded.end()   ? in_integers(*its, n)
                           : found != made_.end() ? found->second
                                                  : ov_value());
      }
      made_[view_.output_of(n)] = converter_of(network_.node(n).kind->id)->convert({network_, n, operands});
    }
    ov::ResultVector results;
    for (const std::uint32_t v : group_.outputs) results.push_back(std::make_shared<op::Result>(made_.at(v)));
    return std::make_shared<ov::Model>(results, parameters_);
  }

 private:
  void add_argument(std::uint32_t v) {
    const tensor_type& type = network_.type_of(v);
    if (network_.at(v).role != value_role::constant) {
      parameters_.push_back(std::make_shared<op::Parameter>(type_of(type.type), shape_of(type.dims)));
      made_[v] = parameters_.back();
      return;
    }
    const auto bytes = network_.bytes_of(v);
    made_[v] = std::make_shared<op::Constant>(type_of(type.type), shape_of(type.dims), bytes.data(),
                                              std::const_pointer_cast<std::byte>(network_.constant(v).bytes));
  }

  /// An operand of a node as integers: those of a value are made once for all readers.
  ov_value in_integers(const rounded_value& one, std::uint32_t node) {
    if (one.element == dtype::i8) return weights(one.value, node);
    const auto [at, is_new] = integers_.try_emplace(one.value);
    if (is_new) {
      const integer_scale how = context_.scale_of(one.value, one.element);
      const auto [low, high] = integer_limits(one.element);
      const ov_value from = number(number_for(low, how)), to = number(number_for(high, how));
      constexpr std::size_t levels = 256;
      at->second = make<op::FakeQuantize>(made_.at(one.value), from, to, from, to, levels);
    }
    return at->second;
  }

  /// Weights as int8 with a scale for each filter or column, dequantised.
  ov_value weights(std::uint32_t value, std::uint32_t node) const {
    const shape& dims = network_.type_of(value).dims;
    const bool is_conv = view_.kind_id_of(node) == kind_id<struct ops::conv>;
    const bool has_rows = is_conv || from_words<ops::matmul_attributes>(view_.words_of(node)).transpose_b;
    const std::int64_t count = has_rows ? dims[0] : dims[1];
    const std::int64_t each = dims.elements() / std::max<std::int64_t>(count, 1);
    const auto* const contents = context_.constant<float>(value);
    const auto place = [&](std::int64_t part, std::int64_t i) { return has_rows ? part * each + i : i * count + part; };
    const std::vector<float> scales = scales_of_weights(
        count, each, "openvino-int8", [&](std::int64_t part, std::int64_t i) { return contents[place(part, i)]; });
    const auto fill = [&](std::byte* to) {
      for (std::int64_t part = 0; part < count; ++part)
        for (std::int64_t i = 0; i < each; ++i) {
          const std::int8_t n = rounded_weight(contents[place(part, i)], scales[static_cast<std::size_t>(part)]);
          std::memcpy(to + place(part, i), &n, 1);
        }
    };
    const auto bytes = context_.packed(value, has_rows ? "openvino int8 rows" : "openvino int8 columns",
                                       static_cast<std::size_t>(dims.elements()), fill);
    const auto integers = std::make_shared<op::Constant>(ov::element::i8, shape_of(dims), bytes.get(),
                                                         std::const_pointer_cast<std::byte>(bytes));
    ov::Shape broadcast(dims.size(), 1);
    broadcast[has_rows ? 0 : 1] = static_cast<std::size_t>(count);
    return make<op::Multiply>(make<op::Convert>(integers, ov::element::f32),
                              op::Constant::create(ov::element::f32, broadcast, scales));
  }

  const graph& network_;
  graph_view view_;
  const node_group& group_;
  const build_context& context_;
  openvino_rounding quantised_;
  std::map<std::uint32_t, ov_value> made_, integers_;  // by value
  ov::ParameterVector parameters_;
};

}  // namespace
}  // namespace collage::inline v0::detail::openvino
