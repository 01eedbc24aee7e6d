// Operators of float32 networks on values that a plan stores as uint8. Each value has the scale of the plan. The kernels are those of
// quantised files wherever these serve.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/portable_copies.hpp>
#include <collage/backends/impl/portable_quantised.hpp>
#include <collage/backends/impl/portable_quantised_windows.hpp>
#include <collage/backends/impl/portable_strided.hpp>
#include <collage/backends/impl/quantised_loops.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/backends/portable.hpp>
#include <collage/backends/portable_bytes.hpp>
#include <collage/backends/portable_quantised.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/layout.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// The work of loops on bytes.
enum class byte_work : std::uint8_t { none, function, pair, channels, concat, copy, maximum, mean };

/// The operands of a node that are no constants.
inline std::vector<std::uint32_t> variables_of(const any_match& m, std::uint32_t node) {
  std::vector<std::uint32_t> list;
  for (const std::uint32_t v : m.inputs_of(node))
    if (!m.graph().is_constant(v) && std::ranges::find(list, v) == list.end()) list.push_back(v);
  return list;
}

/// Whether an elementwise operator reads one value of its result's shape, and known numbers.
inline bool is_function(const any_match& m, std::uint32_t node) {
  if (!m.kind_of(node).has_body || m.is(node, ops::convert_layout)) return false;
  const auto fits = [&](std::uint32_t v) {
    return m.graph().is_constant(v) ? m.at(v).has_scalar : m.type_of(v).dims == m.type_of(m.output()).dims;
  };
  return variables_of(m, node).size() == 1 && std::ranges::all_of(m.inputs_of(node), fits);
}

/// Whether `b` has one number for each channel of `a`: its extents after N and C are 1.
inline bool is_of_channels(const any_match& m, std::uint32_t a, std::uint32_t b) {
  const shape &x = m.type_of(a).dims, &y = m.type_of(b).dims;
  return x == m.type_of(m.output()).dims && x.rank >= 3 && y.rank == x.rank && y[1] == x[1] &&
         (y[0] == 1 || y[0] == x[0]) && y.from(2).elements() == 1;
}
/// The operands of a sum, difference or product: the one with the result's shape first.
inline std::pair<std::uint32_t, std::uint32_t> operands_of_pair(const any_match& m, std::uint32_t node) {
  const auto in = m.inputs_of(node);
  if (m.type_of(in[0]).dims == m.type_of(m.output_of(node)).dims) return {in[0], in[1]};
  return {in[1], in[0]};
}
inline byte_work work_of_pair(const any_match& m, std::uint32_t node) {
  const auto in = m.inputs_of(node);
  if (m.graph().is_constant(in[0]) || m.graph().is_constant(in[1])) return byte_work::none;
  const auto [a, b] = operands_of_pair(m, node);
  if (m.type_of(a).dims == m.type_of(b).dims) return byte_work::pair;
  return !m.is(node, ops::sub) && is_of_channels(m, a, b) ? byte_work::channels : byte_work::none;
}

inline byte_work work_of(const any_match& m, std::uint32_t node) {
  const auto is_any = [&](const auto&... kinds) { return (m.is(node, kinds) || ...); };
  if (is_function(m, node)) return byte_work::function;
  if (is_any(ops::add, ops::sub, ops::mul)) return work_of_pair(m, node);
  if (is_any(ops::max_pool)) return accepts_window(m, node) ? byte_work::maximum : byte_work::none;
  if (is_any(ops::average_pool, ops::reduce_mean)) return accepts_mean(m, node) ? byte_work::mean : byte_work::none;
  if (variables_of(m, node).size() != m.inputs_of(node).size() && !m.is(node, ops::concat)) return byte_work::none;
  const auto is_constant = [&](std::uint32_t v) { return m.graph().is_constant(v); };
  if (is_any(ops::concat))
    return std::ranges::any_of(m.inputs_of(node), is_constant) ? byte_work::none : byte_work::concat;
  return is_any(ops::slice, ops::transpose, ops::expand, ops::tile) ? byte_work::copy : byte_work::none;
}
/// Whether a match is of the pattern of single operators with loops.
inline bool is_single_on_loops(const any_match& m) {
  return m.nodes().size() == 1 && std::string(m.pattern()) == portable_patterns::loops::name;
}
/// The work of loops on bytes for a match in float32.
inline byte_work work_of(const any_match& m) {
  const auto fits = [&](std::uint32_t v) {
    return m.type_of(v).type == dtype::f32 && m.type_of(v).dims.elements() > 0;
  };
  if (!std::ranges::all_of(m.arguments(), fits) || m.outputs().size() != 1 || !fits(m.output())) return byte_work::none;
  if (std::string(m.pattern()) == portable_patterns::byte_pair::name) return byte_work::pair;
  if (is_of_reals_on_bytes(m)) return byte_work::function;
  return is_single_on_loops(m) ? work_of(m, m.nodes().back()) : byte_work::none;
}

