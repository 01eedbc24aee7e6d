// The linear programs of bilinear algorithms on vectors, for the current target of hwy/foreach_target.h: included once for each.
#if defined(COLLAGE_JIT_LINEAR_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_JIT_LINEAR_VECTORS
#undef COLLAGE_JIT_LINEAR_VECTORS
#else
#define COLLAGE_JIT_LINEAR_VECTORS
#endif

#include <hwy/highway.h>
#include <collage/backends/impl/stacked_tiles.hpp>
#include <collage/bilinear/algorithm.hpp>

#include <cstddef>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::jit {
namespace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace tiles = host::HWY_NAMESPACE;
using tiles::lanes;
using tiles::tag;
using tiles::vector;

template <class S>
struct left_of {
  static constexpr bilinear::program_view view = S::left;
};
template <class S>
struct right_of {
  static constexpr bilinear::program_view view = S::right;
};
template <class S>
struct output_of {
  static constexpr bilinear::program_view view = S::output;
};

/// Instruction K of a program. Coefficients are constants, and a scaling and an addition are one operation.
template <class Program, std::size_t K>
HWY_INLINE void linear_step(vector* value) {
  constexpr bilinear::instruction step = Program::view.code[K];
  constexpr auto is = [](const bilinear::rational& x, int whole) { return x == bilinear::rational(whole); };
  constexpr float alpha = step.alpha.template as<float>(), beta = step.beta.template as<float>();
  const vector a = value[step.a], b = value[step.b];
  vector& to = value[Program::view.inputs + K];
  if constexpr (step.beta.is_zero()) {
    if constexpr (is(step.alpha, 1)) to = a;
    else if constexpr (is(step.alpha, -1)) to = hn::Neg(a);
    else to = hn::Mul(tiles::number(alpha), a);
  } else if constexpr (is(step.alpha, 1)) {
    if constexpr (is(step.beta, 1)) to = hn::Add(a, b);
    else if constexpr (is(step.beta, -1)) to = hn::Sub(a, b);
    else to = hn::MulAdd(tiles::number(beta), b, a);
  } else if constexpr (is(step.beta, 1)) {
    if constexpr (is(step.alpha, -1)) to = hn::Sub(b, a);
    else to = hn::MulAdd(tiles::number(alpha), a, b);
  } else if constexpr (is(step.beta, -1)) {
    if constexpr (is(step.alpha, -1)) to = hn::Neg(hn::Add(a, b));
    else to = hn::MulSub(tiles::number(alpha), a, b);
  } else if constexpr (is(step.alpha, -1)) {
    to = hn::MulSub(tiles::number(beta), b, a);
  } else {
    to = hn::MulAdd(tiles::number(alpha), a, hn::Mul(tiles::number(beta), b));
  }
}

template <class Program, std::size_t... K>
HWY_INLINE void linear_steps(vector* value, std::index_sequence<K...>) {
  (linear_step<Program, K>(value), ...);
}
template <class Load, std::size_t... I>
HWY_INLINE void load_all(vector* value, const Load& load, std::index_sequence<I...>) {
  ((value[I] = load(I)), ...);
}
template <class Program, class Store, std::size_t... O>
HWY_INLINE void store_all(const vector* value, const Store& store, std::index_sequence<O...>) {
  (store(O, value[Program::view.output[O]]), ...);
}

/// Computes store(o, output o) from load(i). It is straight code, whose values stay in registers as far as there are some.
template <class Program, class Load, class Store>
HWY_INLINE void run_linear(const Load& load, const Store& store) {
  constexpr std::size_t inputs = Program::view.inputs, outputs = Program::view.output.size();
  vector value[Program::view.values()];
  load_all(value, load, std::make_index_sequence<inputs>());
  linear_steps<Program>(value, std::make_index_sequence<Program::view.code.size()>());
  store_all<Program>(value, store, std::make_index_sequence<outputs>());
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::jit
HWY_AFTER_NAMESPACE();

#endif
