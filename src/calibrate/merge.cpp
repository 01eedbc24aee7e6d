#include "parts.hpp"

#include <collage/calibrate/merge.hpp>
#include <collage/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace collage::inline v0 {
namespace {

error other(const std::string& what) { return {error_kind::invalid_argument, what, "ranges", "calibrate again"}; }

/// Adds the numbers of b to those of a, which has `samples` samples, value by value.
void add_to(graph_ranges& a, const graph_ranges& b, std::uint64_t samples) {
  const auto name = [](const value_range& v) { return v.name; };
  const auto place = [](const body_ranges& r) { return std::pair(r.node, r.which); };
  if (!std::ranges::equal(a.values, b.values, {}, name, name) ||
      !std::ranges::equal(a.bodies, b.bodies, {}, place, place))
    throw other("are of networks with other values");
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    value_range& to = a.values[i];
    const value_range& from = b.values[i];
    if ((to.numbers == nullptr) != (from.numbers == nullptr))
      throw other("do not agree whether " + to.name + " is constant");
    if (to.numbers == nullptr) continue;
    const auto all = std::make_shared<value_histogram>(*to.numbers);
    all->merge(*from.numbers);
    to.numbers = all;
    if (to.bad_sample == 0 && from.bad_sample != 0) {
      to.bad_sample = samples + from.bad_sample;
      to.is_nan = from.is_nan;
    }
  }
  for (std::size_t i = 0; i < a.bodies.size(); ++i) add_to(a.bodies[i].inside, b.bodies[i].inside, samples);
}

void choose_in(graph_ranges& in, const range_origin& made_by) {
  for (value_range& v : in.values)
    if (v.numbers != nullptr) detail::choose_numbers(v, *v.numbers, made_by);
  detail::share_ranges(in);
  for (body_ranges& b : in.bodies) choose_in(b.inside, made_by);
}

std::size_t fewest_in(const graph_ranges& in) {
  std::size_t fewest = value_histogram::most_bins;
  for (const value_range& v : in.values)
    if (v.numbers != nullptr) fewest = std::min(fewest, v.numbers->bins());
  for (const body_ranges& b : in.bodies) fewest = std::min(fewest, fewest_in(b.inside));
  return fewest;
}

/// The smallest and the largest number of a constant.
interval span_of(const graph& network, std::uint32_t value) {
  const std::span<const std::byte> bytes = network.bytes_of(value);
  const std::span<const float> list(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
  const auto [low, high] = std::ranges::minmax(list);
  return {low, high};
}

/// Constants that passes compute may differ in their last bits from those of another machine.
bool are_close(interval a, interval b) {
  const float most = std::max({std::abs(a.low), std::abs(a.high), std::abs(b.low), std::abs(b.high)});
  constexpr float tolerance = 1e-5F;
  return std::abs(a.low - b.low) <= tolerance * most && std::abs(a.high - b.high) <= tolerance * most;
}

void check_in(const graph& network, const graph_ranges& in, const std::string& where) {
  for (const value_range& v : in.values) {
    if (v.value >= network.values().size() || network.value_name(v.value) != v.name ||
        network.type_of(v.value).type != dtype::f32)
      throw error(error_kind::invalid_argument, "has a range for " + v.name + ", which the network does not have",
                  where, "calibrate this network");
    const auto axis = static_cast<std::size_t>(std::max(v.how.axis, 0));
    if (v.how.axis >= 0 && (axis >= network.type_of(v.value).dims.size() ||
                            network.type_of(v.value).dims[axis] != static_cast<std::int64_t>(v.how.scales.size())))
      throw error(error_kind::invalid_argument, "has a wrong number of scales for " + v.name, where,
                  "calibrate this network");
    if (network.at(v.value).role != value_role::constant || !v.has_numbers() ||
        network.constant(v.value).bytes == nullptr)
      continue;
    if (!are_close(span_of(network, v.value), v.seen))
      throw error(error_kind::invalid_argument, "was made for other weights: those of " + v.name + " differ", where,
                  "calibrate this network");
  }
  for (const body_ranges& b : in.bodies) {
    if (b.node >= network.nodes().size() || b.which >= network.bodies_of(b.node).size())
      throw error(error_kind::invalid_argument, "has ranges of a subgraph that the network does not have", where,
                  "calibrate this network");
    check_in(*network.bodies_of(b.node)[b.which], b.inside, where);
  }
}

}  // namespace

network_ranges merged(const network_ranges& a, const network_ranges& b) {
  if (a.fingerprint != b.fingerprint)
    throw other("are of different networks (" + a.network + " and " + b.network + ")");
  if (a.made_by.per_channel != b.made_by.per_channel) throw other("have weights per channel in only one of them");
  if (a.made_by.is_random != b.made_by.is_random) throw other("come from random numbers in only one of them");
  network_ranges all = a;
  add_to(all.top, b.top, a.made_by.samples);
  all.made_by.samples += b.made_by.samples;
  choose_again(all, a.made_by.method, a.made_by.schema, a.made_by.percentile);
  return all;
}

std::size_t fewest_bins(const network_ranges& in) { return fewest_in(in.top); }

void choose_again(network_ranges& ranges, range_method method, quantisation_schema schema, double percentile) {
  constexpr std::size_t enough = 128;
  if (method != range_method::minmax && fewest_bins(ranges) < enough)
    throw error(error_kind::invalid_argument,
                std::string("have no histograms, which the method ") + name_of(method) + " needs", "ranges",
                "choose the method minmax");
  ranges.made_by.method = method;
  ranges.made_by.schema = schema;
  ranges.made_by.percentile = percentile;
  choose_in(ranges.top, ranges.made_by);
}

void check_ranges(const graph& network, const network_ranges& ranges, const std::string& where) {
  if (ranges.fingerprint != network.fingerprint())
    throw error(error_kind::invalid_argument, "was made for another network (" + ranges.network + ")", where,
                "calibrate this network");
  check_in(network, ranges.top, where);
}

}  // namespace collage::inline v0
