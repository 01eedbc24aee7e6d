// Traces as files: hostile names, conversions, bytes and arithmetic of steps, stages of sessions.
#include "support/messages.hpp"
#include "support/plan_making.hpp"
#include "support/sessions.hpp"

#include <collage/io/trace.hpp>
#include <collage/ops.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/trace.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace io_trace_test {

namespace c = collage;
namespace op = collage::ops;

/// Quotes, a backslash, control characters, markup, a byte that is not UTF-8.
const std::string hostile = "a\"b\\c\n\t\x01</script>\xff{}";

c::graph product() {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 3}});
  const c::value w = g.constant("w", {c::dtype::f32, {3, 4}}, c::allocate_bytes(48));
  g.output("y", g(op::relu, g(op::matmul, x, w)));
  return g.finish();
}

/// An engine over a network, its description, and memory.
struct running {
  c::graph network;
  c::dynamic_engine engine;
  std::shared_ptr<const c::traced_engine> described;
  c::run_buffers memory;
  c::dynamic_context context;

  explicit running(c::graph from, const std::string& name)
      : network(std::move(from)),
        engine(network, collage_test::unmeasured_plan(network, nullptr).chosen,
               c::table_of<collage_test::session_backends>, 1),
        described(c::traced(engine, network, name)),
        memory(network),
        context(engine.context()) {}
};

/// The events of a trace with a phase.
std::vector<c::json> events_of(const std::string& text, const char* phase) {
  std::vector<c::json> list;
  const c::json trace = c::json::parse(text);
  for (const c::json& e : trace["traceEvents"])
    if (e["ph"] == phase) list.push_back(e);
  return list;
}

TEST(io_trace, counts_arithmetic_and_bytes_of_steps) {
  const running r(product(), "net");
  ASSERT_EQ(r.described->steps.size(), 2U);
  const c::traced_step& matmul = r.described->steps[0];
  EXPECT_EQ(matmul.flops, 2.0 * 2 * 3 * 4);
  EXPECT_EQ(matmul.bytes_read, 4U * (2 * 3 + 3 * 4));
  EXPECT_EQ(matmul.bytes_written, 4U * 2 * 4);
  EXPECT_EQ(r.described->steps[1].bytes_read, 4U * 2 * 4);
  EXPECT_FALSE(matmul.is_conversion());
}

TEST(io_trace, writes_one_event_for_each_run_and_step) {
  running r(product(), "net");
  c::run_trace trace;
  for (int i = 0; i < 3; ++i) trace.run(r.context, r.described, r.memory.inputs, r.memory.outputs);
  EXPECT_EQ(trace.events(), 9U);
  const std::vector<c::json> events = events_of(c::to_text(trace, "process"), "X");
  ASSERT_EQ(events.size(), 9U);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(events[i]["args"]["run"], i / 3 + 1);
  EXPECT_EQ(events[0]["cat"], "run");
  EXPECT_EQ(events[1]["args"]["backend"], "portable");
  EXPECT_EQ(events[1]["args"]["bytes_written"], 32);
  const double rate = events[1]["args"]["gflops_per_s"];
  EXPECT_NEAR(rate * events[1]["dur"].get<double>() * 1e3, 48, 48 * 1e-4);
}

TEST(io_trace, escapes_hostile_names) {
  c::graph_builder g;
  const c::value x = g.input(hostile, {c::dtype::f32, {4}});
  g.output(hostile + "y", g.named(hostile + "node")(op::relu, x));
  running r(g.finish(), hostile);
  c::run_trace trace;
  trace.run(r.context, r.described, r.memory.inputs, r.memory.outputs);
  const std::string text = c::to_text(trace, hostile);
  for (const char byte : text) EXPECT_TRUE(byte == '\n' || static_cast<unsigned char>(byte) >= 0x20);
  const std::string replaced = hostile.substr(0, hostile.find('\xff')) + "\xEF\xBF\xBD{}";
  const std::vector<c::json> events = events_of(text, "X");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["name"], replaced);
  EXPECT_EQ(events[1]["name"], replaced + "node");
  EXPECT_EQ(events_of(text, "M")[0]["args"]["name"], replaced);
}

