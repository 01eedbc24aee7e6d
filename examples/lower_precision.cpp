// The fastest plan in bfloat16 and float32 whose outputs err at most 1 %.
// needs: place onednn
#include <collage/backend_set.hpp>
#include <collage/backends/onednn.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/pattern.hpp>
#include <collage/place/error_curve.hpp>
#include <collage/place/within_error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>

namespace op = collage::ops;

struct product_relu : collage::pattern<"product_relu"> {
  static constexpr auto expr = op::relu(op::matmul(collage::any, collage::constant));
};

int main() {
  collage::graph_builder g;
  const auto x = g.input("x", {collage::dtype::f32, {32, 256}});
  const auto w = g.constant("w", {collage::dtype::f32, {256, 256}}, collage::uniform{-0.1F, 0.1F});
  g.output("y", g(op::relu, g(op::matmul, x, w)));
  collage::graph network = g.finish();
  collage::fill_constants(network);

  // Sample number `which`, written to the inputs of the network. The same number always means the same sample.
  const collage::sample_source samples = [](std::size_t which, std::span<const collage::tensor_view> inputs) {
    if (which >= 16) return false;
    std::mt19937_64 random(which);
    std::normal_distribution<float> normal;
    auto* const to = static_cast<float*>(inputs[0].data);
    for (std::int64_t i = 0; i < inputs[0].type.dims.elements(); ++i) to[i] = normal(random);
    return true;
  };
  collage::place_options how;
  how.precision.elements = collage::precisions::bf16;
  how.precision.most_error = 0.01;
  how.comparing.seconds = 0.2;
  const collage::placed_within_error made =
      collage::place_within_error(network, collage::table_of<collage::backend_set<collage::onednn>>, how, samples);
  std::printf("%s\n", made.precision.c_str());
  if (made.error) std::printf("error %.2g, at most %.2g\n", made.error->measured, made.error->upper);

  // Fastest plans within other errors. With a store in `how`, no kernel and no error would be measured again.
  const auto backends = collage::table_of<collage::backend_set<collage::onednn>>;
  how.precision.errors = collage::errors_of_rounding(network, backends, how, samples);
  const collage::error_curve curve = collage::curve_of_errors(network, backends, how);
  for (const collage::error_point& p : curve.points)
    std::printf("%.2g %% allowed: %.2f times as fast\n", 100 * p.most_error, curve.exact.cost_ms / p.cost_ms);

  // Parts that stay in float32, whatever the error allows. Here they are all that there is.
  how.kept = {{"kind:relu"}, collage::kept_pattern<product_relu>()};
  std::printf("kept: %s\n", collage::place_within_error(network, backends, how, samples).why_unrounded.c_str());
}
