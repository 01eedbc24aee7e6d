// Matrix products on oneDNN. A constant second operand is packed once, in the library's layout. Transposes, the operator's own and
// those fused with it, become strides in memory.
#pragma once

#include <algorithm>
#include <collage/backends/impl/onednn_program.hpp>
#include <collage/backends/impl/onednn_steps.hpp>
#include <collage/backends/onednn_chain.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

/// A tensor in memory: extents and strides.
struct strided {
  dims extents, steps;
  desc layout(element type = f32) const { return {extents, type, steps}; }
};

/// How a product's operand lies in memory. If a transpose or dequantize_linear of it is fused, `source` is set to the operand of the
/// first of them, which is read in place. The operator's own transpose swaps the last two strides. Rank 1 becomes a row or a column.
inline strided matmul_operand(const any_match& m, std::uint32_t value, bool transposed, bool second,
                              std::uint32_t& source) {
  shape permutation;
  source = value;
  for (;;) {
    const auto before = static_cast<std::uint32_t>(m.at(source).producer);
    if (m.at(source).producer < 0 || !m.contains(before)) break;
    if (m.is(before, ops::transpose)) permutation = m.attributes(before, ops::transpose).permutation;
    source = m.inputs_of(before)[0];
  }
  const dims extents = to_dims(m.type_of(source).dims);
  const dims steps = dense_steps(extents);
  strided s{extents, steps};
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    s.extents[i] = extents[static_cast<std::size_t>(permutation[i])];
    s.steps[i] = steps[static_cast<std::size_t>(permutation[i])];
  }
  if (extents.size() == 1) {
    const auto at = second ? s.extents.end() : s.extents.begin();
    s.extents.insert(at, 1);
    s.steps = second ? dims{1, 1} : dims{extents[0], 1};
  } else if (transposed) {
    std::swap(s.extents[extents.size() - 1], s.extents[extents.size() - 2]);
    std::swap(s.steps[extents.size() - 1], s.steps[extents.size() - 2]);
  }
  return s;
}

/// A batched product in the library's terms. a, b and c have the same rank.
struct matmul_problem {
  std::uint32_t a_value = 0, b_value = 0;
  strided a, b, c;
  std::size_t batches() const { return c.extents.size() - 2; }
};

