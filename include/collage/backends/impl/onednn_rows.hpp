// Operators that oneDNN computes row by row or element by element: softmax, layer norm, reductions, elementwise operators. Also
// operators that move elements: concat, transpose.
#pragma once

#include <algorithm>
#include <collage/backends/impl/onednn_program.hpp>
#include <collage/backends/impl/onednn_steps.hpp>
#include <collage/backends/impl/onednn_window.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/backends/onednn_rules.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

/// A shape as [rows, elements of a row]. Dimension `axis` and those after it are within a row.
inline dims as_rows(const shape& s, std::size_t axis) { return {s.first(axis).elements(), s.from(axis).elements()}; }

/// If a row holds a NaN or infinity, the library may write NaN only to single elements. The whole row becomes NaN then.
struct run_softmax {
  std::shared_ptr<const program> steps;
  std::int64_t rows, length;
  int threads;

  void operator()(const kernel_call& call) const {
    steps->run(call);
    auto* const out = static_cast<float*>(call.out[0]);
    host::parallel_parts(threads, rows, 1, 0.125 * static_cast<double>(length),
                         [&](std::int64_t first, std::int64_t last) {
                           if (largest_bits(out, first * length, last * length) <= infinity_bits) return;
                           for (std::int64_t row = first; row < last; ++row)
                             if (largest_bits(out, row * length, (row + 1) * length) > infinity_bits)
                               std::fill_n(out + row * length, length, std::numeric_limits<float>::quiet_NaN());
                         });
  }
};

inline kernel build_softmax(const any_match& m, build_context& context, std::uint32_t node, const form& stored) {
  const auto axis = static_cast<std::size_t>(m.attributes(node, ops::softmax).axis);
  const dims x = as_rows(m.type_of(m.output()).dims, axis);
  using descriptor = dnnl::softmax_forward::primitive_desc;
  const desc rows = dense(x, element_of(stored));
  const descriptor d = fast(descriptor(cpu(), dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate,
                                       rows, rows, 1, attributes()));
  program_builder program(m, context);
  program.run(d, dnnl::softmax_forward(d),
              {{DNNL_ARG_SRC, program.read(m.inputs_of(node)[0], rows)}, {DNNL_ARG_DST, program.output(rows)}});
  if (stored != plain) return program.finish(named(d, stored));
  return program.finish(d.impl_info_str(), [&](std::shared_ptr<const collage::detail::onednn::program> steps) {
    return run_softmax{std::move(steps), x[0], x[1], context.threads()};
  });
}

/// The extents of a whole tensor and of a tensor that broadcasts to it. Adjacent dimensions that broadcast alike are merged.
inline std::pair<dims, dims> merged(const shape& whole, const shape& part) {
  dims large, small;
  bool last_shared = false;
  for (std::size_t d = 0; d < whole.rank; ++d) {
    if (whole[d] == 1) continue;
    const bool shared = d + part.rank >= whole.rank && part[d + part.rank - whole.rank] != 1;
    if (!large.empty() && shared == last_shared) {
      large.back() *= whole[d];
      small.back() *= shared ? whole[d] : 1;
    } else {
      large.push_back(whole[d]);
      small.push_back(shared ? whole[d] : 1);
    }
    last_shared = shared;
  }
  if (large.empty()) return {{1}, {1}};
  return {large, small};
}

