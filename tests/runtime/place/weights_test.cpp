// The memory of weights as a bounded resource of placing: whatever chooses a plan keeps the bound.
#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/place/explain.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/plan_weights.hpp>
#include <collage/run/weights.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/files.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"
#include "support/plan_making.hpp"

namespace place_weights_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::kernel_group;
using collage_test::message_of;

/// The time of kernels, on a clock that stands still otherwise.
double now_ms = 0;
double pace = 1;  // a factor of these times

using product = c::single<op::matmul>;
using relu = c::single<op::relu>;

constexpr std::int64_t rows = 4, width = 64;
constexpr std::uint64_t layer_bytes = width * width * sizeof(float);

/// y = x w, with w as it is or in a packed form that begins with it.
struct multiply {
  std::shared_ptr<const std::byte> packed;  // null: as it is
  double ms;

  void operator()(const c::kernel_call& call) const {
    const auto* const x = static_cast<const float*>(call.in[0]);
    const auto* const w = static_cast<const float*>(packed != nullptr ? packed.get() : call.in[1]);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < width; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < width; ++k) sum += x[i * width + k] * w[k * width + j];
        static_cast<float*>(call.out[0])[i * width + j] = sum;
      }
    now_ms += pace * ms;
  }
};

/// Faster with larger weights.
struct form_of_weights {
  const char* name;
  std::size_t times;
  double ms;
};
constexpr std::array forms{form_of_weights{"quadruple", 4, 1}, form_of_weights{"double", 2, 2},
                           form_of_weights{"single", 1, 4}};

struct packer : c::backend<"packer"> {
  using patterns = c::patterns<product>;

  static void configurations(const c::match<product>&, c::configuration_list& to) {
    for (const form_of_weights& f : forms) to.add(f.name);
  }
  static c::kept_constants weights(const c::match<product>& m, const c::configuration& how) {
    const form_of_weights& f = form(how);
    return {c::kept_constant{m.record().argument[1], std::string("packer ") + f.name, f.times * layer_bytes}};
  }
  static c::kernel build(const c::match<product>& m, c::build_context& context) {
    const form_of_weights& f = form(context.configuration());
    const c::kept_constant kept = weights(m, context.configuration()).front();
    const auto* const from = context.constant<std::byte>(kept.value);
    auto packed = context.packed(kept.value, kept.packing, kept.bytes, [&](std::byte* to) {
      std::memset(to, 0, f.times * layer_bytes);
      std::memcpy(to, from, layer_bytes);
    });
    c::kernel made(f.name, multiply{std::move(packed), f.ms});
    made.does_not_read(1);
    return made;
  }

 private:
  static const form_of_weights& form(const c::configuration& how) {
    return *std::ranges::find(forms, how.text(), [](const form_of_weights& f) { return std::string(f.name); });
  }
};

/// Reads weights as they are.
struct reader : c::backend<"reader"> {
  using patterns = c::patterns<product, relu>;

  static c::kernel build(const c::match<product>&, c::build_context&) { return {"as it is", multiply{nullptr, 5}}; }
  static c::kernel build(const c::match<relu>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    return {"relu", [count](const c::kernel_call& call) {
              for (std::size_t i = 0; i < count; ++i)
                static_cast<float*>(call.out[0])[i] = std::max(static_cast<const float*>(call.in[0])[i], 0.0F);
              now_ms += pace * 0.5;
            }};
  }
};
using set = c::backend_set<packer, reader>;

/// Layers that multiply by weights of 16 KiB each; with `shares`, all by the same ones.
c::graph layers(std::size_t count, bool shares = false) {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {rows, width}});
  const c::tensor_type type{c::dtype::f32, {width, width}};
  c::value w;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "w" + std::to_string(i);
    if (i == 0 || !shares) w = g.constant(name.c_str(), type, c::uniform{-0.125F, 0.125F});
    x = g(op::relu, g(op::matmul, x, w));
  }
  g.output("y", x);
  c::graph made = g.finish();
  c::fill_constants(made);
  return made;
}

c::place_options options(const c::weight_bound& bound = {}) {
  c::place_options how = collage_test::clock_options(now_ms);
  how.memory = bound;
  return how;
}

std::uint64_t bytes_of(const c::graph& network, const c::placement& p) {
  c::weight_sum sum;
  c::add_weights(network, c::table_of<set>, p, sum);
  return sum.bytes();
}
std::string text_of(const c::plan& made, const c::graph& network) { return c::to_text(c::plan_to_json(made, network)); }
std::ptrdiff_t count(const c::plan& made, const std::string& kernel) {
  return std::ranges::count(made.chosen.groups, kernel, &c::plan_group::kernel);
}

