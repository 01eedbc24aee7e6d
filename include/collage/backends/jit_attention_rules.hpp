// Which matches of the pattern `attention` the backend `jit` takes, and how their operands lie in memory.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_patterns.hpp>
#include <collage/ops.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collage::inline v0::detail::jit {

/// Matrices in the memory of a value that a kernel reads or writes: two dimensions of batches, rows and columns. A missing dimension
/// has the extent 1. A step is a distance in elements. That of a dimension that is repeated, or has one element, is 0.
struct matrices_in_memory {
  std::uint32_t value = match_record::nothing;
  shape extents = {1, 1, 1, 1}, steps = {0, 0, 0, 0};

  constexpr bool has_rows() const { return steps[3] == 1 || extents[3] == 1; }
  constexpr bool has_columns() const { return steps[2] == 1 || extents[2] == 1; }
};

/// `dims` are the extents of a dense value, and dimension i of the matrices is its dimension order[i].
constexpr matrices_in_memory matrices_of(std::uint32_t value, const shape& dims, const shape& order) {
  matrices_in_memory made;
  made.value = value;
  const std::size_t missing = 4 - dims.rank;
  for (std::size_t i = 0; i < dims.rank; ++i) {
    const auto at = static_cast<std::size_t>(order[i]);
    std::int64_t step = 1;
    for (std::size_t d = at + 1; d < dims.rank; ++d) step *= dims[d];
    made.extents[missing + i] = dims[at];
    made.steps[missing + i] = dims[at] == 1 ? 0 : step;
  }
  return made;
}

/// The dimensions of a value in their order.
constexpr shape in_order(std::size_t rank) {
  shape order = shape::filled(rank, 0);
  for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<std::int64_t>(i);
  return order;
}

/// A match of the pattern `attention`: its nodes, and the values that its kernel reads and writes.
struct attention_match {
  std::uint32_t softmax = match_record::nothing;
  std::uint32_t scores = match_record::nothing, values = match_record::nothing;  ///< the products before and after it
  std::uint32_t scale = match_record::nothing, sum = match_record::nothing;      ///< between them, if they are there
  std::uint32_t mask = match_record::nothing;                                    ///< a value: what is added to scores

  constexpr explicit attention_match(const any_match& m) {
    for (const std::uint32_t node : m.nodes()) {
      if (m.is(node, ops::softmax)) softmax = node;
      else if (m.is(node, ops::matmul)) (softmax == match_record::nothing ? scores : values) = node;
      else if (m.is(node, ops::mul) || m.is(node, ops::div)) scale = node;
      else if (m.is(node, ops::add)) sum = node;
    }
    if (sum == match_record::nothing) return;
    const auto in = m.inputs_of(sum);
    mask = in[is_computed(m, in[0]) ? 1 : 0];
  }