/// In which order the bytes of operands and result lie. The result may be the mean itself, in float32.
struct byte_variant {
  layout operands = plain, result = plain;
  bool writes_bytes = true;
};

/// The operands of a match that are no constants. At least one.
inline std::vector<std::uint32_t> variables_of(const any_match& m) {
  std::vector<std::uint32_t> list;
  for (const std::uint32_t v : m.arguments())
    if (!m.graph().is_constant(v)) list.push_back(v);
  return list;
}

/// Whether images can lie with channels last. With few channels, no other kernel on bytes has them so.
inline bool can_be_last(const any_match& m, byte_work work) {
  constexpr std::int64_t least = 8;
  const shape &x = m.type_of(variables_of(m)[0]).dims, &y = m.type_of(m.output()).dims;
  const bool is_moved = work == byte_work::copy && !m.is(m.nodes().back(), ops::slice);
  return !is_moved && x.rank >= 3 && x.rank <= 5 && y.rank >= 2 && y[1] >= least;
}

/// The variants on bytes of a match in float32. They follow those in float32. Windows over plain images are slow, and are left out where
/// channels can be last.
inline std::vector<byte_variant> byte_variants(const any_match& m) {
  const byte_work work = work_of(m);
  if (work == byte_work::none || variables_of(m).empty()) return {};
  const shape& y = m.type_of(m.output()).dims;
  const bool images = can_be_last(m, work), keeps = y.rank >= 3;
  const bool has_windows = work == byte_work::maximum || work == byte_work::mean,
             to_lists = y.rank >= 2 && y.from(2).elements() == 1;
  std::vector<byte_variant> list;
  if (!images || !has_windows || to_lists) list.emplace_back();
  if (images && keeps) list.push_back({channels_last, channels_last});
  if (work != byte_work::mean || !to_lists) return list;
  // One place lies the same way in either layout, and is often read in float32.
  list.push_back({plain, plain, false});
  if (!images) return list;
  if (keeps) list.push_back({channels_last, plain});
  list.push_back({channels_last, plain, false});
  return list;
}
inline void set_byte_forms(const any_match& m, const byte_variant& which, value_forms& to) {
  for (const std::uint32_t v : variables_of(m)) to.set(v, form(which.operands).of(dtype::u8));
  to.set(m.output(), which.writes_bytes ? form(which.result).of(dtype::u8) : form(which.result));
}

inline byte_scale scale_in(const build_context& context, std::uint32_t v) {
  const integer_scale how = context.scale_of(v, dtype::u8);
  return {how.scale, static_cast<float>(how.zero_point)};
}
/// Integers that are only moved or compared need one scale.
inline void check_one_scale(const any_match& m, const build_context& context, std::uint32_t node) {
  if (context.scale_of(m.inputs_of(node)[0], dtype::u8) != context.scale_of(m.output(), dtype::u8))
    throw error(error_kind::unsupported,
                std::string(m.kind_of(node).name) + " of integers needs one scale for its input and its output",
                "portable");
}

/// The integers that stand for a function of the numbers for which the 256 integers of another scale stand.
inline kernel build_byte_function(const any_match& m, const build_context& context) {
  const std::uint32_t x = variables_of(m)[0];
  const integer_scale from = context.scale_of(x, dtype::u8), to = context.scale_of(m.output(), dtype::u8);
  oracle_value all(tensor_type{dtype::f32, {256}});
  for (std::int32_t i = 0; i < 256; ++i)
    all.real[static_cast<std::size_t>(i)] = static_cast<double>(i - from.zero_point) * static_cast<double>(from.scale);
  const oracle_value made = results_for(m, context, all);
  byte_table table{};
  for (std::size_t i = 0; i < 256; ++i)
    table[i] = static_cast<std::uint8_t>(integer_for(static_cast<float>(made.real[i]), to, dtype::u8));
  return look_up_kernel(m, context, m.index_of(x), table);
}

using run_pair_of_bytes = run_pair<std::uint8_t, std::uint8_t, std::uint8_t>;

/// A pair whose second operand has one byte for each channel, of each image or of all. For each byte, the result is
/// x * factor + shift.
struct run_pair_of_channels {
  run_pair_of_bytes pair;
  std::int64_t images, channels, places;
  bool last, has_images;  ///< channels last; the second operand has images of its own

  static constexpr std::int64_t most = 256;  ///< channels at once
  struct line {
    float factor, shift;
  };
  line line_of(std::uint8_t y) const {
    const float other = static_cast<float>(y) - pair.zero_b;
    if (!pair.multiplies) return {pair.left, other * pair.right - pair.zero_a * pair.left};
    return {other * pair.left, -pair.zero_a * other * pair.left};
  }