TEST(io_trace, an_empty_trace_is_a_trace) {
  const c::json trace = c::json::parse(c::to_text(c::run_trace(), "process"));
  ASSERT_EQ(trace["traceEvents"].size(), 1U);
  EXPECT_EQ(trace["otherData"]["runs"], 0);
}

TEST(io_trace, a_failed_run_is_as_long_as_it_came) {
  running r(product(), "net");
  c::run_trace trace;
  const c::run_limits over{.seconds = -1};
  EXPECT_NE(collage_test::message_of([&] {
              trace.run(r.context, r.described, r.memory.inputs, r.memory.outputs, over);
            }).find("before step 1 of 2"),
            std::string::npos);
  const std::vector<c::json> events = events_of(c::to_text(trace, "process"), "X");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["args"]["failed"], true);
}

TEST(io_trace, refuses_the_description_of_another_engine) {
  running r(product(), "net");
  c::graph_builder g;
  g.output("y", g(op::relu, g.input("x", {c::dtype::f32, {4}})));
  const running other(g.finish(), "other");
  c::run_trace trace;
  EXPECT_NE(collage_test::message_of([&] {
              trace.run(r.context, other.described, r.memory.inputs, r.memory.outputs);
            }).find("another engine"),
            std::string::npos);
  // So is one of an engine with more steps that takes and makes the same.
  const auto relus = [](int count) {
    c::graph_builder b;
    c::value v = b.input("x", {c::dtype::f32, {4}});
    for (int i = 0; i < count; ++i) v = b(op::relu, v);
    b.output("y", v);
    return b.finish();
  };
  running one(relus(1), "one");
  const running three(relus(3), "three");
  ASSERT_GT(three.described->steps.size(), one.described->steps.size());
  EXPECT_NE(collage_test::message_of([&] {
              trace.run(one.context, three.described, one.memory.inputs, one.memory.outputs);
            }).find("another engine"),
            std::string::npos);
  EXPECT_FALSE(trace.contents().runs.back()->is_complete);
  trace.run(one.context, one.described, one.memory.inputs, one.memory.outputs);
  EXPECT_TRUE(trace.contents().runs.back()->is_complete);
  EXPECT_NE(collage_test::message_of([&] { (void)c::traced(r.engine, other.network, "net"); }).find("the network"),
            std::string::npos);
}

/// Sessions show their stages, and when an engine was made.
TEST(io_trace, shows_stages_of_sessions) {
  const auto source = c::source_of({{.name = "x", .dims = {c::unknown, 3}, .symbols = {"rows", ""}}}, {{.name = "y"}},
                                   [](std::span<const c::shape> dims) {
                                     c::graph_builder g;
                                     g.output("y", g(op::relu, g.input("x", {c::dtype::f32, dims[0]})));
                                     return g.finish();
                                   });
  const c::session session = collage_test::unmeasured_session(source);
  c::session_context context = session.context();
  c::run_trace trace;
  const c::tensor x(c::tensor_type{c::dtype::f32, {5, 3}});
  context.trace_into(&trace);
  (void)context.run({x});
  context.trace_into(nullptr);
  (void)context.run({x});
  const std::vector<c::json> events = events_of(c::to_text(trace, "process"), "X");
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[1]["cat"], "engine");
  EXPECT_EQ(events[2]["cat"], "stage");
  EXPECT_EQ(events[2]["name"], "x float32[5x3]");
  EXPECT_EQ(events[3]["cat"], "kernel");
  EXPECT_LT(events[3]["dur"].get<double>(), events[1]["dur"].get<double>());
}

}  // namespace io_trace_test