  static constexpr bool is_computed(const any_match& m, std::uint32_t value) {
    const std::int32_t from = m.at(value).producer;
    return from >= 0 && m.contains(static_cast<std::uint32_t>(from));
  }
  /// The value by which scores are multiplied or divided. There must be a scale.
  constexpr std::uint32_t factor_value(const any_match& m) const {
    const auto in = m.inputs_of(scale);
    return in[is_computed(m, in[0]) ? 1 : 0];
  }
  /// The factor of the scores, if it is a known number.
  constexpr double factor(const any_match& m) const {
    if (scale == match_record::nothing) return 1;
    const double number = m.at(factor_value(m)).scalar;
    return m.is(scale, ops::div) ? 1 / number : number;
  }
  /// The matrices that a product multiplies. A transpose before it is part of the match.
  constexpr matrices_in_memory operand(const any_match& m, std::uint32_t product, std::size_t index) const {
    std::uint32_t value = m.inputs_of(product)[index];
    const std::size_t rank = m.type_of(value).dims.rank;
    shape order = in_order(rank);
    if (is_computed(m, value)) {
      const auto transpose = static_cast<std::uint32_t>(m.at(value).producer);
      order = m.attributes(transpose, ops::transpose).permutation;
      value = m.inputs_of(transpose)[0];
    }
    const ops::matmul_attributes a = m.attributes(product, ops::matmul);
    if (index == 0 ? a.transpose_a : a.transpose_b) {
      const std::int64_t last = order[rank - 1];
      order[rank - 1] = order[rank - 2];
      order[rank - 2] = last;
    }
    return matrices_of(value, m.type_of(value).dims, order);
  }
  constexpr matrices_in_memory queries(const any_match& m) const { return operand(m, scores, 0); }
  /// As the right operand of a product: [size, keys].
  constexpr matrices_in_memory keys(const any_match& m) const { return operand(m, scores, 1); }
  constexpr matrices_in_memory contents(const any_match& m) const { return operand(m, values, 1); }
  /// Where the result lies, as [queries, width]: a transpose after the product is part of the match.
  constexpr matrices_in_memory result(const any_match& m) const {
    const shape& dims = m.type_of(m.output()).dims;
    shape order = in_order(dims.rank);
    const auto last = static_cast<std::uint32_t>(m.at(m.output()).producer);
    if (last != values) {
      const shape permutation = m.attributes(last, ops::transpose).permutation;  // of the result's dimensions
      for (std::size_t i = 0; i < dims.rank; ++i)
        order[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
    }
    return matrices_of(m.output(), dims, order);
  }
  /// The mask, which is added to the scores; `value` is match_record::nothing if there is none.
  constexpr matrices_in_memory added(const any_match& m) const {
    if (mask == match_record::nothing) return {};
    const shape& dims = m.type_of(mask).dims;
    return matrices_of(mask, dims, in_order(dims.rank));
  }
};

constexpr bool is_attention(const any_match& m) {
  return std::string_view(m.pattern()) == jit_patterns::attention::name;
}

/// Whether what is added to the scores has one number for each key, or for each query and key.
constexpr bool is_mask(const any_match& m, const attention_match& a, const shape& scores) {
  if (a.mask == match_record::nothing) return true;
  const shape& dims = m.type_of(a.mask).dims;
  if (dims.rank < 1 || dims.rank > scores.rank || dims[dims.rank - 1] != scores[scores.rank - 1]) return false;
  for (std::size_t d = 0; d < dims.rank; ++d)
    if (dims[d] != 1 && dims[d] != scores[scores.rank - dims.rank + d]) return false;
  return true;
}

constexpr verdict accepts_attention(const any_match& m) {
  for (const std::uint32_t v : m.arguments()) {
    if (m.type_of(v).type != dtype::f32) return {false, "it computes float32 only"};
    if (!m.type_of(v).dims.is_concrete()) return {false, "its shapes must be known"};
  }
  const attention_match a(m);
  const shape& scores = m.type_of(m.output_of(a.scores)).dims;
  for (const std::uint32_t product : {a.scores, a.values})
    for (const std::uint32_t v : m.inputs_of(product)) {
      const std::size_t rank = m.type_of(v).dims.rank;
      if (rank < 2 || rank > 4 || rank != scores.rank)
        return {false, "attention's queries, keys and values must have the same rank, from 2 to 4"};
    }
  const matrices_in_memory q = a.queries(m), k = a.keys(m), v = a.contents(m), y = a.result(m);
  constexpr std::int64_t most = (std::int64_t{1} << 31U) - 1;
  bool has_elements = true, has_batches = true;
  for (std::size_t d = 0; d < 4; ++d)
    for (const matrices_in_memory* x : {&q, &k, &v})
      has_elements = has_elements && x->extents[d] >= 1 && x->extents[d] <= most;
  for (std::size_t d = 0; d < 2; ++d)
    has_batches = has_batches && q.extents[d] == k.extents[d] && q.extents[d] == v.extents[d];
  const auto last = static_cast<std::int64_t>(scores.rank) - 1;
  // A quotient by a number whose inverse overflows has results that the product with the inverse has not.
  const auto is_finite = [](double x) { return x == 0 || (x > -1e38 && x < 1e38); };
  const bool has_scale =
      a.scale == match_record::nothing || (m.at(a.factor_value(m)).has_scalar && is_finite(a.factor(m)));
  return first_failure(
      {{m.attributes(a.softmax, ops::softmax).axis == last, "attention's softmax must be over the keys"},
       {!m.attributes(a.values, ops::matmul).transpose_a,
        "attention's softmax must be multiplied as it is, and not its transpose"},
       {has_elements, "attention's extents must be from 1 to 2147483647"},
       {has_batches, "attention's queries, keys and values must have the same batches and heads"},
       {has_scale, "the factor of attention's scores must be one number, at most 1e38"},
       {is_mask(m, a, scores), "what is added to attention's scores must have one number for each key"},
       {q.has_rows() && y.has_rows(), "the elements of a query, and those of a result, must follow each other"},
       {(k.has_rows() || k.has_columns()) && (v.has_rows() || v.has_columns()),
        "the elements of a key or of a value must follow each other, or those of neighbours"}});
}

}  // namespace collage::inline v0::detail::jit
