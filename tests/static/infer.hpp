// Shape rules called in constant evaluation.
#pragma once

#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

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
constexpr inferred infer_types(const K&, std::initializer_list<c::tensor_type> in,
                               const typename K::attributes& attributes = {},
                               std::span<const std::span<const std::int64_t>> contents = {}) {
  const std::span<const c::tensor_type> types(in.begin(), in.size());
  c::attribute_words words = c::to_words(attributes);
  if (c::kind_of<K>.normalise != nullptr) c::kind_of<K>.normalise(words, types);
  c::tensor_type out[1];
  c::inference io{types, out, contents};
  inferred result;
  result.why = c::kind_of<K>.infer(words.list(), io);
  result.out = out[0];
  return result;
}

/// The same for float32 operands.
template <c::operator_kind K>
constexpr inferred infer(const K& kind, std::initializer_list<c::shape> in,
                         const typename K::attributes& attributes = {}) {
  c::tensor_type types[8];
  std::size_t count = 0;
  for (const c::shape& dims : in) types[count++] = {c::dtype::f32, dims};
  switch (count) {
    case 1: return infer_types(kind, {types[0]}, attributes);
    case 2: return infer_types(kind, {types[0], types[1]}, attributes);
    default: return infer_types(kind, {types[0], types[1], types[2]}, attributes);
  }
}

}  // namespace collage_test