/// Unless scale and bias have one number for each element of a row, they are applied in a second pass. Norms of instances and of
/// groups of channels need that. The library's batch_normalization of plain images takes a hundred times as long in version 3.2.
inline kernel build_layer_norm(const any_match& m, build_context& context, std::uint32_t node, const form& stored) {
  const auto a = m.attributes(node, ops::layer_norm);
  const std::span<const std::uint32_t> in = m.inputs_of(node);
  const shape& whole = m.type_of(m.output()).dims;
  const dims x = as_rows(whole, static_cast<std::size_t>(a.axis));
  const bool at_once = scales_rows(m, node);
  auto flags = dnnl::normalization_flags::none;
  if (at_once) flags |= dnnl::normalization_flags::use_scale;
  if (at_once && in.size() == 3) flags |= dnnl::normalization_flags::use_shift;
  using descriptor = dnnl::layer_normalization_forward::primitive_desc;
  const desc rows = dense(x, element_of(stored));
  const descriptor d = fast(descriptor(cpu(), dnnl::prop_kind::forward_inference, rows, rows,
                                       static_cast<float>(a.epsilon), flags, attributes()));
  program_builder program(m, context);
  const std::size_t result = program.output(rows);
  std::vector<std::pair<int, std::size_t>> operands{{DNNL_ARG_SRC, program.read(in[0], rows)}, {DNNL_ARG_DST, result}};
  if (at_once) {
    const desc row = dense({x[1]});
    operands.emplace_back(DNNL_ARG_SCALE, program.read(in[1], row));
    if (in.size() == 3) operands.emplace_back(DNNL_ARG_SHIFT, program.read(in[2], row));
  }
  program.run(d, dnnl::layer_normalization_forward(d), std::move(operands));
  if (at_once) return program.finish(named(d, stored));

  auto [large, small] = merged(whole, m.type_of(in[1]).dims);
  if (large.size() == 2 && small[1] == 1) {  // the library's post-ops can have one number per channel, not per row
    large.insert(large.begin(), 1);
    small.insert(small.begin(), 1);
  }
  epilogue then;
  if (in.size() == 3) then.combine(dnnl::algorithm::binary_add, in[2], dense(small), dense(small));
  const auto scaled = fast(dnnl::binary::primitive_desc(cpu(), dnnl::algorithm::binary_mul, dense(large), dense(small),
                                                        dense(large), attributes(then.ops())));
  const std::size_t normal = program.seen_as(result, dense(large));
  operands = {{DNNL_ARG_SRC_0, normal}, {DNNL_ARG_SRC_1, program.read(in[1], dense(small))}, {DNNL_ARG_DST, normal}};
  then.read(program, scaled, operands);
  program.run(scaled, dnnl::binary(scaled), std::move(operands));
  return program.finish(std::string(d.impl_info_str()) + " scaled afterwards");
}

inline kernel build_reduction(const any_match& m, build_context& context, std::uint32_t node, const form& stored) {
  const bool mean = m.is(node, ops::reduce_mean);
  const std::int64_t all = m.type_of(m.inputs_of(node)[0]).dims.elements();
  const std::int64_t rows = m.type_of(m.output()).dims.elements();
  const element type = element_of(stored);
  const desc x = dense({rows, all / rows}, type);
  const desc y = dense({rows, 1}, type);
  const auto how = mean ? dnnl::algorithm::reduction_mean : dnnl::algorithm::reduction_sum;
  using descriptor = dnnl::reduction::primitive_desc;
  program_builder program(m, context);
  if (all == rows) {  // nothing to add up
    const desc same = dense({rows}, type);
    program.reorder(program.read(m.inputs_of(node)[0], same), program.output(same));
    return program.finish("reorder");
  }
  const descriptor d = fast(descriptor(cpu(), how, x, y, 0, 0, attributes()));
  program.run(d, dnnl::reduction(d),
              {{DNNL_ARG_SRC, program.read(m.inputs_of(node)[0], x)}, {DNNL_ARG_DST, program.output(y)}});
  return program.finish(named(d, stored));
}

/// The elementwise operators whose results equal the reference for NaN and infinity too. A relu that keeps NaN is an elu of
/// slope 0.
inline eltwise exact_eltwise(const any_match& m, std::uint32_t node) {
  using enum dnnl::algorithm;
  if (m.is(node, ops::relu)) return {eltwise_elu};
  if (m.is(node, ops::leaky_relu)) return {eltwise_relu, m.attributes(node, ops::leaky_relu).alpha};
  if (m.is(node, ops::elu)) return {eltwise_elu, m.attributes(node, ops::elu).alpha};
  if (m.is(node, ops::sigmoid)) return {eltwise_logistic};
  if (m.is(node, ops::tanh)) return {eltwise_tanh};
  if (m.is(node, ops::sqrt)) return {eltwise_sqrt};
  if (m.is(node, ops::reciprocal)) return {eltwise_pow, 1, -1};
  if (m.is(node, ops::neg)) return {eltwise_linear, -1, 0};
  if (m.is(node, ops::abs)) return {eltwise_abs};
  throw error(error_kind::unsupported, std::string("it has no operator like ") + m.kind_of(node).name, "onednn");
}

