// The iterations of a match and the alternatives that were taken in them, in constant evaluation.
#include <collage/collage.hpp>
#include <cstddef>
#include <cstdint>

#include "rows.hpp"

namespace {

namespace c = collage;
namespace op = collage::ops;
using c::any, c::constant, c::previous, c::either, c::repeat, c::optional;
using collage_test::match_record_of, collage_test::rows_match;

constexpr std::uint32_t nothing = c::match_record::nothing;

// A chain of steps that differ --------------------------------------------------------------------------------------------

struct conv_steps : c::pattern<"conv_steps"> {
  static constexpr auto step = either(op::mul(previous, op::sigmoid(previous)).as<"swish">(),
                                      c::one_of(op::relu, op::elu)(previous).as<"activation">(),
                                      op::add(previous, any.as<"addend">()).as<"sum">());
  static constexpr auto expr = repeat<1, 4>(step.as<"step">(), op::conv(any, constant).as<"conv">());
};
struct chain {
  static constexpr auto graph = c::define([](auto& g) {
    const auto y = g(op::conv, g.input("x", {1, 4, 8, 8}), g.constant("w", {4, 4, 1, 1}));
    const auto sum = g(op::add, g.input("other", {1, 4, 8, 8}), y);  // the operands change places
    const auto swish = g(op::mul, sum, g(op::sigmoid, sum));
    g.output(g(op::elu, swish, {.alpha = 0.5}));
  });
};
constexpr c::match_record chain_found = match_record_of<conv_steps>(chain::graph.view(), 4);
constexpr c::match<conv_steps> chain_match(chain::graph.view(), chain_found);
constexpr auto steps = chain_match.iterations<"step">();
static_assert(steps.size() == 3 && chain_match.iterations<"addend">().size() == 3, "any name of the step finds it");
static_assert(steps[0].is<"sum">() && !steps[0].is<"swish">() && !steps[0].is<"activation">());
static_assert(steps[1].is<"swish">() && steps[2].is<"activation">());
static_assert(steps[0].alternative() == 2 && steps[1].alternative() == 0 && steps[2].alternative() == 1);
static_assert(chain_match.alternative<"step">(0) == 2 && chain_match.alternative<"step">(2) == 1);
static_assert(chain_match.alternative<"step">(3) == nothing && chain_match.alternative<"step">(100) == nothing);
static_assert(steps[0].get<"addend">().value == chain::graph.view().inputs_of(1)[0]);
static_assert(!steps[1].get<"addend">().present());
static_assert(steps[2][op::elu].alpha == 0.5 && steps[0][op::elu].alpha == op::alpha_attributes{}.alpha);
static_assert(steps[2].is(op::elu) && !steps[2].is(op::relu) && steps[1].is(op::mul));
static_assert(steps[0].previous().value == chain_match.get<"conv">().value);
static_assert(steps[1].previous().value == steps[0].value().value &&
              steps[2].operand(0).value == steps[1].value().value);
static_assert(steps[2].value().value == chain_match.output().value && !steps[2].operand(1).present());
static_assert(chain_match.node_of(steps[1].value()) == 3 && chain_match.node_of(steps[0].get<"addend">()) == nothing);
static_assert(c::captures_name<conv_steps, "swish"> && !c::captures_name<conv_steps, "swiss">);

struct counts {
  std::int64_t swishes = 0, addends = 0;
  double alphas = 0;
};
constexpr counts count(const c::match<conv_steps>& m) {
  counts now;
  for (const auto step : m.iterations<"step">()) {
    if (step.is<"swish">()) now.swishes += 1;
    else if (step.is<"sum">()) now.addends += step.get<"addend">().out.elements();
    else if (step.is(op::elu)) now.alphas += step[op::elu].alpha;
  }
  return now;
}
static_assert(count(chain_match).swishes == 1 && count(chain_match).addends == 256 && count(chain_match).alphas == 0.5);

constexpr std::size_t visited() {
  std::size_t order = 0, count = 0;
  for (const auto step : chain_match.iterations<"step">()) order = order * 10 + step.index(), ++count;
  return count * 1000 + order;
}
static_assert(visited() == 3012);

// One repetition within another -------------------------------------------------------------------------------------------

static_assert(rows_match.iterations<"start">().size() == 2 && rows_match.iterations<"w">(0).size() == 1);
static_assert(rows_match.iterations<"w">(1).size() == 3 && rows_match.iterations<"w">(2).size() == 0);
static_assert(rows_match.iterations<"w">(9).size() == 0);

constexpr bool are_walked() {
  std::uint32_t value = rows_match.get<"x">().value;
  for (const auto row : rows_match.iterations<"start">()) {
    if (row.previous().value != value || row.operand(0).present() == false) return false;
    value = row.get<"start">().value;
    for (const auto step : row.iterations<"w">()) {
      const std::uint32_t w = step.get<"w">().value;
      if (step.previous().value != value || step.operand(1).value != w) return false;
      if (row.get<"w">(step.index()).value != w || rows_match.get<"w">(row.index(), step.index()).value != w)
        return false;
      value = step.value().value;
    }
    if (row.value().value != value) return false;
  }
  return rows_match.operand(rows_match.output(), 0).value == value;
}
static_assert(are_walked());

// Alternatives outside of repetitions, and those that are what stands before ----------------------------------------------

struct chosen : c::pattern<"chosen"> {
  static constexpr auto inner = either(op::exp(any), op::log(any)).as<"inner">();
  static constexpr auto expr =
      either(op::relu(inner), op::sub(any, optional(either(op::neg(previous)).as<"last">(), any))).as<"outer">();
};
struct choices {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {4});
    g.output("a", g(op::relu, g(op::log, x)));
    g.output("b", g(op::sub, x, g(op::neg, x)));
    g.output("c", g(op::sub, x, x));
  });
};
constexpr std::size_t taken(std::uint32_t node, int which) {
  const c::match_record record = match_record_of<chosen>(choices::graph.view(), node);
  const c::match<chosen> m(choices::graph.view(), record);
  return which == 0 ? m.alternative<"outer">() : which == 1 ? m.alternative<"inner">() : m.alternative<"last">();
}
static_assert(taken(1, 0) == 0 && taken(1, 1) == 1 && taken(1, 2) == nothing);
static_assert(taken(3, 0) == 1 && taken(3, 1) == nothing && taken(3, 2) == 0);
static_assert(taken(4, 0) == 1 && taken(4, 2) == nothing);

/// An iteration may be nothing at all: what stands before is an alternative, in whichever place.
struct skipping : c::pattern<"skipping"> {
  static constexpr auto step = op::neg(either(previous, op::relu(previous)).as<"perhaps">());
  static constexpr auto expr = repeat<1, 3>(step, any);
};
struct skips {
  static constexpr auto graph =
      c::define([](auto& g) { g.output(g(op::neg, g(op::relu, g(op::neg, g.input("x", {4}))))); });
};
constexpr c::match_record skips_found = match_record_of<skipping>(skips::graph.view(), 2);
constexpr c::match<skipping> skips_match(skips::graph.view(), skips_found);
static_assert(skips_match.count<"perhaps">() == 2);
static_assert(skips_match.alternative<"perhaps">(0) == 0 && skips_match.alternative<"perhaps">(1) == 1);

// What is not asked costs nothing: the record is as small as before.
static_assert(sizeof(c::match_record) == (64 + 64 + 72 + 16 + 4) * sizeof(std::uint32_t));

}  // namespace
