// The functions of stacked_table.hpp on Highway, for the current target of hwy/foreach_target.h, which includes this
// file once for each target.
#if defined(COLLAGE_STACKED_TILES) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_STACKED_TILES
#undef COLLAGE_STACKED_TILES
#else
#define COLLAGE_STACKED_TILES
#endif

#include <hwy/highway.h>
#include <cmath>
#include <collage/backends/impl/stacked_folds.hpp>
#include <collage/backends/impl/stacked_math.hpp>
#include <collage/backends/impl/stacked_memory.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::host {
namespace {
namespace HWY_NAMESPACE {

// Loops over a tile. Results may lie exactly on an operand ------------------------------------------------------------

template <class F>
void one_tile(const tile_call& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float* const a = t.a + r * t.a_step;
    float* const y = t.y + r * t.y_step;
    std::int64_t i = 0;
    for (; i + lanes <= t.columns; i += lanes) store(F::run(load(a + i)), y + i);
    const std::int64_t rest = t.columns - i;
    if (rest > 0) store_some(F::run(load_some(a + i, rest)), y + i, rest);
  }
}
template <class F>
void two_tiles(const tile_call& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float* const a = t.a + r * t.a_step;
    const float* const b = t.b + r * t.b_step;
    float* const y = t.y + r * t.y_step;
    std::int64_t i = 0;
    for (; i + lanes <= t.columns; i += lanes) store(F::run(load(a + i), load(b + i)), y + i);
    const std::int64_t rest = t.columns - i;
    if (rest > 0) store_some(F::run(load_some(a + i, rest), load_some(b + i, rest)), y + i, rest);
  }
}
template <class F>
void tile_and_number(const tile_call& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float* const a = t.a + r * t.a_step;
    const vector b = number(t.b[r * t.b_step]);
    float* const y = t.y + r * t.y_step;
    std::int64_t i = 0;
    for (; i + lanes <= t.columns; i += lanes) store(F::run(load(a + i), b), y + i);
    const std::int64_t rest = t.columns - i;
    if (rest > 0) store_some(F::run(load_some(a + i, rest), b), y + i, rest);
  }
}
template <class F>
struct swapped {
  static HWY_INLINE vector run(vector x, vector y) { return F::run(y, x); }
};
template <class F>
void number_and_tile(const tile_call& t) {
  tile_call turned = t;
  turned.a = t.b;
  turned.a_step = t.b_step;
  turned.b = t.a;
  turned.b_step = t.a_step;
  tile_and_number<swapped<F>>(turned);
}

inline void spread(const tile_call& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float value = t.a[r * t.a_step];
    float* const y = t.y + r * t.y_step;
    for (std::int64_t i = 0; i < t.columns; ++i) y[i] = value;
  }
}

// Operators ------------------------------------------------------------------------------------------------------------

HWY_INLINE vector truth(hn::Mask<vector_tag> m) { return hn::IfThenElseZero(m, number(1.0F)); }
/// NaN is true: it is not 0. With AVX-512, Highway's own inequality is false for NaN.
HWY_INLINE hn::Mask<vector_tag> is_true(vector x) { return hn::Not(hn::Eq(x, hn::Zero(tag))); }

#define COLLAGE_TILE_UNARY(name, expression)                      \
  struct name##_of {                                              \
    static HWY_INLINE vector run(vector a) { return expression; } \
  }
#define COLLAGE_TILE_BINARY(name, expression)                               \
  struct name##_of {                                                        \
    static HWY_INLINE vector run(vector a, vector b) { return expression; } \
  }