inline kernel build_eltwise(const any_match& m, build_context& context, std::uint32_t node, const form& stored) {
  const eltwise f = exact_eltwise(m, node);
  const shape& whole = m.type_of(m.output()).dims;
  const desc x =
      stored.order == plain ? dense({whole.elements()}, element_of(stored)) : desc_in(stored, to_dims(whole));
  using descriptor = dnnl::eltwise_forward::primitive_desc;
  const descriptor d = fast(descriptor(cpu(), dnnl::prop_kind::forward_inference, f.what, x, x,
                                       static_cast<float>(f.alpha), static_cast<float>(f.beta), attributes()));
  program_builder program(m, context);
  program.run(d, dnnl::eltwise_forward(d),
              {{DNNL_ARG_SRC, program.read(m.inputs_of(node)[0], x)}, {DNNL_ARG_DST, program.output(x)}});
  kernel made = program.finish(named(d, stored));
  return std::move(made.may_write_over(m.index_of(m.inputs_of(node)[0])));
}

inline kernel build_binary(const any_match& m, build_context& context, std::uint32_t node, const form& stored) {
  using enum dnnl::algorithm;
  const auto how = m.is(node, ops::add)   ? binary_add
                   : m.is(node, ops::sub) ? binary_sub
                   : m.is(node, ops::mul) ? binary_mul
                                          : binary_div;
  const shape& whole = m.type_of(m.output()).dims;
  std::uint32_t a = m.inputs_of(node)[0];
  std::uint32_t b = m.inputs_of(node)[1];
  if (m.type_of(a).dims.elements() != whole.elements()) std::swap(a, b);  // the operator commutes, or was refused
  const auto [large, small] = merged(whole, m.type_of(b).dims);
  const bool is_plain = stored.order == plain;
  const auto in_form = [&](const dims& extents, const form& its) {
    return is_plain ? dense(extents, element_of(its)) : desc_in(its, to_dims(whole));
  };
  const desc x = in_form(large, stored), y = in_form(small, stored);
  // Constants lie in float32, and are packed.
  const auto read = [&](program_builder& program, std::uint32_t v, const dims& extents) {
    return program.read(v, in_form(extents, m.graph().is_constant(v) ? form(stored.order) : stored),
                        in_form(extents, stored));
  };
  using descriptor = dnnl::binary::primitive_desc;
  const descriptor d = fast(descriptor(cpu(), how, x, y, x, attributes()));
  program_builder program(m, context);
  program.run(d, dnnl::binary(d),
              {{DNNL_ARG_SRC_0, read(program, a, large)},
               {DNNL_ARG_SRC_1, read(program, b, small)},
               {DNNL_ARG_DST, program.output(x)}});
  kernel made = program.finish(named(d, stored));
  // A constant in float32 has another size than a result in bfloat16.
  if (a != b && !m.graph().is_constant(a))
    made.may_write_over(m.index_of(a));  // the library can overwrite only its first operand
  return made;
}

inline kernel build_concat(const any_match& m, build_context& context, std::uint32_t node, const form& stored) {
  const auto axis = static_cast<std::size_t>(m.attributes(node, ops::concat).axis);
  const auto flat = [&](const shape& s, const form& its) {
    if (stored.order != plain) return desc_in(its, to_dims(s));
    return dense({s.first(axis).elements(), s[axis], s.from(axis + 1).elements()}, element_of(its));
  };
  std::vector<desc> parts;
  for (const std::uint32_t v : m.inputs_of(node)) parts.push_back(flat(m.type_of(v).dims, stored));
  const desc y = flat(m.type_of(m.output()).dims, stored);
  const dnnl::concat::primitive_desc d(cpu(), y, 1, parts, attributes());
  program_builder program(m, context);
  std::vector<std::pair<int, std::size_t>> operands{{DNNL_ARG_DST, program.output(y)}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::uint32_t v = m.inputs_of(node)[i];
    const desc from = flat(m.type_of(v).dims, m.graph().is_constant(v) ? form(stored.order) : stored);
    operands.emplace_back(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), program.read(v, from, parts[i]));
  }
  program.run(d, dnnl::concat(d), std::move(operands));
  return program.finish(named(d, stored));
}

