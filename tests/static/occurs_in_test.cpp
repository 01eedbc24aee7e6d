// Patterns looked for in a whole static graph: of any size within the compilers' default limits, with the first match and
// the nearest miss wherever they are.
#include <collage/collage.hpp>
#include <collage/pattern/explain.hpp>
#include <string_view>

namespace {

namespace c = collage;
namespace op = collage::ops;

/// Of 300 blocks, one in the middle and the last are like no other.
struct large {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    const auto y = g.input("y", {4});
    for (int i = 0; i < 300; ++i) {
      x = g(op::relu, i == 150 ? g(op::neg, g(op::neg, x)) : x);
      x = g(op::add, x, y);
    }
    g.output(g(op::sub, x, x));
  });
};

/// At every node up to eight iterations are tried, in vain: more than one evaluation may do.
struct chain {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    const auto y = g.input("y", {4});
    for (int i = 0; i < 300; ++i) x = g(op::add, x, y);
    g.output(x);
  });
};
struct never : c::pattern<"never"> {
  static constexpr auto expr = c::repeat<1, 8>(op::add(c::previous, c::any.as<"x">()), op::tanh(c::any));
};
static_assert(!c::occurs_in<never, chain>);

/// It comes nearest long after the first miss, and not at the last.
struct three_negs : c::pattern<"three_negs"> {
  static constexpr auto expr = op::relu(op::neg(op::neg(op::neg(c::any))));
};
static_assert(!c::occurs_in<three_negs, large>);
static_assert(
    std::string_view(c::explain_match(three_negs{}, large{}).text) ==
    "pattern three_negs does not match anywhere; it comes nearest at node 302 (relu): operand 0 of node 300 (neg) is the "
    "output of node 299 (add) where the pattern has neg(any): it is another operator");

struct two_negs : c::pattern<"two_negs"> {
  static constexpr auto expr = op::neg(op::neg(c::any));
};
struct difference : c::pattern<"difference"> {
  static constexpr auto expr = op::sub(c::any.as<"x">(), c::same<"x">());
};
struct first : c::pattern<"first"> {
  static constexpr auto expr = op::relu(c::any);
};
struct absent : c::pattern<"absent"> {
  static constexpr auto expr = op::tanh(c::any);
};
static_assert(c::occurs_in<two_negs, large> && c::occurs_in<difference, large> && c::occurs_in<first, large>);
static_assert(std::string_view(c::explain_match(two_negs{}, large{}).text) ==
              "pattern two_negs matches at node 301 (neg), of nodes 300 and 301");
static_assert(std::string_view(c::explain_match(difference{}, large{}).text) ==
              "pattern difference matches at node 602 (sub)");
static_assert(std::string_view(c::explain_match(first{}, large{}).text) == "pattern first matches at node 0 (relu)");
static_assert(!c::occurs_in<absent, large>);
static_assert(std::string_view(c::explain_match(absent{}, large{}).text) ==
              "pattern absent does not match anywhere: the graph has no operator for its root, tanh(any)");

}  // namespace
