// Stacked against the reference: functions, number by number.
#ifdef COLLAGE_HAS_STACKED
#include "stacked_testing.hpp"

#include <collage/backends/reference.hpp>
#include <collage/backends/stacked.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace backends_stacked_functions_test {

using namespace collage_test;
using namespace collage_test::stacked_testing;

/// How close a function must be: to the reference relatively, and absolutely where its body adds and subtracts.
struct closeness {
  double relative = 1e-6;
  double absolute = 1e-44;
};

/// One operator of operands of one shape, element by element.
class functions_test : public testing::Test {
 protected:
  template <class Kind>
  void all(const Kind&, std::size_t operands, const closeness& allowed = {},
           const typename Kind::attributes& attributes = {}) {
    constexpr std::size_t count = 4001;
    graph_builder g;
    std::vector<value> in;
    for (std::size_t i = 0; i < operands; ++i) in.push_back(g.input("x" + std::to_string(i), f32({count})));
    g.output("y", g.add(collage::kind_of<Kind>, in, collage::to_words(attributes), ""));
    const graph network = g.finish();
    std::vector<std::vector<float>> numbers;
    std::vector<oracle_value> known(operands, oracle_value(f32({count})));
    std::vector<const void*> pointers;
    for (std::size_t i = 0; i < operands; ++i) {
      numbers.push_back(all_sorts_of_numbers(data_, count));
      if (i > 0) std::shuffle(numbers[i].begin(), numbers[i].end(), std::minstd_rand(1));
      known[i].real.assign(numbers[i].begin(), numbers[i].end());
    }
    for (const std::vector<float>& n : numbers) pointers.push_back(n.data());
    const collage::attribute_words words = collage::to_words(attributes);
    const std::vector<double> expected =
        collage::evaluate_node(collage::kind_of<Kind>, {words.word, words.size}, known).front().real;
    for_each_target([&] {
      collage::packed_weights packed;
      collage::build_context context(network, 1, packed);
      const collage::kernel built = stacked::build(collage::group_of(network, all_nodes(network)), context);
      std::vector<float> y(count);
      void* const out[] = {y.data()};
      const guarded_memory workspace(built.workspace(), 0, 0xFF);
      built(collage::kernel_call{pointers.data(), out, workspace.data()});
      for (std::size_t i = 0; i < count; ++i) {
        const double r = collage::detail::finiteness_of(collage::dtype::f32, expected[i]);
        const auto a = static_cast<double>(y[i]);
        bool good = false;
        if (std::isnan(r)) good = std::isnan(a);
        else if (std::isinf(r)) good = a == r;
        else good = std::abs(a - r) <= allowed.relative * std::abs(r) + allowed.absolute;
        std::string at;
        for (const std::vector<float>& n : numbers) at += " " + std::to_string(n[i]) + " (" + std::to_string(i) + ")";
        ASSERT_TRUE(good) << Kind::name << " of" << at << " is " << a << ", the reference has " << r
                          << ", COLLAGE_SEED=" << data_.seed();
      }
    });
  }
  data_source data_;
};

TEST_F(functions_test, of_one_operand) {
  all(op::exp, 1);
  all(op::log, 1);
  all(op::tanh, 1);
  all(op::erf, 1);
  all(op::sigmoid, 1);
  all(op::sqrt, 1);
  all(op::sin, 1, {.absolute = 2e-7});
  all(op::cos, 1, {.absolute = 2e-7});
  all(op::tan, 1);
  all(op::asin, 1);
  all(op::acos, 1);
  all(op::atan, 1);
  all(op::sinh, 1);
  all(op::cosh, 1);
  all(op::asinh, 1);
  all(op::acosh, 1);
  all(op::atanh, 1);
  all(op::floor, 1);
  all(op::ceil, 1);
  all(op::round, 1);
  all(op::sign, 1);
  all(op::neg, 1);
  all(op::abs, 1);
  all(op::reciprocal, 1);
  all(op::relu, 1);
  all(op::leaky_relu, 1, {}, {.alpha = 0.01});
  all(op::elu, 1, {.absolute = 2e-7});
  all(op::celu, 1, {.absolute = 2e-7}, {.alpha = 0.7});
  all(op::selu, 1, {.absolute = 4e-7});
  all(op::thresholded_relu, 1);
  all(op::shrink, 1);
  all(op::hard_sigmoid, 1, {.absolute = 2e-7});
  all(op::hard_swish, 1, {.absolute = 2e-6});
  all(op::softplus, 1, {.absolute = 2e-7});
  all(op::softsign, 1);
  all(op::cast, 1);
}

TEST_F(functions_test, of_several_operands) {
  all(op::add, 2);
  all(op::sub, 2);
  all(op::mul, 2);
  all(op::div, 2);
  all(op::max, 2);
  all(op::min, 2);
  all(op::pow, 2, {.relative = 2e-6});
  all(op::remainder, 2);
  all(op::prelu, 2);
  all(op::clip, 3);
}

}  // namespace backends_stacked_functions_test
#endif
