// Elementwise operators of quantised files in loops on bytes. Nothing depends on where the elements lie, so a kernel serves every
// layout that fills no blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/quantised_loops.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/backends/portable_quantised.hpp>
#include <collage/backends/reference.hpp>
#include <collage/ops.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Calls body with a zero of the C++ type of integers of 8 bits.
template <class Body>
auto with_byte(dtype type, const Body& body) {
  return type == dtype::i8 ? body(std::int8_t{}) : body(std::uint8_t{});
}

/// The results of a chain of elementwise operators for all integers of 8 bits, by the reference.
inline std::array<std::uint8_t, 256> table_of(const any_match& m, const build_context& context) {
  std::map<std::uint32_t, oracle_value> known;
  for (const std::uint32_t n : m.nodes()) {
    std::vector<oracle_value> in;
    for (const std::uint32_t v : m.inputs_of(n)) {
      if (const std::byte* bytes = context.constant<std::byte>(v); bytes != nullptr) {
        in.push_back(to_oracle({bytes, m.type_of(v)}));
        in.back().type.dims = {};
      } else if (known.contains(v)) {
        in.push_back(known.at(v));
      } else {
        oracle_value all(tensor_type{m.type_of(v).type, {256}});
        for (std::size_t i = 0; i < 256; ++i)
          all.integer[i] = m.type_of(v).type == dtype::i8 ? static_cast<std::int8_t>(i) : static_cast<std::int64_t>(i);
        in.push_back(std::move(all));
      }
    }
    known[m.output_of(n)] = std::move(evaluate_node(m.kind_of(n), m.graph().words_of(n), in)[0]);
  }
  std::array<std::uint8_t, 256> table{};
  for (std::size_t i = 0; i < 256; ++i) table[i] = static_cast<std::uint8_t>(known.at(m.output()).integer[i]);
  return table;
}

/// The one tensor of integers that a chain of functions reads.
inline std::uint32_t only_tensor(const any_match& m) {
  for (const std::uint32_t n : m.nodes())
    if (m.is(n, ops::dequantize_linear)) return m.inputs_of(n)[0];
  return m.arguments()[0];
}

inline kernel build_function(const any_match& m, build_context& context) {
  const std::size_t x = m.index_of(only_tensor(m));
  const std::int64_t count = m.type_of(m.output()).dims.elements();
  const auto table = std::make_shared<const std::array<std::uint8_t, 256>>(table_of(m, context));
  const int threads = context.threads();
  kernel made("table of 256", [=](const kernel_call& call) {
    parallel_parts(threads, count, 4096, 0.125, [&](std::int64_t first, std::int64_t last) {
      look_up(table->data(), static_cast<const std::uint8_t*>(call.in[x]), static_cast<std::uint8_t*>(call.out[0]),
              first, last);
    });
  });
  for (std::size_t i = 0; i < m.arguments().size(); ++i)
    if (i != x) made.does_not_read(i);
  return std::move(made.may_write_over(x));
}

/// Computes elements `first` to `last` of a pair. `Pair` is run_pair.
template <class A, class B, class Y, class Pair>
void compute_pair(const Pair& q, const kernel_call& call, std::int64_t first, std::int64_t last) {
  const auto* const x = static_cast<const A*>(call.in[q.a]);
  const auto* const y = static_cast<const B*>(call.in[q.b]);
  auto* const to = static_cast<Y*>(call.out[0]);
  const float zero_a = q.zero_a, zero_b = q.zero_b, left = q.left, right = q.right, low = q.low, high = q.high;
  const float shift = -zero_a * left - zero_b * right;
  const std::int32_t zero = q.zero;
  const auto stored = [low, high, zero](float r) {
    r = r < low ? low : r;
    r = r > high ? high : r;
    return nearest_byte<Y>(r, zero);
  };
  if (q.multiplies) {
#pragma omp simd
    for (std::int64_t i = first; i < last; ++i)
      to[i] = stored((static_cast<float>(x[i]) - zero_a) * (static_cast<float>(y[i]) - zero_b) * left);
  } else {
#pragma omp simd
    for (std::int64_t i = first; i < last; ++i)
      to[i] = stored(static_cast<float>(x[i]) * left + (static_cast<float>(y[i]) * right + shift));
  }
}

/// a * left + b * right + shift or (a - zero_a) * (b - zero_b) * left, in units of the result and within its bounds.
template <class A, class B, class Y>
struct run_pair {
  std::size_t a, b;
  std::int64_t count;
  int threads;
  bool multiplies;
  float zero_a, zero_b, left, right, low, high;
  std::int32_t zero;

  void operator()(const kernel_call& call) const {
    // A copy, because bytes that are written could otherwise be those of these numbers, and each would be read again.
    parallel_parts(threads, count, 1024, 1, [q = *this, &call](std::int64_t first, std::int64_t last) {
      compute_pair<A, B, Y>(q, call, first, last);
    });
  }
};

inline kernel build_pair(const any_match& m, build_context& context) {
  std::uint32_t pair = 0;
  float low = -std::numeric_limits<float>::infinity(), high = -low;
  for (const std::uint32_t n : m.nodes()) {
    if (m.is(n, ops::add) || m.is(n, ops::sub) || m.is(n, ops::mul)) pair = n;
    if (m.is(n, ops::relu)) low = 0;
    if (!m.is(n, ops::clip)) continue;
    low = static_cast<float>(m.at(m.inputs_of(n)[1]).scalar);
    high = static_cast<float>(m.at(m.inputs_of(n)[2]).scalar);
  }
  const auto source = [&](std::size_t i) { return static_cast<std::uint32_t>(m.at(m.inputs_of(pair)[i]).producer); };
  const std::uint32_t a = m.inputs_of(source(0))[0], b = m.inputs_of(source(1))[0], root = m.nodes().back();
  const byte_scale x = scale_at(m, source(0)), y = scale_at(m, source(1)), z = scale_at(m, root);
  const bool multiplies = m.is(pair, ops::mul);
  const double unit = z.scale;
  const auto left = static_cast<float>(static_cast<double>(x.scale) * (multiplies ? y.scale : 1.0F) / unit);
  const auto right = static_cast<float>((m.is(pair, ops::sub) ? -1.0 : 1.0) * static_cast<double>(y.scale) / unit);
  const float lowest = (m.type_of(m.output()).type == dtype::i8 ? -128.0F : 0.0F) - z.zero_point;
  const auto bound = [&](float f) {
    return std::clamp(static_cast<float>(static_cast<double>(f) / unit), lowest, lowest + 255);
  };
  kernel made = with_byte(m.type_of(a).type, [&]<class A>(A) {
    return with_byte(m.type_of(b).type, [&]<class B>(B) {
      return with_byte(m.type_of(m.output()).type, [&]<class Y>(Y) {
        return kernel(std::string("quantised ") + m.kind_of(pair).name,
                      run_pair<A, B, Y>{m.index_of(a), m.index_of(b), m.type_of(m.output()).dims.elements(),
                                        context.threads(), multiplies, x.zero_point, y.zero_point, left, right,
                                        bound(low), bound(high), static_cast<std::int32_t>(z.zero_point)});
      });
    });
  });
  for (std::size_t i = 0; i < m.arguments().size(); ++i)
    if (i != m.index_of(a) && i != m.index_of(b)) made.does_not_read(i);
  made.may_write_over(m.index_of(a));
  return std::move(made.may_write_over(m.index_of(b)));
}

}  // namespace
}  // namespace collage::inline v0::detail::host