#define COLLAGE_TILE_LIBRARY(name, function)                                       \
  struct name##_of {                                                               \
    static float scalar(float x) { return std::function(x); }                      \
    static HWY_INLINE vector run(vector a) { return each_number(name##_of(), a); } \
  }

COLLAGE_TILE_BINARY(add, hn::Add(a, b));
COLLAGE_TILE_BINARY(subtract, hn::Sub(a, b));
COLLAGE_TILE_BINARY(multiply, hn::Mul(a, b));
COLLAGE_TILE_BINARY(divide, hn::Div(a, b));
COLLAGE_TILE_BINARY(minimum, hn::IfThenElse(hn::Or(hn::Lt(a, b), is_nan(a)), a, b));
COLLAGE_TILE_BINARY(maximum, hn::IfThenElse(hn::Or(hn::Gt(a, b), is_nan(a)), a, b));
COLLAGE_TILE_BINARY(less, truth(hn::Lt(a, b)));
COLLAGE_TILE_BINARY(equal, truth(hn::Eq(a, b)));
COLLAGE_TILE_BINARY(logical_and, truth(hn::And(is_true(a), is_true(b))));
COLLAGE_TILE_BINARY(logical_or, truth(hn::Or(is_true(a), is_true(b))));
COLLAGE_TILE_BINARY(distance_exponential, exponential(hn::Sub(a, b)));

COLLAGE_TILE_UNARY(copy, a);
COLLAGE_TILE_UNARY(negate, hn::Neg(a));
COLLAGE_TILE_UNARY(absolute, hn::Abs(a));
COLLAGE_TILE_UNARY(exponential, exponential(a));
COLLAGE_TILE_UNARY(logarithm, logarithm(a));
COLLAGE_TILE_UNARY(square_root, hn::Sqrt(a));
COLLAGE_TILE_UNARY(tangent_hyperbolic, tangent_hyperbolic(a));
COLLAGE_TILE_UNARY(error_function, error_function(a));
// Without an instruction for it, Highway rounds to 0 where -0 is right.
COLLAGE_TILE_UNARY(floor, hn::CopySign(hn::Floor(a), a));
COLLAGE_TILE_UNARY(ceiling, hn::CopySign(hn::Ceil(a), a));
COLLAGE_TILE_UNARY(round_to_even, hn::CopySign(hn::Round(a), a));
COLLAGE_TILE_UNARY(logical_not, truth(hn::Eq(a, hn::Zero(tag))));
COLLAGE_TILE_UNARY(sigmoid, sigmoid(a));
// pow(-0, 0.5) is 0: adding 0 turns -0 into 0 before the root. pow(-infinity, 0.5) is infinity.
COLLAGE_TILE_UNARY(root_of_power, hn::IfThenElse(hn::Eq(a, number(-std::numeric_limits<float>::infinity())), hn::Neg(a),
                                                 hn::Sqrt(hn::Add(a, hn::Zero(tag)))));

COLLAGE_TILE_LIBRARY(tangent, tan);
COLLAGE_TILE_LIBRARY(arc_sine, asin);
COLLAGE_TILE_LIBRARY(arc_cosine, acos);
COLLAGE_TILE_LIBRARY(arc_tangent, atan);
COLLAGE_TILE_LIBRARY(sine_hyperbolic, sinh);
COLLAGE_TILE_LIBRARY(cosine_hyperbolic, cosh);
COLLAGE_TILE_LIBRARY(area_sine_hyperbolic, asinh);
COLLAGE_TILE_LIBRARY(area_cosine_hyperbolic, acosh);
COLLAGE_TILE_LIBRARY(area_tangent_hyperbolic, atanh);

#undef COLLAGE_TILE_UNARY
#undef COLLAGE_TILE_BINARY
#undef COLLAGE_TILE_LIBRARY

struct power_of {
  static float scalar(float x, float y) { return std::pow(x, y); }
  static HWY_INLINE vector run(vector a, vector b) { return each_number(power_of(), a, b); }
};
struct remainder_of {
  static float scalar(float x, float y) { return std::fmod(x, y); }
  static HWY_INLINE vector run(vector a, vector b) { return each_number(remainder_of(), a, b); }
};

/// A maximum or minimum with a number: whether the number is NaN is known before the loop.
struct the_number {
  static HWY_INLINE vector run(vector, vector b) { return b; }
};
struct maximum_with {
  static HWY_INLINE vector run(vector a, vector b) { return hn::IfThenElse(hn::Le(a, b), b, a); }
};
struct minimum_with {
  static HWY_INLINE vector run(vector a, vector b) { return hn::IfThenElse(hn::Ge(a, b), b, a); }
};
template <class F>
void extreme_with_number(const tile_call& t) {
  tile_call row = t;
  row.rows = 1;
  for (std::int64_t r = 0; r < t.rows; ++r) {
    row.a = t.a + r * t.a_step;
    row.b = t.b + r * t.b_step;
    row.y = t.y + r * t.y_step;
    if (std::isnan(*row.b)) tile_and_number<the_number>(row);
    else tile_and_number<F>(row);
  }
}

struct positive {
  static HWY_INLINE vector run(vector x) { return hn::IfThenZeroElse(hn::Le(x, hn::Zero(tag)), x); }
};
template <class Then>
struct add_then {
  static HWY_INLINE vector run(vector a, vector b) { return Then::run(hn::Add(a, b)); }
};

template <bool IsNumber>
HWY_INLINE vector load_or_number(const float* from, std::int64_t i, vector number_of_row) {
  if constexpr (IsNumber) return number_of_row;
  else return load(from + i);
}
template <bool IsNumber>
HWY_INLINE vector load_some_or_number(const float* from, std::int64_t i, std::int64_t count, vector number_of_row) {
  if constexpr (IsNumber) return number_of_row;
  else return load_some(from + i, count);
}
template <bool B, bool C>
void select(const tile_call& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float* const a = t.a + r * t.a_step;
    const float* const b = t.b + r * t.b_step;
    const float* const c = t.c + r * t.c_step;
    float* const y = t.y + r * t.y_step;
    const vector b_number = B ? number(*b) : hn::Zero(tag), c_number = C ? number(*c) : hn::Zero(tag);
    std::int64_t i = 0;
    for (; i + lanes <= t.columns; i += lanes)
      store(hn::IfThenElse(is_true(load(a + i)), load_or_number<B>(b, i, b_number), load_or_number<C>(c, i, c_number)),
            y + i);
    const std::int64_t rest = t.columns - i;
    if (rest > 0)
      store_some(hn::IfThenElse(is_true(load_some(a + i, rest)), load_some_or_number<B>(b, i, rest, b_number),
                                load_some_or_number<C>(c, i, rest, c_number)),
                 y + i, rest);
  }
}
template <bool B, bool C, class Then>
void multiply_add(const tile_call& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float* const a = t.a + r * t.a_step;
    const float* const b = t.b + r * t.b_step;
    const float* const c = t.c + r * t.c_step;
    float* const y = t.y + r * t.y_step;
    const vector b_number = B ? number(*b) : hn::Zero(tag), c_number = C ? number(*c) : hn::Zero(tag);
    std::int64_t i = 0;
    for (; i + lanes <= t.columns; i += lanes)
      store(Then::run(hn::MulAdd(load(a + i), load_or_number<B>(b, i, b_number), load_or_number<C>(c, i, c_number))),
            y + i);
    const std::int64_t rest = t.columns - i;
    if (rest > 0)
      store_some(Then::run(hn::MulAdd(load_some(a + i, rest), load_some_or_number<B>(b, i, rest, b_number),
                                      load_some_or_number<C>(c, i, rest, c_number))),
                 y + i, rest);
  }
}

