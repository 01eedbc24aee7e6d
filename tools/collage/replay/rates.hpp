// A roofline from the records of a table: the best rates that its backends reach.
#pragma once

#include "published_costs.hpp"
#include "shape_rules.hpp"

#include <collage/error.hpp>
#include <collage/place/roofline.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace program::replay {

/// The size of an element: the published networks are float32.
inline constexpr double element_bytes = 4;

namespace detail {

/// The call that a record of one operator measured; nothing if the record does not say enough. A record of dense lacks
/// the width, and a record of concatenate the number of fields. Both are taken from the network's call with the same
/// shape and attributes.
inline std::optional<operator_call> measured_call(const cost_record& r, std::span<const operator_call> calls) {
  if (r.operators.size() != 1 || r.data.empty()) return std::nullopt;
  if (r.operators[0].name == "nn.dense" || r.operators[0].name == "concatenate") {
    const auto same = std::ranges::find_if(calls, [&](const operator_call& c) {
      return c.op == r.operators[0].name && c.shapes[0] == r.data && c.attributes == r.operators[0].attributes;
    });
    return same == calls.end() ? std::nullopt : std::optional(*same);
  }
  operator_call c;
  c.op = r.operators[0].name;
  c.attributes = r.operators[0].attributes;
  c.shapes = {r.data};
  if (c.op == "nn.conv2d" || c.op == "nn.conv3d") {
    const extents* channels = find(c.attributes, "channels");
    const extents* groups = find(c.attributes, "groups");
    const extents* kernel = find(c.attributes, "kernel_size");
    if (channels == nullptr || groups == nullptr || kernel == nullptr || r.data.size() != kernel->size() + 2)
      return std::nullopt;
    if (channels->size() != 1 || groups->size() != 1 || (*channels)[0] <= 0 || (*groups)[0] <= 0) return std::nullopt;
    extents weight{(*channels)[0], r.data[1] / (*groups)[0]};
    weight.insert(weight.end(), kernel->begin(), kernel->end());
    c.shapes.push_back(std::move(weight));
  } else if (c.op == "nn.batch_matmul" || c.op == "add" || c.op == "multiply") {
    c.shapes.push_back(r.data);
  }
  const auto result = result_of(c, c.attributes);
  if (!result) return std::nullopt;
  c.result = *result;
  c.flops = flops_of(c);
  return c;
}

}  // namespace detail

/// The name of a backend's rates for one operator in a roofline.
inline std::string rates_name(const std::string& backend, const std::string& op) { return backend + ' ' + op; }

/// Makes a roofline for each backend, and for each operator of a backend (`rates_name`), from the records of single
/// operators. Its rates are the most arithmetic and the most traffic per second that any record reaches. The launch cost
/// is the least time of any record of the backend. An operator without a rate has its backend's; a backend without a rate
/// has the least rate of the other backends. Throws `collage::error` if no record gives a rate.
inline collage::roofline roofline_of(const published_costs& table, std::span<const operator_call> calls) {
  std::vector<collage::roofline_rates> backends, operators;
  std::vector<std::size_t> backend_of;  // of each of `operators`
  const auto entry = [](std::vector<collage::roofline_rates>& list, const std::string& name) {
    const auto found = std::ranges::find(list, name, &collage::roofline_rates::backend);
    const auto at = static_cast<std::size_t>(found - list.begin());
    if (found == list.end()) list.push_back({name, 0, 0, std::numeric_limits<double>::max()});
    return at;
  };
  for (const cost_record& r : table.records) {
    const std::size_t b = entry(backends, r.backend);
    backends[b].launch_ms = std::min(backends[b].launch_ms, r.mean_ms);
    const auto call = detail::measured_call(r, calls);
    if (!call) continue;
    const std::size_t o = entry(operators, rates_name(r.backend, call->op));
    backend_of.resize(operators.size());
    backend_of[o] = b;
    double elements = elements_of(call->result);
    for (const extents& shape : call->shapes) elements += elements_of(shape);
    for (collage::roofline_rates* rates : {&backends[b], &operators[o]}) {
      rates->flops_per_s = std::max(rates->flops_per_s, 1e3 * call->flops / r.mean_ms);
      rates->bytes_per_s = std::max(rates->bytes_per_s, 1e3 * element_bytes * elements / r.mean_ms);
    }
  }
  for (double collage::roofline_rates::* rate :
       {&collage::roofline_rates::flops_per_s, &collage::roofline_rates::bytes_per_s}) {
    double least = 0;
    for (const collage::roofline_rates& b : backends)
      if (b.*rate > 0) least = least > 0 ? std::min(least, b.*rate) : b.*rate;
    if (least == 0)
      throw collage::error(collage::error_kind::unsupported, "no record shows how fast a backend is", table.name,
                           "use a table with records of single operators");
    for (collage::roofline_rates& b : backends)
      if (!(b.*rate > 0)) b.*rate = least;
    for (std::size_t o = 0; o < operators.size(); ++o)
      if (!(operators[o].*rate > 0)) operators[o].*rate = backends[backend_of[o]].*rate;
  }
  for (std::size_t o = 0; o < operators.size(); ++o) {
    operators[o].launch_ms = backends[backend_of[o]].launch_ms;
    backends.push_back(operators[o]);
  }
  return collage::roofline(std::move(backends));
}

}  // namespace program::replay