TEST(weights, of_a_plan_keep_the_bound) {
  const c::graph network = layers(4);
  const c::placed_plan made = c::place<set>(network, options());
  // Of 64 KiB at most 96: two layers in the double form save most.
  EXPECT_EQ(count(made, "double"), 2);
  EXPECT_EQ(count(made, "single"), 2);
  EXPECT_EQ(made.memory, (c::weight_memory{6 * layer_bytes, 4 * layer_bytes, 6 * layer_bytes}));
  EXPECT_EQ(bytes_of(network, made.chosen), made.memory->weights);
  EXPECT_DOUBLE_EQ(made.runs[0].median_ms, 2 * 2 + 2 * 4 + 4 * 0.5);
  const std::string page = c::explain(network, made);
  EXPECT_NE(page.find("Its weights take 98.4 KB, 1.50 times the network's 65.6 KB; at most 98.4 KB are allowed."),
            std::string::npos)
      << page;
  for (const c::plan_group& g : made.chosen.groups)
    EXPECT_EQ(g.why, "it belongs to the cheapest placement whose weights keep the bound on memory");
}

TEST(weights, in_bytes) {
  const c::graph network = layers(4);
  EXPECT_EQ(count(c::place<set>(network, options({.bytes = 4 * layer_bytes})), "single"), 4);
  const c::plan made = c::place<set>(network, options({.bytes = 10 * layer_bytes}));
  EXPECT_EQ(made.memory->bound, 10 * layer_bytes);
  EXPECT_EQ(made.memory->weights, 10 * layer_bytes);  // one layer in the quadruple form, and three in the double one
  EXPECT_EQ(count(made, "quadruple"), 1);
  EXPECT_EQ(count(made, "double"), 3);
}

TEST(weights, make_no_difference_where_there_is_room) {
  const c::graph network = layers(5);
  std::vector<std::string> texts;
  for (const c::weight_bound& bound : {c::weight_bound{.ratio = 4}, c::weight_bound{.ratio = 1000},
                                       c::weight_bound{.bytes = std::uint64_t{1} << 62U}}) {
    now_ms = 0;
    c::placed_plan made = c::place<set>(network, options(bound));
    EXPECT_EQ(count(made, "quadruple"), 5);
    EXPECT_EQ(made.memory->weights, 20 * layer_bytes);
    EXPECT_TRUE(made.optimal);
    made.memory.reset();
    texts.push_back(text_of(made, network));
  }
  EXPECT_EQ(texts[1], texts[0]);
  EXPECT_EQ(texts[2], texts[0]);
}

TEST(weights, that_are_shared_count_once) {
  const c::graph network = layers(6, true);
  const c::plan made = c::place<set>(network, options({.ratio = 2}));
  EXPECT_EQ(count(made, "double"), 6);
  EXPECT_EQ(made.memory, (c::weight_memory{2 * layer_bytes, layer_bytes, 2 * layer_bytes}));
}

TEST(weights, of_each_placement_keep_the_bound) {
  const c::graph network = layers(4);
  c::place_options how = options();
  std::size_t improved = 0;
  how.improved = [&](const c::plan& better) {
    ++improved;
    EXPECT_LE(bytes_of(network, better.chosen), 6 * layer_bytes);
    ASSERT_TRUE(better.memory);
    EXPECT_EQ(better.memory->weights, bytes_of(network, better.chosen));
  };
  const c::plan made = c::place<set>(network, how);
  EXPECT_GT(improved, 0U);
  ASSERT_EQ(made.singles.size(), 2U);
  for (const c::placement& single : made.singles) EXPECT_LE(bytes_of(network, single), 6 * layer_bytes) << single.name;
  EXPECT_EQ(made.singles[0].borrowed.size(), 4U);  // the relus alone: there is a smaller form of all weights
}

TEST(weights, of_a_previous_plan_keep_the_bound) {
  const c::graph network = layers(4);
  const c::plan large = c::place<set>(network, options({.ratio = 4}));
  c::place_options how = options();
  how.previous = &large;
  const c::plan made = c::place<set>(network, how);
  EXPECT_EQ(made.memory->weights, 6 * layer_bytes);
  EXPECT_TRUE(std::ranges::none_of(made.runs, [](const c::plan_run& r) { return r.name == c::previous_run; }));
  how.memory.ratio = 4;
  EXPECT_EQ(c::place<set>(network, how).memory->weights, 16 * layer_bytes);
}

TEST(weights, without_measuring_keep_the_bound) {
  const c::graph network = layers(4);
  c::place_options how = options({.ratio = 4});
  how.costs = c::placing_costs::none;
  EXPECT_EQ(count(c::place<set>(network, how), "quadruple"), 4);  // proposed first
  how.memory = {};
  const c::plan made = c::place<set>(network, how);
  EXPECT_EQ(made.origin, "priority");
  EXPECT_LE(made.memory->weights, 6 * layer_bytes);
  EXPECT_GT(count(made, "single"), 0);
  EXPECT_EQ(count(made, "as it is"), 0);
  how.memory.bytes = 4 * layer_bytes;
  EXPECT_EQ(count(c::place<set>(network, how), "single"), 4);
}

