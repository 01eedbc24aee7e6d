// The functions of stacked_table.hpp on Highway, for the target that hwy/foreach_target.h has chosen: included once for
// each.
#if defined(COLLAGE_STACKED_TILES) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_STACKED_TILES
#undef COLLAGE_STACKED_TILES
#else
#define COLLAGE_STACKED_TILES
#endif

#include <hwy/highway.h>
#include <cmath>
#include <collage/backends/impl/stacked_math.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::host {
namespace {
namespace HWY_NAMESPACE {

// Reading and writing ------------------------------------------------------------------------------------------------

inline constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(tag));

HWY_INLINE vector load(const float* from) { return hn::LoadU(tag, from); }
HWY_INLINE void store(vector x, float* to) { hn::StoreU(x, tag, to); }

/// The first `count` of a vector's elements, fewer than it has; nothing behind them is read.
HWY_INLINE vector load_some(const float* from, std::int64_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(tag, static_cast<std::size_t>(count)), tag, from);
#else  // elsewhere a masked reading may touch what is masked out
  HWY_ALIGN float list[hn::MaxLanes(tag)] = {};
  for (std::int64_t i = 0; i < count; ++i) list[i] = from[i];
  return hn::Load(tag, list);
#endif
}
HWY_INLINE void store_some(vector x, float* to, std::int64_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(x, hn::FirstN(tag, static_cast<std::size_t>(count)), tag, to);
#else
  HWY_ALIGN float list[hn::MaxLanes(tag)];
  hn::Store(x, tag, list);
  for (std::int64_t i = 0; i < count; ++i) to[i] = list[i];
#endif
}

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

/// Squares of four by four in registers, the rest one by one.
inline void transpose(const tile_call& t) {
  std::int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> four;
  const hn::RepartitionToWide<decltype(four)> two;
  const auto pairs = [&](auto x) HWY_ATTR { return hn::BitCast(two, x); };
  for (; r + 4 <= t.rows; r += 4) {
    float* const y = t.y + r * t.y_step;
    std::int64_t c = 0;
    for (; c + 4 <= t.columns; c += 4) {
      const float* const a = t.a + c * t.a_step + r;
      const auto a0 = hn::LoadU(four, a), a1 = hn::LoadU(four, a + t.a_step);
      const auto a2 = hn::LoadU(four, a + 2 * t.a_step), a3 = hn::LoadU(four, a + 3 * t.a_step);
      const auto low01 = pairs(hn::InterleaveLower(four, a0, a1)), low23 = pairs(hn::InterleaveLower(four, a2, a3));
      const auto high01 = pairs(hn::InterleaveUpper(four, a0, a1)), high23 = pairs(hn::InterleaveUpper(four, a2, a3));
      hn::StoreU(hn::BitCast(four, hn::InterleaveLower(two, low01, low23)), four, y + c);
      hn::StoreU(hn::BitCast(four, hn::InterleaveUpper(two, low01, low23)), four, y + t.y_step + c);
      hn::StoreU(hn::BitCast(four, hn::InterleaveLower(two, high01, high23)), four, y + 2 * t.y_step + c);
      hn::StoreU(hn::BitCast(four, hn::InterleaveUpper(two, high01, high23)), four, y + 3 * t.y_step + c);
    }
    for (; c < t.columns; ++c)
      for (std::int64_t i = 0; i < 4; ++i) y[i * t.y_step + c] = t.a[c * t.a_step + r + i];
  }
#endif
  for (; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.columns; ++c) t.y[r * t.y_step + c] = t.a[c * t.a_step + r];
}

// Operators ------------------------------------------------------------------------------------------------------------

HWY_INLINE vector truth(hn::Mask<vector_tag> m) { return hn::IfThenElseZero(m, number(1.0F)); }
/// NaN is true: it is not 0. Highway's own inequality is false of NaN with AVX-512.
HWY_INLINE hn::Mask<vector_tag> is_true(vector x) { return hn::Not(hn::Eq(x, hn::Zero(tag))); }
HWY_INLINE hn::Mask<vector_tag> is_nan(vector x) { return hn::IsNaN(x); }

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
// Without instructions for it, Highway rounds to 0 where -0 is right.
COLLAGE_TILE_UNARY(floor, hn::CopySign(hn::Floor(a), a));
COLLAGE_TILE_UNARY(ceiling, hn::CopySign(hn::Ceil(a), a));
COLLAGE_TILE_UNARY(round_to_even, hn::CopySign(hn::Round(a), a));
COLLAGE_TILE_UNARY(logical_not, truth(hn::Eq(a, hn::Zero(tag))));
COLLAGE_TILE_UNARY(sigmoid, sigmoid(a));
// Adding 0 turns -0 into 0, whose root is what pow answers; of -infinity pow answers infinity.
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

