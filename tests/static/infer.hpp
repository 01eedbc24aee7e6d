// Shape rules called in constant evaluation.
#pragma once

#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace collage_test {

namespace c = collage;
namespace op = collage::ops;

/// What a kind's shape rule answered, after its attributes were normalised as a builder does it.
struct inferred {
  c::verdict why;
  c::tensor_type out;
  constexpr bool is(const c::shape& dims) const { return bool(why) && out.dims == dims; }
  constexpr bool refused_at(std::int32_t operand) const { return !why && why.operand == operand; }
  constexpr bool refused() const { return !why; }
};

template <c::operator_kind K>
constexpr inferred infer_list(const K&, c::list_view<const c::tensor_type> types,
                              const typename K::attributes& attributes,
                              c::list_view<const c::list_view<const std::int64_t>> contents = {}) {
  c::attribute_words words = c::to_words(attributes);
  if (c::kind_of<K>.has_normalise) c::kind_of<K>.normalise(words, types);
  c::tensor_type out[8];
  c::inference io{types, c::list_view<c::tensor_type>(out, K::outputs < 8 ? K::outputs : 8), contents};
  inferred result;
  result.why = c::kind_of<K>.infer(words.list(), io);
  result.out = out[0];
  return result;
}

template <c::operator_kind K>
constexpr inferred infer_types(const K& kind, std::initializer_list<c::tensor_type> in,
                               const typename K::attributes& attributes = {},
                               c::list_view<const c::list_view<const std::int64_t>> contents = {}) {
  return infer_list(kind, c::list_view<const c::tensor_type>(in.begin(), in.size()), attributes, contents);
}

/// The same for float32 operands.
template <c::operator_kind K>
constexpr inferred infer(const K& kind, std::initializer_list<c::shape> in,
                         const typename K::attributes& attributes = {}) {
  c::tensor_type types[8];
  std::size_t count = 0;
  for (const c::shape& dims : in) types[count++] = {c::dtype::f32, dims};
  return infer_list(kind, c::list_view<const c::tensor_type>(types, count), attributes);
}

}  // namespace collage_test
