// A small backend for tests: plain loops over elementwise operators and the sum of two values followed by relu.
#pragma once

#include <collage/collage.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

namespace collage_test {

namespace op = collage::ops;

struct add_relu : collage::pattern<"add_relu"> {
  static constexpr auto expr = op::relu(op::add(collage::any, collage::any));
};

/// A kernel over operands of one shape, which it may write over; `f` takes one element of each.
template <class F>
collage::kernel loop(const char* name, std::size_t elements, F f) {
  collage::kernel made(name, [elements, f](const collage::kernel_call& call) {
    const auto* a = static_cast<const float*>(call.in[0]);
    auto* out = static_cast<float*>(call.out[0]);
    // A value read twice is one argument; the second pointer is then not there.
    for (std::size_t i = 0; i < elements; ++i) out[i] = f(call, a[i], i);
  });
  return std::move(made.may_write_over(0).may_write_over(1));
}

/// The second operand of a binary operator in a match: its argument, which is the first where both are the same value.
template <class Match>
std::size_t second_argument(const Match& m, const collage::bound_value& sum) {
  return m.index_of(m.operand(sum, 1));
}

struct loops : collage::backend<"loops"> {
  using patterns =
      collage::patterns<collage::single<op::relu>, collage::single<op::add>, collage::single<op::neg>, add_relu>;

  static constexpr collage::verdict accepts(const collage::match<collage::single<op::add>>& m) {
    return {m.operand(m.output(), 0).out == m.operand(m.output(), 1).out, "its operands must have one shape"};
  }
  static constexpr collage::verdict accepts(const collage::match<add_relu>& m) {
    return {m.argument(0).out == m.output().out, "its operands must have one shape"};
  }
  static std::size_t count(const collage::bound_value& v) { return static_cast<std::size_t>(v.out.elements()); }

  static collage::kernel build(const collage::match<collage::single<op::relu>>& m, collage::build_context&) {
    return loop("loop relu", count(m.output()),
                [](const collage::kernel_call&, float a, std::size_t) { return std::max(a, 0.0F); });
  }
  static collage::kernel build(const collage::match<collage::single<op::neg>>& m, collage::build_context&) {
    return loop("loop neg", count(m.output()), [](const collage::kernel_call&, float a, std::size_t) { return -a; });
  }
  static collage::kernel build(const collage::match<collage::single<op::add>>& m, collage::build_context&) {
    const std::size_t second = second_argument(m, m.output());
    return loop("loop add", count(m.output()), [second](const collage::kernel_call& call, float a, std::size_t i) {
      return a + static_cast<const float*>(call.in[second])[i];
    });
  }
  static collage::kernel build(const collage::match<add_relu>& m, collage::build_context&) {
    const std::size_t second = m.arguments() - 1;
    return loop("loop add relu", count(m.output()), [second](const collage::kernel_call& call, float a, std::size_t i) {
      return std::max(a + static_cast<const float*>(call.in[second])[i], 0.0F);
    });
  }
};

}  // namespace collage_test
