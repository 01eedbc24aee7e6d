// The order in which the candidates of one list are built.
#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place/building_order.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/kernel.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace building_order_test {

namespace c = collage;
namespace op = collage::ops;
using relu = c::single<op::relu>;

c::kernel nothing() {
  return {"nothing", [](const c::kernel_call&) {}};
}

struct direct : c::backend<"direct"> {
  using patterns = c::patterns<relu>;
  static std::size_t choices(const c::match<relu>&) { return 3; }
  static c::kernel build(const c::match<relu>&, c::build_context&) { return nothing(); }
};
/// Its first configuration is direct.
struct other : c::backend<"other"> {
  using patterns = c::patterns<relu>;
  static void configurations(const c::match<relu>&, c::configuration_list& to) {
    for (const char* text : {"definition", "first", "second"}) to.add(text);
  }
  static c::kernel_algorithm algorithm(const c::match<relu>&, const c::configuration& how) {
    return {.name = how.text() == "definition" ? "" : "F(4,3)"};
  }
  static c::kernel build(const c::match<relu>&, c::build_context&) { return nothing(); }
};
struct late : c::backend<"late"> {
  using patterns = c::patterns<relu>;
  static std::size_t choices(const c::match<relu>&) { return 2; }
  static c::kernel build(const c::match<relu>&, c::build_context&) { return nothing(); }
};

/// The order as a text, with a star after candidates that direct ones follow.
template <class Set>
std::string order(bool may_end_early) {
  c::graph_builder g;
  g.output("y", g(op::relu, g.input("x", {1, 4})));
  const c::graph network = g.finish();
  const c::place_candidates found =
      c::find_candidates(network, c::table_of<Set>, std::vector<bool>(c::table_of<Set>.size(), true));
  std::vector<std::uint32_t> asked;
  for (std::uint32_t i = 0; i < found.list.size(); ++i) asked.push_back(i);
  std::string text;
  for (const c::detail::building_turn& turn :
       c::detail::building_order(network, c::table_of<Set>, found, asked, may_end_early)) {
    const c::place_candidate& k = found.list[asked[turn.which]];
    text += std::string(c::table_of<Set>[k.backend].name) + " " + k.configuration.text() +
            (turn.direct_left ? "*, " : ", ");
  }
  return text;
}

TEST(building_order, direct_kernels_come_first) {
  EXPECT_EQ((order<c::backend_set<direct, other, late>>(false)),
            "direct 0*, direct 1*, direct 2*, other definition*, late 0*, late 1, other first, other second, ");
}

TEST(building_order, each_backend_has_its_turn_where_time_may_end) {
  EXPECT_EQ((order<c::backend_set<direct, other, late>>(true)),
            "direct 0*, other definition*, late 0*, other first*, direct 1*, late 1*, other second*, direct 2, ");
}

}  // namespace building_order_test