  void operator()(const kernel_call& call) const {
    const auto* const x = static_cast<const std::uint8_t*>(call.in[pair.a]);
    const auto* const y = static_cast<const std::uint8_t*>(call.in[pair.b]);
    auto* const to = static_cast<std::uint8_t*>(call.out[0]);
    const auto of_image = [&](std::int64_t image) { return y + (has_images ? image * channels : 0); };
    if (!last) {
      parallel_parts(pair.threads, images * channels, 1, static_cast<double>(places),
                     [&](std::int64_t first, std::int64_t end) {
                       for (std::int64_t row = first; row < end; ++row) {
                         const line its = line_of(of_image(row / channels)[row % channels]);
                         apply<0>(&its.factor, &its.shift, x + row * places, to + row * places, places);
                       }
                     });
      return;
    }
    parallel_parts(pair.threads, images * places, 1, static_cast<double>(channels),
                   [&](std::int64_t first, std::int64_t end) {
                     for (std::int64_t row = first, stop = 0; row < end; row = stop) {
                       stop = std::min(end, (row / places + 1) * places);
                       apply_to_places(of_image(row / places), x + row * channels, to + row * channels, stop - row);
                     }
                   });
  }

  void apply_to_places(const std::uint8_t* y, const std::uint8_t* x, std::uint8_t* to, std::int64_t count) const {
    for (std::int64_t begin = 0; begin < channels; begin += most) {
      const std::int64_t some = std::min(most, channels - begin);
      std::array<float, most> factors, shifts;
      for (std::int64_t c = 0; c < some; ++c) {
        const line its = line_of(y[begin + c]);
        factors[static_cast<std::size_t>(c)] = its.factor, shifts[static_cast<std::size_t>(c)] = its.shift;
      }
      for (std::int64_t place = 0; place < count; ++place)
        apply<1>(factors.data(), shifts.data(), x + place * channels + begin, to + place * channels + begin, some);
    }
  }
  template <std::int64_t Step>
  void apply(const float* factor, const float* shift, const std::uint8_t* x, std::uint8_t* to,
             std::int64_t count) const {
    const float low = pair.low, high = pair.high;
    const std::int32_t zero = pair.zero;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      float r = static_cast<float>(x[i]) * factor[i * Step] + shift[i * Step];
      r = r < low ? low : r;
      r = r > high ? high : r;
      to[i] = nearest_byte<std::uint8_t>(r, zero);
    }
  }
};

inline kernel build_byte_pair(const any_match& m, const build_context& context, bool last, bool of_channels) {
  const pair_of_nodes p = pair_in(m);
  const auto [a, b] = operands_of_pair(m, p.node);
  const shape& y = m.type_of(m.output()).dims;
  auto q =
      numbers_of<run_pair_of_bytes>(m, p, scale_in(context, a), scale_in(context, b), scale_in(context, m.output()), 0);
  q.a = m.index_of(a), q.b = m.index_of(b), q.count = y.elements(), q.threads = context.threads();
  const std::string name = std::string("bytes, ") + m.kind_of(p.node).name;
  kernel made =
      of_channels
          ? kernel(name + (last ? " of channels, channels last" : " of channels"),
                   run_pair_of_channels{q, y[0], y[1], y.from(2).elements(), last, m.type_of(b).dims[0] == y[0]})
          : kernel(name, q);
  for (std::size_t i = 0; i < m.arguments().size(); ++i)
    if (i != q.a && i != q.b) made.does_not_read(i);
  if (!of_channels) made.may_write_over(q.b);
  return std::move(made.may_write_over(q.a));
}

/// Extents in the order in which elements lie.
inline shape as_laid(const shape& s, bool last) {
  shape laid = s;
  for (std::size_t i = 2; last && i < s.rank; ++i) laid.extent[i - 1] = s[i];
  if (last) laid.extent[s.rank - 1] = s[1];
  return laid;
}
/// The place of a dimension in that order.
inline std::size_t place_in(std::size_t dimension, std::size_t rank, bool last) {
  if (!last || dimension == 0) return dimension;
  return dimension == 1 ? rank - 1 : dimension - 1;
}

/// Copies rows of bytes side by side. Those whose scale is another than the result's become others.
struct run_concat_of_bytes {
  struct part {
    std::size_t argument = 0;
    std::int64_t bytes = 0, offset = 0;  ///< in a row
    std::optional<byte_table> table = {};
  };
  std::vector<part> parts;
  std::int64_t rows = 1, row_bytes = 0;
  int threads = 1;

