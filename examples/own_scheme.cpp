// A matrix algorithm of one's own, run by generated kernels: declared, proved by the compiler, and placed where it is the fastest.
// needs: jit portable
#include <collage/backends/jit_with.hpp>
#include <collage/backends/portable.hpp>
#include <collage/bilinear/all.hpp>
#include <collage/place.hpp>
#include <collage/run/verify.hpp>
#include <cstdio>

namespace c = collage;
namespace bilinear = collage::bilinear;

struct my_products {
  using problem = bilinear::matmul<2, 2, 2>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::product<problem> products[] = {
      {{1, 0, 0, 1}, {1, 0, 0, 1}, {1, 0, 0, 1}},  {{1, 0, 0, 0}, {0, 1, 0, 1}, {0, 1, 0, -1}},
      {{0, 0, 1, -1}, {1, 0, 0, 0}, {0, 0, 1, 1}}, {{-1, 1, 0, 0}, {0, 0, 0, 1}, {1, 1, 0, 0}},
      {{0, 0, 0, 1}, {1, 0, 1, 0}, {-1, 0, 1, 0}}, {{1, 0, 1, 0}, {-1, 1, 0, 0}, {0, 0, 0, 1}},
      {{0, 1, 0, 1}, {0, 0, 1, -1}, {1, 0, 0, 0}}};
};
using mine = bilinear::scheme<my_products>;
using backends = c::backend_set<c::jit_with<mine>, c::portable>;

int main() try {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {128, 768}});
  g.output("y", g(c::ops::matmul, x, g.constant("w", {c::dtype::f32, {768, 768}}, {-0.1F, 0.1F})));
  c::graph network = g.finish();
  c::fill_constants(network);

  // Twice as much memory for weights as the network has, since sums of their blocks are kept.
  const c::placed_plan plan = c::place<backends>(network, {.threads = 1, .memory = {.ratio = 2}});
  for (const c::plan_group& group : plan.chosen.groups) {
    std::printf("%-40s %8.4f ms\n", group.kernel.c_str(), group.cost_ms);
    for (const auto& other : group.runners_up)
      std::printf("  slower: %-30s %8.4f ms\n", other.kernel.c_str(), other.cost_ms);
  }
  return c::verify<backends>(network, plan) ? 0 : 1;  // against the reference
} catch (const c::error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return e.exit_code();
}