TEST(weights, that_do_not_fit_are_an_error) {
  const c::graph network = layers(4);
  const std::string why =
      "network network: no plan was found whose weights take at most 62.5 KB; the smallest one that was found needs 65.6 "
      "KB; allow so much memory for weights (--memory, place_options::memory), or more backends";
  for (const bool measure : {true, false}) {
    c::place_options how = options({.bytes = 63'000});
    how.costs = measure ? c::placing_costs::measured : c::placing_costs::none;
    EXPECT_EQ(message_of([&] { (void)c::place<set>(network, how); }), why) << measure;
    how.memory.bytes = 65'600;  // as the message says
    EXPECT_EQ(c::place<set>(network, how).memory->weights, 4 * layer_bytes);
  }
  for (const double ratio : {0.0, -1.0, 1.0 / 0.0})
    EXPECT_EQ(
        message_of([&] { (void)c::place<set>(network, options({.ratio = ratio})); }),
        "memory: the ratio for the memory of weights is not a number above 0; give a ratio such as 1.5, or bytes");
}

/// Its only form of weights is large.
struct bulky : c::backend<"bulky"> {
  using patterns = c::patterns<product>;

  static c::kept_constants weights(const c::match<product>& m, const c::configuration&) {
    return {c::kept_constant{m.record().argument[1], "bulky", 4 * layer_bytes}};
  }
  static c::kernel build(const c::match<product>&, c::build_context&) { return {"bulky", multiply{nullptr, 1}}; }
};
struct spare_product : c::pattern<"spare_product"> {
  static constexpr bool last_resort = true;
  static constexpr auto expr = op::matmul(c::any, c::any);
};
struct spare : c::backend<"spare"> {
  using patterns = c::patterns<spare_product, relu>;

  static c::kernel build(const c::match<spare_product>&, c::build_context&) { return {"spare", multiply{nullptr, 9}}; }
  static c::kernel build(const c::match<relu>& m, c::build_context& context) { return reader::build(m, context); }
};

/// A fallback kernel is not measured if another kernel runs its nodes, unless all others keep too large weights.
TEST(weights, of_fallback_kernels_keep_the_bound) {
  using with_spare = c::backend_set<bulky, spare>;
  const collage_test::temporary_folder here;
  const c::graph network = layers(2);
  const auto place = [&](const c::weight_bound& bound) {
    c::place_options how = options(bound);
    how.store = here.path("costs.db");
    return c::place<with_spare>(network, how);
  };
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(count(place({.ratio = 4}), "bulky"), 2);
    EXPECT_EQ(count(place({}), "spare"), 2);
  }
  // One of the layers has room for the large form.
  const c::plan made = place({.bytes = 5 * layer_bytes});
  EXPECT_EQ(count(made, "bulky"), 1);
  EXPECT_EQ(count(made, "spare"), 1);
}

TEST(weights, of_kept_comparisons_keep_the_bound) {
  const collage_test::temporary_folder here;
  const c::graph network = layers(4);
  const auto place = [&](const c::weight_bound& bound) {
    c::place_options how = options(bound);
    how.store = here.path("costs.db");
    return c::place<set>(network, how);
  };
  EXPECT_EQ(place({.ratio = 4}).memory->weights, 16 * layer_bytes);
  const c::placed_plan bounded = place({});
  EXPECT_FALSE(bounded.report.compared_before);
  EXPECT_EQ(bounded.memory->weights, 6 * layer_bytes);
  const c::placed_plan again = place({});
  EXPECT_TRUE(again.report.compared_before);
  EXPECT_EQ(text_of(again, network), text_of(bounded, network));
}

/// A backend without the member keeps each constant once, as it is. So no bound above that is of any effect.
TEST(weights, that_engines_have_packed_are_preferred_by_estimates) {
  const collage_test::temporary_folder files;
  pace = 1e-3;  // about the time of packing so small weights, as a part of a run
  c::place_options how = options({.ratio = 4});
  how.store = files.path("costs.db");
  how.comparing.seconds *= pace;
  (void)c::place<set>(layers(1), how);

  const c::graph network = layers(4);
  how.costs = c::placing_costs::estimated;
  how.packed = std::make_shared<c::packed_weights>();
  const c::plan fastest = c::place<set>(network, how);
  EXPECT_EQ(count(fastest, "quadruple"), 4);  // there are no engines yet
  EXPECT_TRUE(fastest.optimal);
  c::plan small = fastest;
  for (c::plan_group& g : small.chosen.groups)
    if (g.backend() == "packer") collage_test::kernel_of(g).configuration = "double";
  {
    const c::dynamic_engine engine = c::engine<set>(network, small, small.chosen, how.packed);
    EXPECT_EQ(how.packed->bytes(), 8 * layer_bytes);
    const c::plan made = c::place<set>(network, how);
    EXPECT_EQ(count(made, "double"), 4);
    EXPECT_NEAR(made.chosen.cost_ms, 4 * (2 + 0.5) * pace, 1e-9);  // of the kernels alone
    EXPECT_NEAR(made.lower_bound_ms, fastest.chosen.cost_ms, 1e-9);
    EXPECT_FALSE(made.optimal);
    pace = 1;  // where kernels take longer, it is worth packing them
    c::place_options slow = how;
    slow.store = files.path("slow.db");
    slow.costs = c::placing_costs::measured;
    (void)c::place<set>(layers(1), slow);
    slow.costs = c::placing_costs::estimated;
    EXPECT_EQ(count(c::place<set>(network, slow), "quadruple"), 4);
  }
  EXPECT_EQ(how.packed->size(), 0U);
  EXPECT_EQ(count(c::place<set>(network, how), "quadruple"), 4);
}

TEST(weights, as_they_are_need_no_bound) {
  using readers = c::backend_set<reader>;
  const collage_test::temporary_folder here;
  const c::graph network = layers(3);
  const auto place = [&](const c::weight_bound& bound) {
    c::place_options how = options(bound);
    how.store = here.path("costs.db");
    return c::place<readers>(network, how);
  };
  const c::placed_plan made = place({.ratio = 1});
  EXPECT_EQ(made.memory, (c::weight_memory{3 * layer_bytes, 3 * layer_bytes, 3 * layer_bytes}));
  EXPECT_TRUE(place({.ratio = 2}).report.compared_before);
  EXPECT_EQ(place({.ratio = 2}).memory->bound, 6 * layer_bytes);
}

/// Both subgraphs of a branch, and the layers around it.
TEST(weights, of_subgraphs_count) {
  const auto side = [](std::size_t count) { return std::make_shared<const c::graph>(layers(count)); };
  c::graph_builder g;
  const std::vector<std::shared_ptr<const c::graph>> bodies{side(2), side(2)};
  const c::value wanted = g.input("wanted", {c::dtype::boolean, {}});
  const c::value x = g.input("x", {c::dtype::f32, {rows, width}});
  const c::value w = g.constant("w", {c::dtype::f32, {width, width}}, c::uniform{-0.125F, 0.125F});
  const std::vector<c::value> operands{wanted, g(op::matmul, x, w)};
  g.output("y", g.add(c::kind_of<decltype(op::branch)>, operands, {}, "branch", bodies));
  c::graph network = g.finish();
  c::fill_constants(network);
  EXPECT_EQ(c::place<set>(network, options({.ratio = 4})).memory,
            (c::weight_memory{20 * layer_bytes, 5 * layer_bytes, 20 * layer_bytes}));
  // In proportion, each network has room for the double form. So it has with bytes.
  for (const c::weight_bound& bound : {c::weight_bound{.ratio = 2}, c::weight_bound{.bytes = 10 * layer_bytes}})
    EXPECT_EQ(c::place<set>(network, options(bound)).memory,
              (c::weight_memory{10 * layer_bytes, 5 * layer_bytes, 10 * layer_bytes}));
}

TEST(weights, are_written_to_plan_files) {
  const c::graph network = layers(2);
  const c::plan made = c::place<set>(network, options());
  const std::string text = text_of(made, network);
  EXPECT_NE(text.find("\"memory\": {\"weights\": 49152, \"network\": 32768, \"bound\": 49152}"), std::string::npos)
      << text;
  const c::plan read = c::plan_from_json(c::json::parse(text), network, "file");
  EXPECT_EQ(read.memory, made.memory);
  EXPECT_EQ(text_of(read, network), text);
  c::json older = c::json::parse(text);
  older.erase("memory");
  EXPECT_FALSE(c::plan_from_json(older, network, "file").memory);
  older["memory"] = {{"weights", 1U}, {"network", -1}, {"bound", 3U}};
  EXPECT_NE(message_of([&] { (void)c::plan_from_json(older, network, "file"); }).find("memory.network"),
            std::string::npos);
}

TEST(weights, of_plans_by_hand) {
  const c::graph network = layers(2);
  c::placement p;
  p.groups = {kernel_group({0}, "packer", "matmul"), kernel_group({1}, "reader", "relu"),
              kernel_group({2}, "reader", "matmul"), kernel_group({3}, "reader", "relu")};
  collage_test::kernel_of(p.groups[0]).configuration = "double";
  EXPECT_EQ(bytes_of(network, p), 3 * layer_bytes);
  collage_test::kernel_of(p.groups[2]).backend = "unknown";
  EXPECT_EQ(bytes_of(network, p), 2 * layer_bytes);
}

}  // namespace place_weights_test