  static void move(const part& p, const std::uint8_t* from, std::uint8_t* to, std::int64_t count) {
    if (p.table) look_up(p.table->data(), from, to, 0, count);
    else copy_short(from, to, count);
  }
  void operator()(const kernel_call& call) const {
    const auto in = [&](const part& p) { return static_cast<const std::uint8_t*>(call.in[p.argument]); };
    const auto to = [&](const part& p) { return static_cast<std::uint8_t*>(call.out[0]) + p.offset; };
    if (rows >= 8) {
      parallel_parts(threads, rows, 1, 0.125 * static_cast<double>(row_bytes),
                     [&](std::int64_t first, std::int64_t last) {
                       for (std::int64_t row = first; row < last; ++row)
                         for (const part& p : parts) move(p, in(p) + row * p.bytes, to(p) + row * row_bytes, p.bytes);
                     });
      return;
    }
    for (const part& p : parts)
      for (std::int64_t row = 0; row < rows; ++row)
        parallel_parts(threads, p.bytes, 4096, 0.125, [&](std::int64_t first, std::int64_t last) {
          move(p, in(p) + row * p.bytes + first, to(p) + row * row_bytes + first, last - first);
        });
  }
};

inline kernel build_byte_concat(const any_match& m, const build_context& context, std::uint32_t node, bool last) {
  const shape y = as_laid(m.type_of(m.output()).dims, last);
  const std::size_t axis = place_in(static_cast<std::size_t>(m.attributes(node, ops::concat).axis), y.rank, last);
  const integer_scale to = context.scale_of(m.output(), dtype::u8);
  run_concat_of_bytes k;
  k.rows = y.first(axis).elements(), k.threads = context.threads();
  for (const std::uint32_t v : m.inputs_of(node)) {
    const integer_scale from = context.scale_of(v, dtype::u8);
    const std::int64_t bytes = as_laid(m.type_of(v).dims, last).from(axis).elements();
    k.parts.push_back({m.index_of(v), bytes, k.row_bytes});
    k.row_bytes += bytes;
    if (from == to) continue;
    byte_table& table = k.parts.back().table.emplace();
    for (std::int32_t i = 0; i < 256; ++i)
      table[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(integer_for(number_for(i, from), to, dtype::u8));
  }
  return kernel(std::string("bytes, concat") + (last ? ", channels last" : ""), std::move(k));
}

/// Slices, and with plain bytes other operators that only move elements.
inline kernel build_byte_copy(const any_match& m, const build_context& context, std::uint32_t node, bool last) {
  check_one_scale(m, context, node);
  if (!last) return make_copy<std::uint8_t>(m, node, context.threads());
  const ops::slice_attributes a = m.attributes(node, ops::slice);
  const shape &from = m.type_of(m.inputs_of(node)[0]).dims, &to = m.type_of(m.output()).dims;
  const shape dense = steps_of_dense(as_laid(from, last));
  shape steps = shape::filled(from.rank, 0);
  std::int64_t base = 0;
  for (std::size_t i = 0; i < from.rank; ++i) {
    const std::size_t at = place_in(i, from.rank, last);
    base += a.starts[i] * dense[at];
    if (to[i] > 1) steps[at] = a.steps[i] * dense[at];
  }
  portable_copies<std::uint8_t> k;
  k.parts.push_back({m.index_of(m.inputs_of(node)[0]), base, 0,
                     strided_copy<std::uint8_t>(read_in_steps(as_laid(to, last), steps), context.threads())});
  return kernel("slice loops, channels last", std::move(k));
}

inline kernel build_byte_mean(const any_match& m, const build_context& context, std::uint32_t node,
                              const byte_variant& which) {
  const bool last = which.operands == channels_last;
  const byte_scale from = scale_in(context, m.inputs_of(node)[0]);
  const byte_scale to = which.writes_bytes ? scale_in(context, m.output()) : byte_scale{};
  return which.writes_bytes ? make_mean<std::uint8_t, std::uint8_t>(m, context, node, from, to, last)
                            : make_mean<std::uint8_t, float>(m, context, node, from, to, last);
}

/// The kernel of a variant of byte_variants.
inline kernel build_byte_variant(const any_match& m, const build_context& context, const byte_variant& which) {
  const std::uint32_t node = m.nodes().back();
  const bool last = which.operands == channels_last;
  switch (const byte_work work = work_of(m); work) {
    case byte_work::function: return build_byte_function(m, context);
    case byte_work::concat: return build_byte_concat(m, context, node, last);
    case byte_work::copy: return build_byte_copy(m, context, node, last);
    case byte_work::mean: return build_byte_mean(m, context, node, which);
    case byte_work::maximum:
      check_one_scale(m, context, node);
      return make_max_pool<std::uint8_t>(m, context, node, last);
    default: return build_byte_pair(m, context, last, work == byte_work::channels);
  }
}

}  // namespace
}  // namespace collage::inline v0::detail::host