// All of them -----------------------------------------------------------------------------------------------------------

template <class F>
void set_unary(tile_table& table, opcode code) {
  table.by_opcode[static_cast<std::size_t>(code)][0] = one_tile<F>;
}
template <class F>
void set_binary(tile_table& table, opcode code) {
  tile_function* const forms = table.by_opcode[static_cast<std::size_t>(code)];
  forms[static_cast<std::size_t>(tile_form::tiles)] = two_tiles<F>;
  forms[static_cast<std::size_t>(tile_form::tile_number)] = tile_and_number<F>;
  forms[static_cast<std::size_t>(tile_form::number_tile)] = number_and_tile<F>;
}
template <class F>
void set_rare_binary(tile_table& table, opcode code) {
  table.by_opcode[static_cast<std::size_t>(code)][0] = two_tiles<F>;
}

template <class F>
void set_fold(tile_table& table, row_fold how) {
  table.fold[static_cast<std::size_t>(how)][0] = F::rows;
  table.fold[static_cast<std::size_t>(how)][1] = F::columns;
}
template <bool B, bool C>
void set_multiply_add(tile_table& table) {
  table.multiply_add[B][C][0] = multiply_add<B, C, as_it_is>;
  table.multiply_add[B][C][1] = multiply_add<B, C, positive>;
}

