// Quantising and dequantising in plain loops, and dynamic quantisation: its range, scale and zero point, and the integers, in two
// passes over the input.
#pragma once

#include <algorithm>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/quantised_loops.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/backends/portable.hpp>
#include <collage/op/quantise.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace collage::inline v0::detail::host {
namespace {

/// A tensor as lines of neighbours that share a scale: line i has the scale i % scales.
struct scaled_lines {
  std::int64_t lines = 1, length = 0, scales = 1;
  std::size_t x = 0, scale = 0, zero_point = 0;  ///< arguments of the kernel
  bool has_zero_point = false;
  int threads = 1;

  /// Calls body(first element, count, scale) for all parts of the tensor.
  template <class Body>
  void visit(const Body& body) const {
    const std::int64_t grain = lines == 1 ? 4096 : 1;
    const std::int64_t items = lines == 1 ? length : lines;
    const double cost = lines == 1 ? 1 : static_cast<double>(length);
    parallel_parts(threads, items, grain, cost, [&](std::int64_t first, std::int64_t last) {
      if (lines == 1) return body(first, last - first, 0);
      for (std::int64_t line = first; line < last; ++line) body(line * length, length, line % scales);
    });
  }
  template <class Number>
  std::int32_t zero_point_of(const kernel_call& call, std::int64_t scale_index) const {
    return has_zero_point ? static_cast<const Number*>(call.in[zero_point])[scale_index] : 0;
  }
};

template <class To>
struct quantise_kernel {
  scaled_lines of;
  void operator()(const kernel_call& call) const {
    const auto* const x = static_cast<const float*>(call.in[of.x]);
    const auto* const scales = static_cast<const float*>(call.in[of.scale]);
    of.visit([&](std::int64_t first, std::int64_t count, std::int64_t s) {
      const byte_scale q{scales[s], static_cast<float>(of.zero_point_of<To>(call, s))};
      quantise(x, static_cast<To*>(call.out[0]), first, first + count, q);
    });
  }
};

template <class From, class To>
struct dequantise_kernel {
  scaled_lines of;
  void operator()(const kernel_call& call) const {
    const auto* const x = static_cast<const From*>(call.in[of.x]);
    const auto* const scales = static_cast<const To*>(call.in[of.scale]);
    of.visit([&](std::int64_t first, std::int64_t count, std::int64_t s) {
      dequantise(x, static_cast<To*>(call.out[0]), first, first + count, scales[s],
                 static_cast<To>(of.zero_point_of<From>(call, s)));
    });
  }
};

/// Whether there are loops for a node: between float32 and bytes, or from bytes to float64, without blocks.
inline bool portable_quantises(const any_match& m, std::uint32_t node) {
  if (m.is(node, ops::quantize_linear)) {
    const auto in = m.inputs_of(node);
    return m.type_of(in[0]).type == dtype::f32 && m.type_of(in[1]).type == dtype::f32 &&
           is_8_bit_integer(m.type_of(m.output_of(node)).type) && m.attributes(node, ops::quantize_linear).block == 0;
  }
  if (!m.is(node, ops::dequantize_linear)) return false;
  const dtype to = m.type_of(m.output_of(node)).type;
  return is_8_bit_integer(m.type_of(m.inputs_of(node)[0]).type) && (to == dtype::f32 || to == dtype::f64) &&
         m.attributes(node, ops::dequantize_linear).block == 0;
}

/// The kernel of a match of one node that `portable_quantises` holds of.
inline kernel build_portable_quantise(const any_match& m, build_context& context) {
  const std::uint32_t node = m.nodes().back();
  const auto in = m.inputs_of(node);
  const shape& dims = m.type_of(in[0]).dims;
  scaled_lines of{.length = dims.elements(), .x = m.index_of(in[0]), .scale = m.index_of(in[1])};
  of.threads = context.threads();
  if ((of.has_zero_point = in.size() == 3)) of.zero_point = m.index_of(in[2]);
  const bool quantises = m.is(node, ops::quantize_linear);
  if (of.scales = m.type_of(in[1]).dims.elements(); of.scales != 1) {
    const auto axis = static_cast<std::size_t>(quantises ? m.attributes(node, ops::quantize_linear).axis
                                                         : m.attributes(node, ops::dequantize_linear).axis);
    of.length = dims.from(axis + 1).elements();
    of.lines = dims.first(axis + 1).elements();
  }
  const std::string name = quantises ? "quantise" : "dequantise";
  const bool is_signed = (quantises ? m.type_of(m.output_of(node)) : m.type_of(in[0])).type == dtype::i8;
  if (quantises)
    return is_signed ? kernel(name, quantise_kernel<std::int8_t>{of}) : kernel(name, quantise_kernel<std::uint8_t>{of});
  if (m.type_of(m.output_of(node)).type == dtype::f64)
    return is_signed ? kernel(name, dequantise_kernel<std::int8_t, double>{of})
                     : kernel(name, dequantise_kernel<std::uint8_t, double>{of});
  return is_signed ? kernel(name, dequantise_kernel<std::int8_t, float>{of})
                   : kernel(name, dequantise_kernel<std::uint8_t, float>{of});
}

/// The smallest and the largest number, both at least as far out as 0; NaN if there is one.
struct number_range {
  float low = 0, high = 0;
  void widen(const number_range& by) {
    low = by.low != by.low || by.low < low ? by.low : low;
    high = by.high != by.high || by.high > high ? by.high : high;
  }
};
inline number_range range_of(const float* x, std::int64_t count) {
  constexpr int lanes = 64;  // several vectors, so that their latency does not count
  float low[lanes] = {}, high[lanes] = {};
  std::int32_t odd[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      const float number = x[i + lane];
      low[lane] = number < low[lane] ? number : low[lane];
      high[lane] = number > high[lane] ? number : high[lane];
      odd[lane] |= number != number ? 1 : 0;
    }
  }
  number_range all;
  bool is_odd = false;
  for (int lane = 0; lane < lanes; ++lane) {
    all.widen({low[lane], high[lane]});
    is_odd = is_odd || odd[lane] != 0;
  }
  for (; i < count; ++i) all.widen({x[i], x[i]});
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  return is_odd ? number_range{nan, nan} : all;
}