/// Merges two adjacent batch dimensions if all three tensors allow it: the library is fastest with few.
inline bool merge_batches(matmul_problem& p, std::size_t i) {
  const auto merges = [i](const strided& s, bool whole) {
    if (s.extents[i] == 1 && s.extents[i + 1] == 1) return !whole;
    return whole && s.steps[i] == s.steps[i + 1] * s.extents[i + 1];
  };
  const auto whole = [&](const strided& s) {
    return s.extents[i] == p.c.extents[i] && s.extents[i + 1] == p.c.extents[i + 1];
  };
  for (const strided* s : {&p.a, &p.b, &p.c})
    if (!merges(*s, whole(*s))) return false;
  for (strided* s : {&p.a, &p.b, &p.c}) {
    s->extents[i + 1] *= s->extents[i];
    s->extents.erase(s->extents.begin() + static_cast<std::ptrdiff_t>(i));
    s->steps.erase(s->steps.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return true;
}

/// Merges batches of rows that all meet the same b into one matrix of many rows.
inline bool merge_rows(matmul_problem& p) {
  const std::size_t last = p.batches();  // the dimension of the rows
  if (last == 0 || p.b.extents[last - 1] != 1) return false;
  for (const strided* s : {&p.a, &p.c})
    if (s->extents[last - 1] != p.c.extents[last - 1] || s->steps[last - 1] != s->steps[last] * s->extents[last])
      return false;
  for (strided* s : {&p.a, &p.c}) s->extents[last] *= s->extents[last - 1];
  for (strided* s : {&p.a, &p.b, &p.c}) {
    s->extents.erase(s->extents.begin() + static_cast<std::ptrdiff_t>(last - 1));
    s->steps.erase(s->steps.begin() + static_cast<std::ptrdiff_t>(last - 1));
  }
  return true;
}

/// Drops a batch dimension of 1.
inline bool drop_batch(matmul_problem& p, std::size_t i) {
  if (p.c.extents[i] != 1) return false;
  for (strided* s : {&p.a, &p.b, &p.c}) {
    s->extents.erase(s->extents.begin() + static_cast<std::ptrdiff_t>(i));
    s->steps.erase(s->steps.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return true;
}

/// Gives dimensions of one row or one column the strides of a dense matrix. No element is ever addressed by these strides. But
/// the library reads the distance between rows from them, and version 3.2 computes nothing if it seems too small.
inline void settle(strided& s) {
  const std::size_t column = s.extents.size() - 1;
  const std::size_t row = column - 1;
  if (s.extents[column] == 1) s.steps[column] = 1;
  if (s.extents[row] == 1) s.steps[row] = s.steps[column] == 1 ? s.extents[column] : 1;
}

inline matmul_problem matmul_problem_of(const chain& m) {
  const auto transposes = m.attributes(m.anchor, ops::matmul);
  const std::span<const std::uint32_t> in = m.inputs_of(m.anchor);
  matmul_problem p;
  p.a = matmul_operand(m, in[0], transposes.transpose_a, false, p.a_value);
  p.b = matmul_operand(m, in[1], transposes.transpose_b, true, p.b_value);

  const std::size_t rank = std::max(p.a.extents.size(), p.b.extents.size());
  for (strided* s : {&p.a, &p.b})
    while (s->extents.size() < rank) {
      s->steps.insert(s->steps.begin(), s->steps[0] * s->extents[0]);
      s->extents.insert(s->extents.begin(), 1);
    }
  for (std::size_t i = 0; i < rank; ++i) p.c.extents.push_back(std::max(p.a.extents[i], p.b.extents[i]));
  p.c.extents[rank - 2] = p.a.extents[rank - 2];
  p.c.extents[rank - 1] = p.b.extents[rank - 1];
  p.c.steps = dense_steps(p.c.extents);
  if (m.ends_in_transpose()) {
    // Dimension i of the output is dimension permutation[i] of the product.
    const shape permutation = m.attributes(m.step[m.steps - 1].node, ops::transpose).permutation;
    const dims steps = dense_steps(to_dims(m.type_of(m.output()).dims));
    for (std::size_t i = 0; i < rank; ++i) p.c.steps[static_cast<std::size_t>(permutation[i])] = steps[i];
  }

  for (std::size_t i = 0; i < p.batches();)
    if (!drop_batch(p, i)) ++i;
  for (std::size_t i = 0; i + 1 < p.batches();)
    if (!merge_batches(p, i)) ++i;
  while (merge_rows(p)) {}
  for (strided* s : {&p.a, &p.b, &p.c}) settle(*s);
  // Attention heads may lie side by side in the rows. The library's fast kernels take that layout only with two batch dimensions.
  if (p.batches() == 1)
    for (strided* s : {&p.a, &p.b, &p.c}) {
      s->steps.insert(s->steps.begin(), product(s->extents));
      s->extents.insert(s->extents.begin(), 1);
    }
  return p;
}

/// `borders` are the forms of the operands and the result: plain, all with the same element type. `choice` is the number of one of
/// the library's implementations.
inline kernel build_matmul(const chain& m, build_context& context, const value_forms& borders, std::size_t choice) {
  const matmul_problem p = matmul_problem_of(m);
  const element type = element_of(m, borders);
  const dims result = p.c.extents;
  dims columns(result.size(), 1);
  columns.back() = result.back();

  // One number per column, added right after the product, is its bias.
  const std::size_t biases = m.begins_with_bias() ? 1 : 0;
  epilogue then;
  append_steps(then, m, biases, [&](const chain_step& s, spread lies) {
    if (lies == spread::full)  // constants lie in float32
      return std::pair(dense(result, m.graph().is_constant(s.operand) ? f32 : type), dense(result, type));
    const desc layout = lies == spread::channel ? dense(columns) : dense(dims(result.size(), 1));
    return std::pair(layout, layout);
  });

  const bool packed = m.graph().is_constant(p.b_value);
  const desc a = p.a.layout(type);
  const desc b = packed ? free_layout(p.b.extents, type) : p.b.layout(type);
  const desc y = p.c.layout(type);
  // Constants lie in float32.
  const auto in_memory = [&](const strided& s, std::uint32_t value) {
    return s.layout(m.graph().is_constant(value) ? f32 : type);
  };
  using descriptor = dnnl::matmul::primitive_desc;
  const descriptor d = implementation(biases == 0 ? descriptor(cpu(), a, b, y, attributes(then.ops()))
                                                  : descriptor(cpu(), a, b, dense(columns), y, attributes(then.ops())),
                                      choice);

  program_builder program(m, context);
  std::vector<std::pair<int, std::size_t>> operands{
      {DNNL_ARG_SRC, program.read(p.a_value, in_memory(p.a, p.a_value), a)},
      {DNNL_ARG_WEIGHTS, program.read(p.b_value, in_memory(p.b, p.b_value), d.weights_desc())},
      {DNNL_ARG_DST, program.output(y)}};
  if (biases != 0) operands.emplace_back(DNNL_ARG_BIAS, program.read(m.step[0].operand, dense(columns)));
  then.read(program, d, operands);
  program.run(d, dnnl::matmul(d), std::move(operands));
  return program.finish(std::string(d.impl_info_str()) + (packed ? " packed" : ""));
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