inline tile_table make_functions() {
  tile_table table;
  table.target = hwy::TargetName(HWY_TARGET);
  set_binary<add_of>(table, opcode::add);
  set_binary<subtract_of>(table, opcode::subtract);
  set_binary<multiply_of>(table, opcode::multiply);
  set_binary<divide_of>(table, opcode::divide);
  set_binary<minimum_of>(table, opcode::minimum);
  set_binary<maximum_of>(table, opcode::maximum);
  set_binary<less_of>(table, opcode::less);
  set_rare_binary<equal_of>(table, opcode::equal);
  set_rare_binary<logical_and_of>(table, opcode::logical_and);
  set_rare_binary<logical_or_of>(table, opcode::logical_or);
  set_rare_binary<remainder_of>(table, opcode::remainder);
  set_rare_binary<power_of>(table, opcode::power);
  set_unary<negate_of>(table, opcode::negate);
  set_unary<absolute_of>(table, opcode::absolute);
  set_unary<exponential_of>(table, opcode::exponential);
  set_unary<logarithm_of>(table, opcode::logarithm);
  set_unary<square_root_of>(table, opcode::square_root);
  set_unary<sine>(table, opcode::sine);
  set_unary<cosine>(table, opcode::cosine);
  set_unary<tangent_of>(table, opcode::tangent);
  set_unary<arc_sine_of>(table, opcode::arc_sine);
  set_unary<arc_cosine_of>(table, opcode::arc_cosine);
  set_unary<arc_tangent_of>(table, opcode::arc_tangent);
  set_unary<sine_hyperbolic_of>(table, opcode::sine_hyperbolic);
  set_unary<cosine_hyperbolic_of>(table, opcode::cosine_hyperbolic);
  set_unary<tangent_hyperbolic_of>(table, opcode::tangent_hyperbolic);
  set_unary<area_sine_hyperbolic_of>(table, opcode::area_sine_hyperbolic);
  set_unary<area_cosine_hyperbolic_of>(table, opcode::area_cosine_hyperbolic);
  set_unary<area_tangent_hyperbolic_of>(table, opcode::area_tangent_hyperbolic);
  set_unary<error_function_of>(table, opcode::error_function);
  set_unary<floor_of>(table, opcode::floor);
  set_unary<ceiling_of>(table, opcode::ceiling);
  set_unary<round_to_even_of>(table, opcode::round_to_even);
  set_unary<logical_not_of>(table, opcode::logical_not);
  table.by_opcode[static_cast<std::size_t>(opcode::select)][0] = select<false, false>;
  table.select[0][0] = select<false, false>;
  table.select[0][1] = select<false, true>;
  table.select[1][0] = select<true, false>;
  table.select[1][1] = select<true, true>;
  const auto set = [&](tile_extra code, tile_function f) { table.extra[static_cast<std::size_t>(code)] = f; };
  set(tile_extra::copy, one_tile<copy_of>);
  set(tile_extra::spread, spread);
  set(tile_extra::sigmoid, one_tile<sigmoid_of>);
  set(tile_extra::root_of_power, one_tile<root_of_power_of>);
  set(tile_extra::distance_exponential, tile_and_number<distance_exponential_of>);
  table.by_opcode[static_cast<std::size_t>(opcode::maximum)][1] = extreme_with_number<maximum_with>;
  table.by_opcode[static_cast<std::size_t>(opcode::minimum)][1] = extreme_with_number<minimum_with>;
  table.add[0][0] = two_tiles<add_then<as_it_is>>;
  table.add[0][1] = two_tiles<add_then<positive>>;
  table.add[1][0] = tile_and_number<add_then<as_it_is>>;
  table.add[1][1] = tile_and_number<add_then<positive>>;
  table.transpose = transpose;
  table.load_bytes = load_bytes;
  table.store_bytes = store_bytes;
  set_multiply_add<false, false>(table);
  set_multiply_add<false, true>(table);
  set_multiply_add<true, false>(table);
  set_multiply_add<true, true>(table);
  set_fold<sum_fold<as_it_is>>(table, row_fold::sum);
  set_fold<sum_fold<squared>>(table, row_fold::sum_of_squares);
  set_fold<extreme_fold<larger>>(table, row_fold::largest);
  set_fold<extreme_fold<smaller>>(table, row_fold::smallest);
  return table;
}

inline const tile_table* tile_functions() {
  static const tile_table functions = make_functions();
  return &functions;
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::host
HWY_AFTER_NAMESPACE();

#endif