/// The forms that the choices of a conversion read and write: first those that differ in layout alone. Then, for float32, those of
/// which at least one is in bfloat16, and those to and from uint8.
inline std::vector<std::pair<form, form>> conversions(const tensor_type& whole) {
  std::vector<layout> known{plain};
  if (whole.dims.rank >= 3 && whole.dims.rank <= 5) known.push_back(channels_last);
  if (known.size() > 1 && block_size() != 0) known.push_back(blocked());
  std::vector<std::pair<form, form>> list, rounded;
  for (const layout& from : known)
    for (const layout& to : known) {
      const form a(from), b(to);
      if (from != to) list.emplace_back(a, b);
      if (whole.type != dtype::f32) continue;
      rounded.emplace_back(a, b.of(dtype::bf16));
      rounded.emplace_back(a.of(dtype::bf16), b);
      if (from != to) rounded.emplace_back(a.of(dtype::bf16), b.of(dtype::bf16));
    }
  list.insert(list.end(), rounded.begin(), rounded.end());
  if (whole.type != dtype::f32) return list;
  // uint8 is stored plain, or with channels last.
  for (const layout& order : known) {
    if (order == blocked()) continue;
    const form bytes = form(order).of(dtype::u8);
    for (const layout& other : known)
      for (const form& numbers : {form(other), form(other).of(dtype::bf16)}) {
        list.emplace_back(numbers, bytes);
        list.emplace_back(bytes, numbers);
      }
    for (const layout& other : known)
      if (other != order && other != blocked()) list.emplace_back(bytes, form(other).of(dtype::u8));
  }
  return list;
}
/// A conversion between numbers and integers that stand for them. With zero points, version 3.2 computes wrong integers of some images
/// while it exchanges plain ones and those with channels last. So integers are moved apart from that, which is also faster.
inline kernel build_quantising(const any_match& m, build_context& context, std::uint32_t node, const form& from,
                               const form& to, const dims& extents) {
  const bool quantises = to.element && is_8_bit_integer(*to.element);
  const int end = quantises ? DNNL_ARG_TO : DNNL_ARG_FROM;
  const integer_scale how =
      quantises ? context.scale_of(m.output(), *to.element) : context.scale_of(m.inputs_of(node)[0], *from.element);
  dnnl::primitive_attr attributes = onednn::attributes();
  attributes.set_scales_mask(end, 0);
  if (how.zero_point != 0) attributes.set_zero_points_mask(end, 0);
  program_builder program(m, context);
  std::size_t source = program.read(m.inputs_of(node)[0], desc_in(from, extents));
  std::size_t target = program.output(desc_in(to, extents));
  const std::size_t result = target;
  const bool moves = from.order != to.order && from.order != blocked() && to.order != blocked();
  if (moves && quantises) target = program.scratch(desc_in(form(from.order).of(*to.element), extents));
  if (moves && !quantises) {
    const std::size_t moved = program.scratch(desc_in(form(to.order).of(*from.element), extents));
    program.reorder(source, moved);
    source = moved;
  }
  const auto d = fast(
      dnnl::reorder::primitive_desc(cpu(), program.layout_of(source), cpu(), program.layout_of(target), attributes));
  std::vector<std::pair<int, std::size_t>> operands{
      {DNNL_ARG_FROM, source},
      {DNNL_ARG_TO, target},
      {DNNL_ARG_ATTR_SCALES | end, given_list(program, std::vector{how.scale})}};
  if (how.zero_point != 0)
    operands.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | end, given_list(program, std::vector{how.zero_point}));
  program.run(d, dnnl::reorder(d), std::move(operands));
  if (target != result) program.reorder(target, result);
  return program.finish("reorder " + to_text(from) + " to " + to_text(to));
}
inline kernel build_conversion(const any_match& m, build_context& context, std::uint32_t node) {
  const tensor_type& whole = m.type_of(m.output());
  const auto [from, to] = conversions(whole).at(context.choice());
  const bool moves = from.order != to.order;
  const dims extents = moves || from.order != plain ? to_dims(whole.dims) : dims{whole.dims.elements()};
  if (from.element != to.element && (from.element == dtype::u8 || to.element == dtype::u8))
    return build_quantising(m, context, node, from, to, extents);
  const element type = library_type(whole.type);
  program_builder program(m, context);
  program.reorder(program.read(m.inputs_of(node)[0], desc_in(from, extents, type)),
                  program.output(desc_in(to, extents, type)));
  return program.finish("reorder " + to_text(from) + " to " + to_text(to));
}

