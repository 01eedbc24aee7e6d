// Programs: what engines do step by step, as text, and what the verifier finds in programs that are not sound.
#include "support/loops_backend.hpp"
#include "support/plan_making.hpp"

#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/program.hpp>
#include <collage/run/views.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace run_program_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::kernel_group;
using collage_test::loops;
using collage_test::view_group;
using home = c::program_region::home;

/// x goes through relu, a reshape and neg, and leaves as y and, before the reshape, as z.
c::graph network() {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {4, 6}});
  const c::value r = g(op::relu, g(op::neg, x));
  g.output("y", g(op::neg, g(op::reshape, r, {.dims = {24}})));
  g.output("z", r);
  return g.finish();
}

c::dynamic_engine engine(const c::graph& from) {
  c::placement p;
  for (std::uint32_t n = 0; n < from.nodes().size(); ++n)
    p.groups.push_back(c::views_of(from, n).empty() ? kernel_group({n}, "loops", from.node(n).kind->name)
                                                    : view_group(n));
  return {from, p, c::table_of<c::backend_set<loops>>, 1};
}

TEST(program, says_what_lies_where_and_what_runs) {
  const c::graph from = network();
  const c::dynamic_engine e = engine(from);
  const c::program& p = e.code();
  EXPECT_EQ(c::fault_of(p), "");
  ASSERT_EQ(p.instructions.size(), 4U);
  EXPECT_TRUE(p.instructions[2].is_view());
  EXPECT_EQ(e.steps().size(), 3U);  // nothing runs for the view
  const c::program_region& x = p.regions[from.inputs()[0]];
  EXPECT_EQ(x.where, home::callers_input);
  const std::uint32_t between = p.instructions[0].out[0].region, z = p.instructions[1].out[0].region;
  EXPECT_EQ(p.regions[between].where, home::arena);
  EXPECT_EQ(p.regions[between].first, 0U);
  EXPECT_EQ(p.regions[between].last, 1U);
  EXPECT_EQ(p.regions[z].where, home::callers_output);  // relu writes there; the reshape lies in it
  const c::program_region& seen = p.regions[p.instructions[2].out[0].region];
  EXPECT_EQ(seen.where, home::part);
  EXPECT_EQ(seen.index, z);
  EXPECT_EQ(c::to_text(p, from),
            "program for 1 thread\n"
            "arena host: 0.0 MB, lower bound 0.0 MB\n"
            "\n"
            "regions\n"
            "  %0  96 bytes, input x: x float32[4x6]\n"
            "  %1  96 bytes, arena host at 0, from 0 to 1: neg_0 float32[4x6]\n"
            "  %2  96 bytes, output z: relu_1 float32[4x6]\n"
            "  %3  96 bytes, part of %2 at 0: reshape_2 float32[24]\n"
            "  %4  96 bytes, output y: neg_3 float32[24]\n"
            "\n"
            "instructions\n"
            "  0  loops neg (loop neg) neg_0: %0 -> %1\n"
            "  1  loops relu (loop relu) relu_1: %1 -> %2\n"
            "  2  view in plain (view) reshape_2: %2 -> %3\n"
            "  3  loops neg (loop neg) neg_3: %3 -> %4\n");
}

TEST(program, results_that_have_two_names_are_copied) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {5}});
  const c::value y = g(op::neg, x);
  g.output("y", y);
  g.output("again", y);
  g.output("x", x);
  const c::graph from = g.finish();
  const c::dynamic_engine e = engine(from);
  EXPECT_EQ(c::fault_of(e.code()), "");
  ASSERT_EQ(e.code().instructions.size(), 3U);
  for (const std::size_t i : {1U, 2U})
    EXPECT_TRUE(std::holds_alternative<c::copy_step>(e.code().instructions[i].step)) << i;
  EXPECT_NE(c::to_text(e.code(), from).find("copy to the caller (copy) again: %1 -> "), std::string::npos);
}

TEST(program, what_is_not_sound_is_found) {
  const c::graph from = network();
  const c::program good = engine(from).code();
  const std::uint32_t between = good.instructions[0].out[0].region;
  const auto fault = [&](const std::function<void(c::program&)>& spoil) {
    c::program p = good;
    spoil(p);
    return c::fault_of(p);
  };
  const auto region = [&](const std::function<void(c::program_region&)>& spoil) {
    return fault([&](c::program& p) { spoil(p.regions[between]); });
  };
  EXPECT_EQ(fault([](c::program& p) { p.arenas.clear(); }), "it has no arena of the host");
  EXPECT_EQ(region([](auto& r) { r.offset = 64; }), "region %1 reaches beyond its arena");
  EXPECT_EQ(region([](auto& r) { r.offset = 4; }), "region %1 is not aligned in its arena");
  EXPECT_EQ(region([](auto& r) { r.index = 7; }), "region %1 names arena 7");
  static constexpr c::memory_space other{.id = 40, .name = "other"};
  EXPECT_EQ(region([](auto& r) { r.stored.space = &other; }), "region %1 lies in an arena of another memory space");
  EXPECT_EQ(region([](auto& r) { r.last = 0; }), "instruction 1 (relu_1) reads %1 outside its lifetime");
  EXPECT_EQ(region([](auto& r) { r.first = 1; }), "instruction 0 (neg_0) writes %1 outside its lifetime");
  EXPECT_EQ(region([](auto& r) { r.where = home::nowhere; }), "instruction 0 (neg_0) writes %1, which has no memory");
  EXPECT_EQ(fault([](c::program& p) { std::swap(p.instructions[0], p.instructions[1]); }),
            "instruction 0 (relu_1) reads %1 before it is written");
  EXPECT_EQ(fault([](c::program& p) { p.instructions[0].in[0].region = 99; }),
            "instruction 0 (neg_0) reads %99, which has no memory");
  EXPECT_EQ(fault([](c::program& p) { p.instructions[1].out[0].how = c::access::inout; }),
            "instruction 1 (relu_1) is marked as in place, but overwrites none of its arguments");
  EXPECT_EQ(fault([](c::program& p) { p.instructions.pop_back(); }), "output y is never written");
  EXPECT_EQ(fault([](c::program& p) { p.regions[3].offset = 8; }),
            "region %3 reaches beyond the region that it is a part of");
  EXPECT_EQ(fault([](c::program& p) { p.regions[3].index = 3; }),
            "region %3 is part of a region without memory of its own");
  EXPECT_EQ(fault([&](c::program& p) {
              p.regions.push_back(p.regions[between]);
              p.regions.back().first = p.regions.back().last = 1;
              p.instructions[1].workspace = static_cast<std::uint32_t>(p.regions.size() - 1);
            }),
            "regions %1 and %5 share memory while both are needed");
}

}  // namespace run_program_test
