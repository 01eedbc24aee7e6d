// Shape rules and descriptions of elementwise kinds whose operands or result have types of their own.
#include "infer.hpp"

#include <collage/op/built_in.hpp>

namespace {

using namespace collage_test;
using c::dtype;

// Comparisons answer booleans, of operands of one type.
template <class... K>
constexpr bool all_answer_booleans(dtype type, const K&... kinds) {
  const c::tensor_type x{type, {2, 1}}, y{type, {3}};
  return ((infer_types(kinds, {x, y}).is({2, 3}) && infer_types(kinds, {x, y}).out.type == dtype::boolean) && ...) &&
         (infer_types(kinds, {x, {dtype::f16, {3}}}).refused_at(1) && ...);
}
static_assert(all_answer_booleans(dtype::f32, op::less, op::less_equal, op::greater, op::greater_equal, op::equal));
static_assert(all_answer_booleans(dtype::u64, op::less, op::less_equal, op::greater, op::greater_equal, op::equal));
static_assert(infer_types(op::is_nan, {{dtype::bf16, {4}}}).out.type == dtype::boolean);
static_assert(infer_types(op::is_infinite, {{dtype::f64, {4}}}).out.type == dtype::boolean);
static_assert(infer_types(op::is_nan, {{dtype::i32, {4}}}).refused_at(0), "an integer is never NaN");

// Logic wants booleans, bits want integers.
static_assert(infer_types(op::logical_and, {{dtype::boolean, {2, 1}}, {dtype::boolean, {3}}}).is({2, 3}));
static_assert(infer_types(op::logical_not, {{dtype::i8, {2}}}).refused_at(0));
static_assert(infer_types(op::bitwise_xor, {{dtype::u16, {2}}, {dtype::u16, {}}}).out.type == dtype::u16);
static_assert(infer_types(op::bitwise_not, {{dtype::boolean, {2}}}).refused_at(0));
static_assert(infer_types(op::shift_left, {{dtype::f32, {2}}, {dtype::f32, {}}}).refused_at(0));

// A condition beside two operands of one type.
constexpr c::tensor_type condition{dtype::boolean, {4, 1}};
static_assert(infer_types(op::where, {condition, {dtype::i16, {}}, {dtype::i16, {1, 5}}}).is({4, 5}));
static_assert(infer_types(op::where, {condition, {dtype::i16, {}}, {dtype::i16, {5}}}).out.type == dtype::i16);
static_assert(infer_types(op::where, {condition, condition, condition}).out.type == dtype::boolean);
static_assert(infer_types(op::where, {{dtype::i16, {4}}, {dtype::i16, {}}, {dtype::i16, {}}}).refused_at(0));
static_assert(infer_types(op::where, {condition, {dtype::i16, {}}, {dtype::i32, {}}}).refused_at(2));
static_assert(infer_types(op::where, {condition, {dtype::i16, {3}}, {dtype::i16, {}}}).refused() == false);
static_assert(infer_types(op::where, {condition, {dtype::i16, {3}}, {dtype::i16, {2}}}).refused_at(2));

// A cast changes the type alone.
static_assert(infer_types(op::cast, {{dtype::f32, {2, c::unknown}}}, {.to = dtype::boolean}).is({2, c::unknown}));
static_assert(infer_types(op::cast, {{dtype::f32, {2}}}, {.to = dtype::u8}).out.type == dtype::u8);
static_assert(infer_types(op::cast, {{dtype::f32, {2}}}, {.to = static_cast<dtype>(24)}).refused());
static_assert(infer_types(op::cast, {{dtype::f32, {2}}}, {.to = static_cast<dtype>(0)}).refused());

// Small types are moved and converted. Only casts to small floating-point types store more than their target.
static_assert(infer_types(op::cast, {{dtype::f8e5m2, {2}}}, {.to = dtype::i4}).out.type == dtype::i4);
static_assert(
    infer_types(op::cast, {{dtype::f32, {2}}}, {.to = dtype::f8e8m0, .rounding = c::power_rounding{3}}).refused());
static_assert(c::to_words(op::cast_attributes{.to = dtype::i4}).size == 1 &&
              c::to_words(op::cast_attributes{.to = dtype::f8e4m3fn}).size == 3);
constexpr bool are_refused(dtype type, const auto&... kinds) {
  return (infer_types(kinds, {{type, {2, 3}}, {type, {2, 3}}}).refused_at(0) && ...);
}
static_assert(are_refused(dtype::i4, op::add, op::bitwise_and, op::less, op::matmul, op::max));
static_assert(are_refused(dtype::f8e4m3fn, op::add, op::less, op::matmul, op::max, op::prelu));
static_assert(infer_types(op::where, {{dtype::boolean, {2}}, {dtype::u2, {2}}, {dtype::u2, {2}}}).refused_at(1));
static_assert(infer_types(op::concat, {{dtype::u2, {2}}, {dtype::u2, {3}}}).is({5}));
static_assert(infer_types(op::gather, {{dtype::f8e5m2, {7}}, {dtype::i64, {3}}}).is({3}));
static_assert(infer_types(op::scatter_elements, {{dtype::i4, {7}}, {dtype::i64, {3}}, {dtype::i4, {3}}}).is({7}));
static_assert(infer_types(op::scatter_elements, {{dtype::i4, {7}}, {dtype::i64, {3}}, {dtype::i4, {3}}},
                          {.reduction = op::scatter_reduction::sum})
                  .refused_at(0));
// The lists of types know each other: sizes, names, what is floating-point.
constexpr bool every_type_is_described() {
  for (int i = 1; i <= 23; ++i) {
    const auto type = static_cast<dtype>(i);
    const bool is_named_floating = c::name_of(type)[0] == 'f' || c::name_of(type)[1] == 'f';
    if (c::size_of(type) == 0 || c::is_floating(type) != is_named_floating || c::is_small(type) != (i > 13) ||
        c::bits_of(type) > 8 * c::size_of(type))
      return false;
  }
  return c::size_of(static_cast<dtype>(24)) == 0 && !c::is_floating(static_cast<dtype>(0));
}
static_assert(every_type_is_described());

// How many earlier results an instruction reads follows from its code.
static_assert(c::operands_of(c::opcode::input) == 0 && c::operands_of(c::opcode::tangent) == 1 &&
              c::operands_of(c::opcode::shift_right) == 2 && c::operands_of(c::opcode::select) == 3);
/// Every instruction of every body reads what stands before it.
constexpr bool every_body_is_in_order() {
  for (const c::kind_info* kind : c::built_in_kinds) {
    if (kind->body == nullptr) continue;
    for (std::size_t i = 0; i < kind->body->size; ++i) {
      const c::instruction& o = kind->body->code[i];
      const int operands = c::operands_of(o.code);
      if ((operands > 0 && o.a >= i) || (operands > 1 && o.b >= i) || (operands > 2 && o.c >= i)) return false;
    }
  }
  return true;
}
static_assert(every_body_is_in_order());

constexpr bool all_ids_differ() {
  for (const c::kind_info* a : c::built_in_kinds)
    for (const c::kind_info* b : c::built_in_kinds)
      if (a != b && a->id == b->id) return false;
  return true;
}
static_assert(all_ids_differ());

}  // namespace