inline void select(const tile_call& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float* const a = t.a + r * t.a_step;
    const float* const b = t.b + r * t.b_step;
    const float* const c = t.c + r * t.c_step;
    float* const y = t.y + r * t.y_step;
    std::int64_t i = 0;
    for (; i + lanes <= t.columns; i += lanes)
      store(hn::IfThenElse(is_true(load(a + i)), load(b + i), load(c + i)), y + i);
    const std::int64_t rest = t.columns - i;
    if (rest > 0)
      store_some(hn::IfThenElse(is_true(load_some(a + i, rest)), load_some(b + i, rest), load_some(c + i, rest)), y + i,
                 rest);
  }
}

/// A maximum or minimum with a number: what a NaN is compared with is known before the loop.
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
struct as_it_is {
  static HWY_INLINE vector run(vector x) { return x; }
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

// Folds of rows --------------------------------------------------------------------------------------------------------

struct squared {
  static HWY_INLINE vector run(vector x) { return hn::Mul(x, x); }
};
/// Each of four sums takes sixteen vectors, then they are added in double: the error does not grow with the row.
template <class F>
void fold_sum(const tile_call& t) {
  constexpr std::int64_t together = 4 * 16 * lanes;
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float* const a = t.a + r * t.a_step;
    double total = 0;
    for (std::int64_t first = 0; first < t.columns; first += together) {
      const std::int64_t end = first + together < t.columns ? first + together : t.columns;
      vector sum[4] = {hn::Zero(tag), hn::Zero(tag), hn::Zero(tag), hn::Zero(tag)};
      std::int64_t i = first;
      for (; i + 4 * lanes <= end; i += 4 * lanes)
        for (std::int64_t k = 0; k < 4; ++k) sum[k] = hn::Add(sum[k], F::run(load(a + i + k * lanes)));
      for (; i + lanes <= end; i += lanes) sum[0] = hn::Add(sum[0], F::run(load(a + i)));
      if (i < end) sum[1] = hn::Add(sum[1], F::run(load_some(a + i, end - i)));
      const vector all = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
      total += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, all)));
    }
    t.y[r * t.y_step] = static_cast<float>(total);
  }
}

struct larger {
  static constexpr float none = -std::numeric_limits<float>::infinity();
  static HWY_INLINE vector run(vector a, vector b) { return hn::Max(a, b); }
  static HWY_INLINE vector across(vector a) { return hn::MaxOfLanes(tag, a); }
};
struct smaller {
  static constexpr float none = std::numeric_limits<float>::infinity();
  static HWY_INLINE vector run(vector a, vector b) { return hn::Min(a, b); }
  static HWY_INLINE vector across(vector a) { return hn::MinOfLanes(tag, a); }
};

/// NaN where there is one. Which operand a maximum answers when one is NaN differs between processors, so that they are
/// looked for apart.
template <class F>
void fold_extreme(const tile_call& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float* const a = t.a + r * t.a_step;
    vector most[2] = {number(F::none), number(F::none)};
    auto bad = hn::FirstN(tag, 0);
    std::int64_t i = 0;
    for (; i + 2 * lanes <= t.columns; i += 2 * lanes) {
      const vector x = load(a + i), y = load(a + i + lanes);
      most[0] = F::run(x, most[0]);
      most[1] = F::run(y, most[1]);
      bad = hn::Or(bad, hn::Or(is_nan(x), is_nan(y)));
    }
    for (std::int64_t count; (count = t.columns - i) > 0; i += lanes) {
      vector x = number(F::none);
      if (count >= lanes) x = load(a + i);
      else x = hn::IfThenElse(hn::FirstN(tag, static_cast<std::size_t>(count)), load_some(a + i, count), x);
      most[0] = F::run(x, most[0]);
      bad = hn::Or(bad, is_nan(x));
    }
    const float found = hn::GetLane(F::across(F::run(most[0], most[1])));
    t.y[r * t.y_step] = hn::AllFalse(tag, bad) ? found : std::numeric_limits<float>::quiet_NaN();
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
  table.by_opcode[static_cast<std::size_t>(opcode::select)][0] = select;
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
  set_multiply_add<false, false>(table);
  set_multiply_add<false, true>(table);
  set_multiply_add<true, false>(table);
  set_multiply_add<true, true>(table);
  table.fold[static_cast<std::size_t>(row_fold::sum)] = fold_sum<as_it_is>;
  table.fold[static_cast<std::size_t>(row_fold::sum_of_squares)] = fold_sum<squared>;
  table.fold[static_cast<std::size_t>(row_fold::largest)] = fold_extreme<larger>;
  table.fold[static_cast<std::size_t>(row_fold::smallest)] = fold_extreme<smaller>;
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
