// Epilogues: which operators they compute, how exactly, and what is refused.
#include "testing.hpp"

#include "jit/generate.hpp"

#include <collage/error.hpp>
#include <collage/graph/graph.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace jit_epilogue_test {

using namespace collage_test;
using namespace collage_test::jit_testing;
using value = jit::epilogue_maker::value;

/// Runs an epilogue on numbers x, as the product, and y, as a residual tensor. Calls f with the name of what ran.
using tail_maker = std::function<value(jit::epilogue_maker&, value, value)>;
void run_on_numbers(const tail_maker& make, const std::vector<float>& x, const std::vector<float>& y,
                    const std::function<void(const std::vector<float>&, const std::string&)>& f) {
  jit::epilogue_maker maker;
  const value product = maker.product(), other = maker.operand(operand_shape::whole);
  maker.output(make(maker, product, other));
  const epilogue finish = maker.finish();
  const auto n = static_cast<std::int64_t>(x.size());
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2})
    for (const bool generated : {true, false}) {
      if (generated && !jit::refusal_of(set).empty()) continue;
      configuration how = jit::default_configuration(set);
      how.rows = 3;
      auto arena = generated ? std::make_shared<jit::code_arena>() : nullptr;
      jit::product made(how, {1, n, 1}, std::vector{store_mode::set}, finish, arena);
      made.bind();
      std::vector<float> packed(made.packed_size()), found(x.size());
      made.pack(x.data(), n, packed.data());
      const float one = 1;
      float* const to[] = {nullptr};
      const float* const operands[] = {y.data()};
      float* const outputs[] = {found.data()};
      made.run({.a = &one,
                .a_step = 1,
                .packed = packed.data(),
                .to = to,
                .operands = operands,
                .operand_steps = {&n, 1},
                .outputs = outputs,
                .output_steps = {&n, 1}});
      f(found, std::string(jit::name_of(set)) + (generated ? "" : ", replica"));
    }
}

class jit_functions : public testing::Test {
 protected:
  void check(const char* name, const tail_maker& make, const std::function<double(double, double)>& reference,
             double relative, double absolute = 1e-37) {
    const std::vector<float> x = all_sorts_of_numbers(random_, 3001);
    std::vector<float> y = x;
    std::shuffle(y.begin(), y.end(), std::minstd_rand(1));
    run_on_numbers(make, x, y, [&](const std::vector<float>& found, const std::string& by) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = reference(static_cast<double>(x[i]), static_cast<double>(y[i]));
        const auto nearest = static_cast<double>(static_cast<float>(exact));
        const auto r = static_cast<double>(found[i]);
        const bool good = std::isnan(nearest)   ? std::isnan(r)
                          : std::isinf(nearest) ? r == nearest
                                                : std::abs(r - exact) <= relative * std::abs(exact) + absolute;
        ASSERT_TRUE(good) << name << " of " << x[i] << " and " << y[i] << " by " << by << " is " << r << ", exactly "
                          << exact << ", COLLAGE_SEED=" << random_.seed();
      }
    });
  }
  random_numbers random_;
};

constexpr double rounding = 0x1p-24;
template <class Kind>
tail_maker unary(const Kind& kind) {
  return [&kind](jit::epilogue_maker& make, value x, value) { return make(kind, {x}); };
}
template <class Kind>
tail_maker binary(const Kind& kind) {
  return [&kind](jit::epilogue_maker& make, value x, value y) { return make(kind, {x, y}); };
}
double minimum(double x, double y) { return x < y || x != x ? x : y; }
double maximum(double x, double y) { return x > y || x != x ? x : y; }

TEST_F(jit_functions, that_round_once) {
  check("add", binary(op::add), [](double x, double y) { return x + y; }, rounding);
  check("sub", binary(op::sub), [](double x, double y) { return x - y; }, rounding);
  check("mul", binary(op::mul), [](double x, double y) { return x * y; }, rounding, 1e-44);
  check("div", binary(op::div), [](double x, double y) { return x / y; }, rounding, 1e-44);
  check("min", binary(op::min), minimum, 0, 0);
  check("max", binary(op::max), maximum, 0, 0);
  check("neg", unary(op::neg), [](double x, double) { return -x; }, 0, 0);
  check("abs", unary(op::abs), [](double x, double) { return std::abs(x); }, 0, 0);
  check("sqrt", unary(op::sqrt), [](double x, double) { return std::sqrt(x); }, rounding);
  check("floor", unary(op::floor), [](double x, double) { return std::floor(x); }, 0, 0);
  check("ceil", unary(op::ceil), [](double x, double) { return std::ceil(x); }, 0, 0);
  check("round", unary(op::round), [](double x, double) { return std::nearbyint(x); }, 0, 0);
  check("relu", unary(op::relu), [](double x, double) { return maximum(x, 0); }, 0, 0);
  check("sign", unary(op::sign), [](double x, double) { return x > 0 ? 1 : x < 0 ? -1 : x; }, 0, 0);
  check("less", binary(op::less), [](double x, double y) { return x < y ? 1.0 : 0.0; }, 0, 0);
  check("equal", binary(op::equal), [](double x, double y) { return x == y ? 1.0 : 0.0; }, 0, 0);
}