/// ONNX's DynamicQuantizeLinear.
struct dynamic_quantise_kernel {
  std::int64_t count = 0;
  std::size_t x = 0;
  std::size_t scale = 0, zero_point = 0;  ///< outputs; 0 if nothing else reads them
  int threads = 1;
  static constexpr std::int64_t grain = 16384;
  static constexpr std::int64_t most_parts = 64;

  std::int64_t parts() const {
    return threads <= 1 ? 1 : std::clamp<std::int64_t>(count / grain, 1, std::min<std::int64_t>(threads, most_parts));
  }
  void operator()(const kernel_call& call) const {
    const auto* const from = static_cast<const float*>(call.in[x]);
    auto* const to = static_cast<std::uint8_t*>(call.out[0]);
    number_range found[most_parts];
    const std::int64_t n = parts();
    parallel(threads, n, [&](std::int64_t part, int) {
      const std::int64_t first = count * part / n;
      found[part] = range_of(from + first, count * (part + 1) / n - first);
    });
    for (std::int64_t part = 1; part < n; ++part) found[0].widen(found[part]);
    const float range = found[0].high - found[0].low;
    const float step = range == 0 ? 1 : range / 255;
    const float negated = -found[0].low;
    std::uint8_t zero = 0;
    quantise(&negated, &zero, 0, 1, {step, 0});
    parallel(threads, n, [&](std::int64_t part, int) {
      quantise(from, to, count * part / n, count * (part + 1) / n, {step, static_cast<float>(zero)});
    });
    if (scale != 0) *static_cast<float*>(call.out[scale]) = step;
    if (zero_point != 0) *static_cast<std::uint8_t*>(call.out[zero_point]) = zero;
  }
};

inline kernel build_dynamic_quantise(const any_match& m, build_context& context) {
  const auto in = m.inputs_of(m.nodes().back());
  dynamic_quantise_kernel k{.count = m.type_of(in[0]).dims.elements(), .x = m.index_of(in[0])};
  k.threads = context.threads();
  for (std::size_t i = 1; i < m.outputs().size(); ++i) {
    if (m.outputs()[i] == in[1]) k.scale = i;
    if (m.outputs()[i] == in[2]) k.zero_point = i;
  }
  return {"dynamic quantise", std::move(k)};
}

}  // namespace
}  // namespace collage::inline v0::detail::host
