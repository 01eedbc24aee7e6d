// Words from outside: which of them are the attributes of an operator.
#include "place/attribute_fit.hpp"

#include <gtest/gtest.h>
#include <collage/ops.hpp>

#include <string>

#include <collage/graph/graph.hpp>
#include <collage/graph/print.hpp>

namespace place_attribute_fit_test {

namespace c = collage;
namespace op = collage::ops;
using c::dtype;
using c::detail::fits;

/// Whether the words fit, and no others that are a word longer or shorter.
template <class K>
bool fit_exactly(const K&, const typename K::attributes& attributes) {
  const c::kind_info& kind = c::kind_of<K>;
  c::attribute_words words = c::to_words(attributes);
  if (!fits(kind, words)) return false;
  words.word[words.size++] = 1;
  const bool longer = fits(kind, words);
  words.size -= 2;
  return !longer && !fits(kind, words);
}

TEST(attribute_fit, records_have_one_length) {
  EXPECT_TRUE(fit_exactly(op::transpose, {.permutation = {1, 0, 2}}));
  EXPECT_TRUE(fit_exactly(op::concat, {.axis = 3}));
  EXPECT_TRUE(fit_exactly(op::conv, {.groups = 2, .strides = {1, 1}}));
  c::attribute_words words = c::to_words(op::transpose_attributes{.permutation = {1, 0}});
  words.word[0] = 3;
  EXPECT_FALSE(fits(c::kind_of<decltype(op::transpose)>, words));
  words.word[0] = ~std::uint64_t{0};
  EXPECT_FALSE(fits(c::kind_of<decltype(op::transpose)>, words));
  words = {};
  EXPECT_FALSE(fits(c::kind_of<decltype(op::transpose)>, words));
}

TEST(attribute_fit, fields_that_depend_on_others_count) {
  EXPECT_TRUE(fit_exactly(op::cast, {.to = dtype::f32}));
  EXPECT_TRUE(fit_exactly(op::cast, {.to = dtype::i4}));
  EXPECT_TRUE(fit_exactly(op::cast, {.to = dtype::f8e8m0, .saturate = false, .rounding = c::power_rounding::down}));
  EXPECT_TRUE(fit_exactly(op::quantize_linear, {.type = dtype::i8}));
  EXPECT_TRUE(fit_exactly(op::quantize_linear, {.type = dtype::f4e2m1}));
  c::attribute_words words = c::to_words(op::cast_attributes{.to = dtype::f8e5m2});
  EXPECT_TRUE(fits(c::kind_of<decltype(op::cast)>, words, 100));
  words.word[2] = 101;
  EXPECT_FALSE(fits(c::kind_of<decltype(op::cast)>, words, 100));
}

TEST(attribute_fit, such_fields_are_printed) {
  c::graph_builder g;
  const c::value x = g.input("x", {dtype::f32, {2}});
  g.output("y", g(op::cast, x, {.to = dtype::f8e4m3fn, .saturate = false}));
  g.output("z", g(op::cast, x, {.to = dtype::f16}));
  const c::graph network = g.finish();
  EXPECT_EQ(c::detail::attribute_texts(network, 0, false),
            (std::vector<std::string>{"to=18", "saturate=false", "rounding=0"}));
  EXPECT_EQ(c::detail::attribute_texts(network, 1, false), (std::vector<std::string>{"to=3"}));
}

}  // namespace place_attribute_fit_test
