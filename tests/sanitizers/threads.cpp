// Threads that use one session at the same time, for the thread sanitizer:  collage_threads CASE
//
// The libraries are compiled into this program, because all that synchronises must be instrumented. libgomp is not, so they are
// compiled without OpenMP.
#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/backends/any_match.hpp>
#include <collage/backends/reference.hpp>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/onnx/model_source.hpp>
#include <collage/ops.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/session.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/plan_making.hpp"

namespace {

namespace c = collage;
namespace op = collage::ops;

struct one_operator : c::pattern<"one_operator"> {
  static constexpr auto expr = c::any_operator;
};

/// Runs every operator by its reference. It packs constants, so that engines share packed weights.
struct referring : c::backend<"referring"> {
  using patterns = c::patterns<one_operator>;
  static constexpr c::verdict accepts(const c::any_match&) { return {}; }
  static c::kernel build(const c::any_match& m, c::build_context& context) {
    const std::uint32_t node = m.nodes().back();
    const c::kind_info* const kind = m.graph().nodes[node].kind;
    const std::span<const std::uint64_t> list = m.graph().words_of(node);
    const std::vector<std::uint64_t> words(list.begin(), list.end());
    struct operand {
      c::tensor_type type;
      std::size_t argument = 0;
      std::shared_ptr<const std::byte> packed;
    };
    std::vector<operand> operands;
    for (const std::uint32_t v : m.inputs_of(node)) {
      operand& o = operands.emplace_back(operand{m.type_of(v), m.index_of(v), nullptr});
      const std::byte* const contents = context.constant<std::byte>(v);
      const std::size_t bytes = o.type.bytes();
      if (contents == nullptr || bytes == 0) continue;
      o.packed =
          context.packed(v, "referring copy", bytes, [&](std::byte* made) { std::memcpy(made, contents, bytes); });
    }
    return c::kernel("reference", [kind, words, operands](const c::kernel_call& call) {
      std::vector<c::oracle_value> in;
      for (const operand& o : operands) {
        const void* const at = o.packed != nullptr ? o.packed.get() : call.in[o.argument];
        in.push_back(c::to_oracle({static_cast<const std::byte*>(at), o.type}));
      }
      const std::vector<c::oracle_value> made = c::evaluate_node(*kind, words, in);
      for (std::size_t i = 0; i < made.size(); ++i)
        if (call.out[i] != nullptr) c::from_oracle(made[i], static_cast<std::byte*>(call.out[i]));
    });
  }
};
using set = c::backend_set<referring>;

c::plan plan_of(const c::graph& network, const std::shared_ptr<c::packed_weights>&) {
  c::plan made;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    made.chosen.groups.push_back(collage_test::kernel_group({n}, "referring", "one_operator"));
  return made;
}

c::session session_over(std::shared_ptr<const c::network_source> source, const c::session_options& options) {
  return {std::move(source), c::table_of<set>, plan_of, options};
}

std::shared_ptr<const std::byte> weights(std::size_t count) {
  const std::shared_ptr<std::byte> bytes = c::allocate_bytes(count * sizeof(float));
  for (std::size_t i = 0; i < count; ++i)
    reinterpret_cast<float*>(bytes.get())[i] = 0.5F * static_cast<float>(i % 5) - 1;
  return bytes;
}

c::tensor random_rows(std::int64_t rows, std::mt19937& random) {
  c::tensor x(c::tensor_type{c::dtype::f32, {rows, 3}});
  for (float& e : x.as<float>()) e = 0.25F * static_cast<float>(random() % 9) - 1;
  return x;
}

std::atomic<int> wrong = 0;
void expect(bool holds, const char* what) {
  if (holds) return;
  ++wrong;
  std::cout << what << "\n";
}

void in_threads(int count, auto work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([=] {
      std::mt19937 random(std::random_device{}());
      try {
        work(random);
      } catch (const std::exception& e) { expect(false, e.what()); }
    });
  for (std::thread& t : threads) t.join();
}

/// y = relu(x w), and x itself. Few engines, so that they are made, shared and given back all the time.
void share_a_session() {
  const auto w = weights(12);
  const auto source = c::source_of({{.name = "x", .dims = {c::unknown, 3}}}, {{.name = "y"}, {.name = "same"}},
                                   [w](std::span<const c::shape> dims) {
                                     c::graph_builder g;
                                     const c::value x = g.input("x", {c::dtype::f32, dims[0]});
                                     const c::value constant = g.constant("w", {c::dtype::f32, {3, 4}}, w);
                                     // Folded while a stage is made: equal contents at another address each time.
                                     g.output("y", g(op::relu, g(op::matmul, x, g(op::add, constant, constant))));
                                     g.output("same", x);
                                     return g.finish();
                                   });
  const auto right = [&](const c::tensor& x, const c::const_tensor_view& y) {
    const auto* const m = reinterpret_cast<const float*>(w.get());
    for (std::size_t r = 0; r < static_cast<std::size_t>(x.type().dims[0]); ++r)
      for (std::size_t k = 0; k < 4; ++k) {
        float sum = 0;
        for (std::size_t i = 0; i < 3; ++i) sum += x.as<float>()[3 * r + i] * 2 * m[4 * i + k];
        if (y.as<float>()[4 * r + k] != std::max(sum, 0.0F)) return false;
      }
    return true;
  };
  for (const std::size_t most_bytes : {0U, 1U}) {
    const c::session session = session_over(source, {.most_engines = 2, .most_bytes = most_bytes});
    in_threads(4, [&](std::mt19937& random) {
      for (int contexts = 0; contexts < 4; ++contexts) {
        c::session_context context = session.context();
        for (int i = 0; i < 20; ++i) {
          const c::tensor x = random_rows(static_cast<std::int64_t>(random() % 5), random);
          if (random() % 2 == 0) {
            expect(right(x, context.run({x})[0].contents), "a product is wrong");
          } else {
            const c::tensor y(c::tensor_type{c::dtype::f32, {x.type().dims[0], 4}}), same(x.type());
            const std::vector<c::const_tensor_view> in{x};
            const std::vector<c::tensor_view> out{y, same};
            context.run(in, out, {.seconds = 60});
            expect(right(x, y), "a product in the caller's memory is wrong");
          }
          if (random() % 8 == 0) (void)session.improve(plan_of);
          expect(session.state().engines <= 2, "more engines are kept than may be");
        }
      }
    });
    expect(session.state().given_back > 0, "no engine was given back");
  }
}

/// The rows of x whose mask is set, before those of w; then all of x. The first operator ends a stage.
c::onnx::model choosing_rows() {
  c::onnx::model m;
  m.file = "choosing_rows";
  m.opsets[""] = 17;
  const auto port = [](const char* name, int type, std::vector<c::onnx::model_extent> extents) {
    return c::onnx::model_port{name, true, type, true, std::move(extents)};
  };
  m.graph.inputs = {port("x", 1, {{c::unknown, "N"}, {3, ""}}), port("mask", 9, {{c::unknown, "N"}})};
  m.graph.outputs = {port("y", 1, {{c::unknown, "M"}, {3, ""}})};
  m.graph.initializers.push_back({"w", 1, {2, 3}, weights(6), {}, {}});
  c::onnx::model_attribute axis;
  axis.name = "axis";
  axis.form = c::onnx::attribute_form::integer;
  m.graph.nodes.push_back({"", "Compress", "", "", {"x", "mask"}, {"kept"}, {axis}});
  m.graph.nodes.push_back({"", "Concat", "", "", {"kept", "w", "x"}, {"y"}, {axis}});
  return m;
}

void run_in_stages(const c::session& session, std::mt19937& random, int runs) {
  c::session_context context = session.context();
  const auto w = weights(6);
  for (int i = 0; i < runs; ++i) {
    const auto rows = static_cast<std::int64_t>(1 + random() % 4);
    const c::tensor x = random_rows(rows, random), mask(c::tensor_type{c::dtype::boolean, {rows}});
    std::vector<float> expected;
    const auto list = x.as<float>();
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
      const bool kept = random() % 2 == 0;
      mask.as<std::uint8_t>()[r] = kept ? 1 : 0;
      if (kept)
        expected.insert(expected.end(), list.begin() + 3 * static_cast<std::ptrdiff_t>(r),
                        list.begin() + 3 * static_cast<std::ptrdiff_t>(r) + 3);
    }
    const auto* const constant = reinterpret_cast<const float*>(w.get());
    expected.insert(expected.end(), constant, constant + 6);
    expected.insert(expected.end(), list.begin(), list.end());
    if (random() % 8 == 0) (void)session.improve(plan_of);
    const auto y = context.run({x, mask})[0].contents.as<float>();
    expect(std::equal(y.begin(), y.end(), expected.begin(), expected.end()), "chosen rows are wrong");
  }
}

void share_stages() {
  const auto source = std::make_shared<const c::onnx::model_source>(choosing_rows());
  const c::session session = session_over(source, {.most_engines = 2});
  in_threads(4, [&](std::mt19937& random) { run_in_stages(session, random, 40); });
  expect(session.state().given_back > 0, "no stage was given back");
}

/// Each thread has a session of its own over one source.
void share_a_source() {
  const auto source = std::make_shared<const c::onnx::model_source>(choosing_rows());
  in_threads(3, [&](std::mt19937& random) {
    for (int i = 0; i < 4; ++i) run_in_stages(session_over(source, {}), random, 8);
  });
}

/// What the sanitizer must find.
void race() {
  int unguarded = 0;
  in_threads(2, [&](std::mt19937& random) { unguarded += static_cast<int>(random() % 2); });
  expect(unguarded >= 0, "a sum is negative");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string_view which = arguments[1];
  if (which == "session") share_a_session();
  else if (which == "stages") share_stages();
  else if (which == "source") share_a_source();
  else if (which == "race") race();
  else return 2;
  std::cout << (wrong == 0 ? "all is right\n" : "something is wrong\n");
  return wrong == 0 ? 0 : 1;
}