TEST_F(jit_functions, that_are_approximated) {
  check("exp", unary(op::exp), [](double x, double) { return std::exp(x); }, 1e-7, 2e-45);
  check("tanh", unary(op::tanh), [](double x, double) { return std::tanh(x); }, 3e-7, 2e-44);
  check("erf", unary(op::erf), [](double x, double) { return std::erf(x); }, 4e-7, 2e-44);
  // Results of several operators, each rounded.
  check("sigmoid", unary(op::sigmoid), [](double x, double) { return 1 / (1 + std::exp(-x)); }, 3e-7);
  check(
      "gelu",
      [](jit::epilogue_maker& make, value x, value) {
        const value half = make(op::mul, {x, make.number(0.5)});
        const value e = make(op::erf, {make(op::mul, {x, make.number(0.70710678118654752)})});
        return make(op::mul, {half, make(op::add, {e, make.number(1)})});
      },
      [](double x, double) { return x == -HUGE_VAL ? std::nan("") : x / 2 * (1 + std::erf(x * 0.70710678118654752)); },
      1e-6, 1e-6);
  check("elu", unary(op::elu), [](double x, double) { return x < 0 ? std::exp(x) - 1 : x; }, 3e-7, 2e-7);
  check(
      "gelu_tanh", unary(op::gelu_tanh),
      [](double x, double) { return 0.5 * x * (1 + std::tanh(0.79788456080286536 * x * (1 + 0.044715 * x * x))); },
      1e-6, 2e-6);
  check(
      "hard_swish", unary(op::hard_swish), [](double x, double) { return x * maximum(minimum(x / 6 + 0.5, 1), 0); },
      3 * rounding, 1e-6);
}

std::string refusal(const std::function<void(jit::epilogue_maker&)>& f) {
  jit::epilogue_maker make;
  try {
    f(make);
    const epilogue finish = make.finish();
    configuration how = jit::default_configuration(instruction_set::avx512);
    jit::generate(jit::make_plan(how, how.rows, how.columns(), std::vector{store_mode::set}, finish));
  } catch (const collage::error& e) { return e.what(); }
  return "no refusal";
}

TEST(jit_epilogues, refusals) {
  const auto of = [](const auto& kind) {
    return refusal([&](jit::epilogue_maker& make) { make.output(make(kind, {make.product()})); });
  };
  EXPECT_EQ(of(op::log), "jit: an epilogue does not compute the operator log");
  EXPECT_EQ(of(op::sin), "jit: an epilogue does not compute the operator sin");
  EXPECT_EQ(of(op::softplus), "jit: an epilogue does not compute the operator softplus");
  EXPECT_EQ(of(op::softmax), "jit: an epilogue computes elementwise operators only, and not softmax");
  EXPECT_EQ(of(op::add), "jit: add has 2 operands, and not 1");
  EXPECT_EQ(refusal([](jit::epilogue_maker& make) {
              for (int i = 0; i < 7; ++i) make.operand(operand_shape::single);
            }),
            "jit: an epilogue reads more than 6 tensors beside the product");
  EXPECT_EQ(refusal([](jit::epilogue_maker& make) {
              for (int i = 0; i < 5; ++i) make.output(make.product());
            }),
            "jit: an epilogue has more than 4 outputs");
  EXPECT_EQ(refusal([](jit::epilogue_maker& make) {
              value x = make.product();
              for (int i = 0; i < 70; ++i) x = make(op::add, {x, make.number(i)});
            }),
            "jit: an epilogue has more than 64 steps");
  // Five values that are all needed at the end, beside a tile that leaves four registers.
  EXPECT_EQ(
      refusal([](jit::epilogue_maker& make) {
        std::vector<value> list;
        for (int i = 0; i < 6; ++i) list.push_back(make(op::mul, {make.product(), make.number(i + 2)}));
        value sum = list[0];
        for (std::size_t i = list.size(); --i > 0;) sum = make(op::add, {sum, list[i]});
        make.output(sum);
      }),
      "jit: the epilogue needs more vector registers than the 4 that a tile of 14x2 vectors leaves free; choose a "
      "smaller tile");
  // The power of two is a product.
  EXPECT_EQ(refusal([](jit::epilogue_maker& make) { make.output(make(op::pow, {make.product(), make.number(2)})); }),
            "no refusal");
}

TEST(jit_epilogues, equal_expressions_are_one_step) {
  jit::epilogue_maker make;
  const value x = make.product(), bias = make.operand(operand_shape::per_column);
  const value a = make(op::add, {x, bias});
  static_cast<void>(make(op::exp, {a}));  // nothing reads it
  make.output(make(op::mul, {make(op::add, {x, bias}), a}));
  make.output(make(op::relu, {a}));
  make.output(make(op::add, {make.number(2), make.number(3)}));
  const epilogue e = make.finish();
  EXPECT_EQ(e.steps.size(), 3U);
  ASSERT_EQ(e.outputs.size(), 3U);
  EXPECT_EQ(e.outputs[2].from, epilogue_value::source::number);
  EXPECT_EQ(e.numbers[e.outputs[2].index], 5.0F);
}

}  // namespace jit_epilogue_test
