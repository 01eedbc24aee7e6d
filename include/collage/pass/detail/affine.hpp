// Nodes that scale and shift a tensor channel by channel: the effect of one node, and of several together.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/graph/graph.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/pass/rewrite.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace collage::inline v0::detail {

/// y = scale x + shift, with one scale and one shift for every channel.
struct affine {
  std::vector<double> scale, shift;

  static affine identity(std::size_t channels) {
    return {std::vector<double>(channels, 1.0), std::vector<double>(channels, 0.0)};
  }
  bool scales() const { return differs(scale, 1.0); }
  bool shifts() const { return differs(shift, 0.0); }
  bool is_finite() const {
    for (const std::vector<double>* list : {&scale, &shift})
      for (const double number : *list)
        if (!std::isfinite(number)) return false;
    return true;
  }

 private:
  static bool differs(const std::vector<double>& list, double from) {
    for (const double number : list)
      if (number != from) return true;
    return false;
  }
};

/// First `inner`, then `outer`.
inline affine compose(const affine& outer, const affine& inner) {
  affine both = inner;
  for (std::size_t i = 0; i < both.scale.size(); ++i) {
    both.scale[i] = outer.scale[i] * inner.scale[i];
    both.shift[i] = outer.scale[i] * inner.shift[i] + outer.shift[i];
  }
  return both;
}

/// Where the channels of a tensor lie. An axis beyond its rank means that there is a single channel.
struct channel_axis {
  std::size_t axis = std::numeric_limits<std::size_t>::max();
  std::int64_t channels = 1;
};

/// The elements of a floating-point constant that is loaded.
inline std::vector<double> elements_of(const graph& network, std::uint32_t constant) {
  std::vector<double> list(static_cast<std::size_t>(network.type_of(constant).dims.elements()));
  load_elements(network.type_of(constant).type, network.bytes_of(constant).data(), std::span<double>(list));
  return list;
}

/// The number that a constant has for each channel of a tensor of rank `rank` to which the constant is broadcast.
/// Nothing where the value is not constant, not loaded, or differs within a channel.
inline std::optional<std::vector<double>> per_channel(const graph& network, std::uint32_t value, std::size_t rank,
                                                      channel_axis where) {
  const value_record& v = network.at(value);
  if (v.role != value_role::constant || network.constant(value).bytes == nullptr || v.type.rank() > rank) return {};
  for (std::size_t d = 0; d < v.type.rank(); ++d) {
    const bool along = rank - v.type.rank() + d == where.axis && v.type.dims[d] == where.channels;
    if (v.type.dims[d] != 1 && !along) return {};
  }
  std::vector<double> list = elements_of(network, value);
  if (list.size() == 1) list.assign(static_cast<std::size_t>(where.channels), list[0]);
  return list;
}

/// The effect of a node on its operand `data`, if the node scales and shifts the channels by finite constants.
inline std::optional<affine> affine_of(const graph& network, std::uint32_t node, std::uint32_t data,
                                       channel_axis where) {
  const bool add = is_kind(network, node, ops::add), sub = is_kind(network, node, ops::sub);
  const bool mul = is_kind(network, node, ops::mul), div = is_kind(network, node, ops::div);
  const bool neg = is_kind(network, node, ops::neg);
  if (!add && !sub && !mul && !div && !neg) return {};
  const tensor_type& type = network.type_of(data);
  const std::span<const std::uint32_t> operands = network.view().inputs_of(node);
  if (!is_floating(type.type) || network.type_of(network.view().output_of(node)) != type) return {};

  affine step = affine::identity(static_cast<std::size_t>(where.channels));
  if (neg) {
    std::fill(step.scale.begin(), step.scale.end(), -1.0);
    return step;
  }
  const bool first = operands[0] == data;
  const auto constant = per_channel(network, operands[first ? 1 : 0], type.rank(), where);
  if (!constant || (div && !first)) return {};
  for (std::size_t i = 0; i < step.scale.size(); ++i) {
    const double c = (*constant)[i];
    if (mul) step.scale[i] = c;
    else if (div) step.scale[i] = 1 / c;
    else step.shift[i] = sub && first ? -c : c;
    if (sub && !first) step.scale[i] = -1;
  }
  if (!step.is_finite()) return {};
  return step;
}

}  // namespace collage::inline v0::detail
