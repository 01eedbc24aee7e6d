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

/// The results of a chain of elementwise operators for some numbers, by the reference. `all` are the contents of the one operand that is
/// no constant.
inline oracle_value results_for(const any_match& m, const build_context& context, const oracle_value& all) {
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
        in.push_back(all);
      }
    }
    known[m.output_of(n)] = std::move(evaluate_node(m.kind_of(n), m.graph().words_of(n), in)[0]);
  }
  return known.at(m.output());
}

/// The results of a chain of elementwise operators for all integers of 8 bits.
inline byte_table table_of(const any_match& m, const build_context& context, std::uint32_t x) {
  const dtype type = m.type_of(x).type;
  oracle_value all(tensor_type{type, {256}});
  for (std::size_t i = 0; i < 256; ++i)
    all.integer[i] = type == dtype::i8 ? static_cast<std::int8_t>(i) : static_cast<std::int64_t>(i);
  const oracle_value made = results_for(m, context, all);
  byte_table table{};
  for (std::size_t i = 0; i < 256; ++i) table[i] = static_cast<std::uint8_t>(made.integer[i]);
  return table;
}

/// The one tensor of integers that a chain of functions reads.
inline std::uint32_t only_tensor(const any_match& m) {
  for (const std::uint32_t n : m.nodes())
    if (m.is(n, ops::dequantize_linear)) return m.inputs_of(n)[0];
  return m.arguments()[0];
}

/// Replaces all bytes of argument `x` by the entries of a table.
inline kernel look_up_kernel(const any_match& m, const build_context& context, std::size_t x, const byte_table& table) {
  const std::int64_t count = m.type_of(m.output()).dims.elements();
  const int threads = context.threads();
  kernel made("table of 256", [=](const kernel_call& call) {
    parallel_parts(threads, count, 4096, 0.125, [&](std::int64_t first, std::int64_t last) {
      look_up(table.data(), static_cast<const std::uint8_t*>(call.in[x]), static_cast<std::uint8_t*>(call.out[0]),
              first, last);
    });
  });
  for (std::size_t i = 0; i < m.arguments().size(); ++i)
    if (i != x) made.does_not_read(i);
  return std::move(made.may_write_over(x));
}
inline kernel build_function(const any_match& m, build_context& context) {
  const std::uint32_t x = only_tensor(m);
  return look_up_kernel(m, context, m.index_of(x), table_of(m, context, x));
}

/// Computes elements of a pair. `Pair` is run_pair.
template <class A, class B, class Y, class Pair>
void compute_pair(const Pair& q, const A* x, const B* y, Y* to, std::int64_t count) {
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
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = stored((static_cast<float>(x[i]) - zero_a) * (static_cast<float>(y[i]) - zero_b) * left);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i)
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
      compute_pair(q, static_cast<const A*>(call.in[q.a]) + first, static_cast<const B*>(call.in[q.b]) + first,
                   static_cast<Y*>(call.out[0]) + first, last - first);
    });
  }
};

/// A sum, difference or product, and the bounds of what follows it.
struct pair_of_nodes {
  std::uint32_t node = 0;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};
inline pair_of_nodes pair_in(const any_match& m) {
  pair_of_nodes p;
  for (const std::uint32_t n : m.nodes()) {
    if (m.is(n, ops::add) || m.is(n, ops::sub) || m.is(n, ops::mul)) p.node = n;
    if (m.is(n, ops::relu)) p.low = 0;
    if (!m.is(n, ops::clip)) continue;
    p.low = static_cast<float>(m.at(m.inputs_of(n)[1]).scalar);
    p.high = static_cast<float>(m.at(m.inputs_of(n)[2]).scalar);
  }
  return p;
}
/// The numbers of a kernel for a pair, whose operands and result have these scales. `lowest` is the smallest integer of the result.
template <class Pair>
Pair numbers_of(const any_match& m, const pair_of_nodes& p, byte_scale x, byte_scale y, byte_scale z, float lowest) {
  const bool multiplies = m.is(p.node, ops::mul);
  const double unit = z.scale, sign = m.is(p.node, ops::sub) ? -1 : 1;
  const float least = lowest - z.zero_point;
  const auto bound = [&](float f) {
    return std::clamp(static_cast<float>(static_cast<double>(f) / unit), least, least + 255);
  };
  Pair q{};
  q.multiplies = multiplies;
  q.zero_a = x.zero_point, q.zero_b = y.zero_point;
  q.left = static_cast<float>(static_cast<double>(x.scale) * (multiplies ? y.scale : 1.0F) / unit);
  q.right = static_cast<float>(sign * static_cast<double>(y.scale) / unit);
  q.low = bound(p.low), q.high = bound(p.high);
  q.zero = static_cast<std::int32_t>(z.zero_point);
  return q;
}

inline kernel build_pair(const any_match& m, build_context& context) {
  const pair_of_nodes p = pair_in(m);
  const auto source = [&](std::size_t i) { return static_cast<std::uint32_t>(m.at(m.inputs_of(p.node)[i]).producer); };
  const std::uint32_t a = m.inputs_of(source(0))[0], b = m.inputs_of(source(1))[0], root = m.nodes().back();
  const byte_scale x = scale_at(m, source(0)), y = scale_at(m, source(1)), z = scale_at(m, root);
  const float lowest = m.type_of(m.output()).type == dtype::i8 ? -128.0F : 0.0F;
  kernel made = with_byte(m.type_of(a).type, [&]<class A>(A) {
    return with_byte(m.type_of(b).type, [&]<class B>(B) {
      return with_byte(m.type_of(m.output()).type, [&]<class Y>(Y) {
        auto q = numbers_of<run_pair<A, B, Y>>(m, p, x, y, z, lowest);
        q.a = m.index_of(a), q.b = m.index_of(b);
        q.count = m.type_of(m.output()).dims.elements(), q.threads = context.threads();
        return kernel(std::string("quantised ") + m.kind_of(p.node).name, q);
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
