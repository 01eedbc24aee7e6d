#include "parts.hpp"

#include <collage/calibrate/choose.hpp>
#include <collage/error.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/conv_transpose.hpp>
#include <collage/op/matmul.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace collage::inline v0::detail {
namespace {

/// How operators read a constant.
struct constant_role {
  bool is_weight = false;  ///< of a convolution or product
  bool is_bias = false;    ///< of a convolution: int32, by the scales of input and weights
  std::int32_t axis = -1;  ///< of the output channels; -1: none, or two readers differ
};

constant_role role_of_use(const graph& network, const use& by, std::uint32_t value) {
  const graph_view view = network.view();
  const std::uint64_t id = view.kind_id_of(by.node);
  const bool is_transposed_conv = id == kind_id<struct ops::conv_transpose>;
  if (is_transposed_conv || id == kind_id<struct ops::conv>) {
    if (by.operand == 2) return {.is_weight = false, .is_bias = true};
    if (by.operand == 1) return {.is_weight = true, .is_bias = false, .axis = is_transposed_conv ? 1 : 0};
  }
  if (id == kind_id<struct ops::matmul>) {
    const auto a = from_words<ops::matmul_attributes>(view.words_of(by.node));
    const auto rank = static_cast<std::int32_t>(network.type_of(value).dims.size());
    // Rows of the first operand and columns of the second are channels of the result.
    const bool is_last = by.operand == 0 ? a.transpose_a : !a.transpose_b;
    return {.is_weight = true, .is_bias = false, .axis = rank < 2 ? -1 : is_last ? rank - 1 : rank - 2};
  }
  return {};
}

constant_role role_of(const graph& network, std::uint32_t value) {
  constant_role all;
  bool is_first = true;
  for (const use& by : network.view().uses_of(value)) {
    const constant_role here = role_of_use(network, by, value);
    if (is_first) all = here;
    if (here.axis != all.axis) all.axis = -1;
    all.is_weight = all.is_weight && here.is_weight;
    all.is_bias = all.is_bias && here.is_bias;
    is_first = false;
  }
  return all;
}

std::span<const float> floats_of(const graph& network, std::uint32_t value) {
  const std::span<const std::byte> bytes = network.bytes_of(value);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

/// The range of a constant from its contents; they need no samples.
void range_constant(value_range& to, const graph& network, const constant_role& role, const range_origin& made_by) {
  const std::span<const float> contents = floats_of(network, to.value);
  for (const float x : contents)
    if (!std::isfinite(x)) {
      to.why = std::isnan(x) ? "has NaN" : "is infinite";
      return;
    }
  const auto [low, high] = std::ranges::minmax(contents);
  to.seen = {low + 0.0F, high + 0.0F};
  if (low == 0 && high == 0) {
    to.why = "is 0";
    return;
  }
  const float most = std::max(-low, high);
  if (role.is_weight) {
    to.kept = {-most, most};
    to.how = weight_quantisation(contents, network.type_of(to.value).dims, made_by.per_channel ? role.axis : -1);
  } else {
    to.kept = {std::min(low, 0.0F), std::max(high, 0.0F)};
    to.how = quantisation_of(to.kept, made_by.schema);
  }
}

}  // namespace

void choose_numbers(value_range& of, const value_histogram& seen, const range_origin& made_by) {
  of.seen = seen.seen();
  of.kept = {};
  of.how = {};
  of.why.clear();
  if (of.bad_sample != 0) {
    of.why = (of.is_nan ? "has NaN in sample " : "is infinite in sample ") + std::to_string(of.bad_sample);
  } else if (seen.count() == 0) {
    of.why = "is not computed in any sample";
  } else if (seen.zeros() == seen.count()) {
    of.why = "is 0 in all samples";
  } else {
    of.kept = chosen_range(seen, made_by.method, made_by.schema, made_by.percentile);
    of.how = quantisation_of(of.kept, made_by.schema);
  }
}

void share_ranges(graph_ranges& in) {
  for (value_range& v : in.values) {
    if (!v.same_as) continue;
    const value_range* const from = find_range(in, *v.same_as);
    if (from == nullptr) continue;
    v.seen = from->seen;
    v.kept = from->kept;
    v.how = from->how;
    v.why = from->why;
  }
}

graph_ranges ranges_of(const graph_watch& watched, const range_origin& made_by) {
  const graph& network = watched.network();
  graph_ranges made;
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    const value_record& r = network.at(v);
    if (!has_range(network, v)) continue;
    value_range range;
    range.value = v;
    range.name = network.value_name(v);
    if (r.role == value_role::constant) {
      const constant_role role = role_of(network, v);
      if (r.type.dims.elements() == 1 || role.is_bias) continue;
      range_constant(range, network, role, made_by);
    } else if (const observed_value* const seen = watched.find(v); seen != nullptr) {
      range.bad_sample = seen->bad_sample;
      range.is_nan = seen->is_nan;
      range.numbers = seen->numbers;
      choose_numbers(range, *seen->numbers, made_by);
    } else {
      range.same_as = origin_of(network, v);
    }
    made.values.push_back(std::move(range));
  }
  share_ranges(made);
  for (const graph_watch::owned_body& b : watched.bodies())
    made.bodies.push_back({b.node, b.which, ranges_of(*b.inside, made_by)});
  return made;
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

std::int32_t weight_axis(const graph& network, std::uint32_t value) {
  const detail::constant_role role = detail::role_of(network, value);
  return role.is_weight ? role.axis : -1;
}

}  // namespace collage::inline v0
