// Search spaces that backends give for their matches, as the table has them.
#include <collage/backend_set.hpp>
#include <collage/detail/sentence.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/match.hpp>
#include <collage/pattern/single.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>
#include <collage/tune/any_space.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace run_search_space_test {

namespace c = collage;
namespace op = collage::ops;
using relu = c::single<op::relu>;

/// Loops over so many elements.
struct loop_space {
  static constexpr const char* name = "loop";
  static constexpr int version = 1;
  static constexpr std::array<const char*, 2> parameters = {"unroll", "block"};
  static constexpr std::array<const char*, 3> feature_names = {"log unroll", "log block", "useful share of blocks"};

  std::int64_t elements = 1;

  std::span<const int> values(std::size_t parameter) const {
    static constexpr std::array unrollings = {1, 2, 4, 8};
    static constexpr std::array blocks = {4, 16, 64};
    return parameter == 0 ? std::span<const int>(unrollings) : std::span<const int>(blocks);
  }
  c::detail::sentence conflict(const std::array<int, 2>& p) const {
    c::detail::sentence why;
    if (p[0] > p[1]) why << "one round of " << p[0] << " is more than a block of " << p[1];
    return why;
  }
  double estimate(const std::array<int, 2>& p) const {
    return static_cast<double>(blocks_of(p) * p[1]) * (1 + 2.0 / p[0]) + 10 * static_cast<double>(blocks_of(p));
  }
  std::array<float, 3> features(const std::array<int, 2>& p) const {
    return {std::log2(static_cast<float>(p[0])), std::log2(static_cast<float>(p[1])),
            static_cast<float>(elements) / static_cast<float>(blocks_of(p) * p[1])};
  }

 private:
  std::int64_t blocks_of(const std::array<int, 2>& p) const { return (elements + p[1] - 1) / p[1]; }
};

struct loops : c::backend<"loops"> {
  using patterns = c::patterns<relu>;
  static c::kernel build(const c::match<relu>&, c::build_context&) { return {}; }

  static void configurations(const c::match<relu>&, c::configuration_list& to) { to.add("loop1 unroll 4 block 16"); }
  static std::shared_ptr<const c::tune::any_space> search_space(const c::match<relu>& m, const c::configuration& like,
                                                                int) {
    if (!like.text().starts_with("loop1 ")) return nullptr;
    return std::make_shared<const c::tune::any_space>(
        loop_space{m.graph().values[m.record().output[0]].type.dims.elements()});
  }
};
struct numbered : c::backend<"numbered"> {
  using patterns = c::patterns<relu>;
  static c::kernel build(const c::match<relu>&, c::build_context&) { return {}; }
};

TEST(search_spaces, are_in_the_table) {
  c::graph_builder g;
  g.output("y", g(op::relu, g.input("x", {c::dtype::f32, {5, 4}})));
  const c::graph network = g.finish();
  constexpr c::backend_table table = c::table_of<c::backend_set<loops, numbered>>;
  const c::pattern_entry& pattern = table[0].patterns[0];
  EXPECT_EQ(table[1].patterns[0].search_space, nullptr);
  ASSERT_NE(pattern.search_space, nullptr);
  c::match_record record;
  ASSERT_TRUE(c::match_at(network.view(), pattern.nodes, 0, record));
  EXPECT_EQ(pattern.search_space(network.view(), record, c::configuration(), 1), nullptr);

  const c::configuration like = *c::proposed_for(pattern, network.view(), record).begin();
  const std::shared_ptr<const c::tune::any_space> space = pattern.search_space(network.view(), record, like, 1);
  ASSERT_NE(space, nullptr);
  EXPECT_EQ(space->size(), 11U) << "12 combinations, without rounds of 8 in blocks of 4";
  EXPECT_TRUE(space->find(like.text()));
  std::vector<std::uint32_t> all(space->size());
  std::iota(all.begin(), all.end(), 0U);
  // 20 elements are two blocks of 16: 32 elements for 1.25 each, and 10 for each block. Others take longer.
  EXPECT_EQ(space->text(c::tune::order_of(*space, all, nullptr).front()), "loop1 unroll 8 block 16");
}

}  // namespace run_search_space_test