/// Whether a value is an image whose layout may be other than plain. With fewer dimensions it is a sequence or a matrix.
inline bool has_channels(const any_match& m, std::uint32_t value) {
  const shape& s = m.type_of(value).dims;
  return s.rank >= 4 && s.rank <= 5 && block_size() != 0 && s[1] >= block_size() && !m.graph().is_constant(value);
}
/// Whether a single operator can read and write all its values in layout `order`: channels last, or blocks of channels.
inline bool works_in(const any_match& m, std::uint32_t node, const layout& order) {
  const auto in = m.inputs_of(node);
  if (!has_channels(m, m.output()) || !std::ranges::all_of(in, [&](std::uint32_t v) { return has_channels(m, v); }))
    return false;
  if (m.is(node, ops::max_pool) || m.is(node, ops::average_pool)) return true;
  if (m.is(node, ops::concat)) {
    const auto is_whole = [&](std::uint32_t v) { return m.type_of(v).dims[1] % block_size() == 0; };
    return m.attributes(node, ops::concat).axis == 1 && (order == channels_last || std::ranges::all_of(in, is_whole));
  }
  // A negative slope would turn the zeros that fill up blocks into -0.
  if (m.is(node, ops::leaky_relu) && m.attributes(node, ops::leaky_relu).alpha < 0 && order != channels_last)
    return false;
  const shape& whole = m.type_of(m.output()).dims;
  return m.kind_of(node).has_body && !m.is(node, ops::convert_layout) &&
         std::ranges::all_of(in, [&](std::uint32_t v) { return m.type_of(v).dims == whole; });
}
/// The layouts in which all values of a single operator can lie, the plain one first. They are its choices.
inline std::vector<layout> layouts_of_single(const any_match& m, std::uint32_t node) {
  std::vector<layout> list{plain};
  for (const layout& order : {blocked(), channels_last})
    if (works_in(m, node, order)) list.push_back(order);
  return list;
}
/// Whether a single operator is also computed in bfloat16.
inline bool has_bf16(const any_match& m, std::uint32_t node) {
  if (m.is(node, ops::lstm) || m.is(node, ops::gru) || m.is(node, ops::resize)) return false;
  const auto in = m.inputs_of(node);
  // Constants lie in float32. Where one is packed, it has several dimensions (run/rounding.hpp).
  const bool has_two = in.size() == 2 && m.kind_of(node).has_body;
  for (std::size_t i = 0; i < (has_two ? 2U : 1U) && !m.is(node, ops::concat); ++i) {
    const auto& extents = m.type_of(in[i]).dims;
    const bool is_list = std::ranges::count_if(extents, [](std::int64_t extent) { return extent > 1; }) < 2;
    if (m.graph().is_constant(in[i]) && (!has_two || is_list)) return false;
  }
  return !m.is(node, ops::layer_norm) || scales_rows(m, node);
}
/// The forms in which all values of a single operator can lie: its choices.
inline std::vector<form> forms_of_single(const any_match& m, std::uint32_t node) {
  const std::vector<layout> orders = layouts_of_single(m, node);
  std::vector<form> list(orders.begin(), orders.end());
  if (has_bf16(m, node))
    for (const layout& order : orders) list.push_back(form(order).of(dtype::bf16));
  // The largest of some integers stands for the largest number.
  if (m.is(node, ops::max_pool) && std::ranges::find(orders, channels_last) != orders.end())
    list.push_back(form(channels_last).of(dtype::u8));
  return list;
}
/// The values that a form of a single operator is for: its result, and all operands but constants. A norm has one such operand.
inline void set_forms_of_single(const any_match& m, std::uint32_t node, const form& stored, value_forms& to) {
  const auto in = m.inputs_of(node);
  for (std::size_t i = 0; i < in.size(); ++i)
    if (!m.graph().is_constant(in[i]) && (i == 0 || !m.is(node, ops::layer_norm))) to.set(in[i], stored);
  to.set(m.output(), stored);
}

inline kernel build_transpose(const any_match& m, build_context& context, std::uint32_t node, const form& stored) {
  const shape permutation = m.attributes(node, ops::transpose).permutation;
  const desc y = dense_of(m.type_of(m.output()).dims, element_of(stored));
  const dims steps = dense_steps(to_dims(m.type_of(m.inputs_of(node)[0]).dims));
  dims moved;
  for (const std::int64_t from : permutation) moved.push_back(steps[static_cast<std::size_t>(from)]);
  if (moved.empty()) moved = {1};
  program_builder program(m, context);
  program.reorder(program.read(m.inputs_of(node)[0], desc(y.get_dims(), y.get_data_type(), moved)), program.output(y));
  return program.finish("reorder");
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
