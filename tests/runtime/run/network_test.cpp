// A small network placed over real libraries and run by the engine: right, and without allocating.
#include <collage/backends/reference.hpp>
#include <collage/collage.hpp>
#include <collage/place.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#ifdef COLLAGE_HAS_EIGEN
#include <collage/backends/eigen.hpp>
#endif
#ifdef COLLAGE_HAS_OPENBLAS
#include <collage/backends/openblas.hpp>
#endif
#ifdef COLLAGE_HAS_ONEDNN
#include <collage/backends/onednn.hpp>
#endif

#include <gtest/gtest.h>

#include <memory>

#include "support/counting_allocator.hpp"

#ifdef COLLAGE_HAS_EIGEN

namespace run_network_test {

namespace c = collage;
namespace op = collage::ops;

/// Convolution, depthwise convolution, pooling, a residual sum, a classifier.
c::graph small_network() {
  c::graph_builder g;
  const auto weights = [&](const char* name, const c::shape& dims) {
    return g.constant(name, {c::dtype::f32, dims}, {-0.2F, 0.2F});
  };
  c::value x = g.input("x", {c::dtype::f32, {1, 3, 20, 20}});
  x = g(op::relu, g(op::conv, x, weights("a", {16, 3, 3, 3}), weights("a.bias", {16}),
                    {.pads_begin = {1, 1}, .pads_end = {1, 1}}));
  const c::value skip = x;
  x = g(op::conv, x, weights("b", {16, 1, 3, 3}), {.groups = 16, .pads_begin = {1, 1}, .pads_end = {1, 1}});
  x = g(op::relu, g(op::add, g(op::conv, x, weights("c", {16, 16, 1, 1})), skip));
  x = g(op::max_pool, x, {.window = {2, 2}, .strides = {2, 2}});
  x = g(op::reshape, g(op::reduce_mean, x, {.axes = {2, 3}}), {.dims = {1, 16}});
  x = g(op::add, g(op::matmul, x, weights("d", {16, 10})), weights("d.bias", {10}));
  g.output("y", g(op::softmax, x));
  c::graph network = g.finish();
  c::fill_constants(network);
  return network;
}

template <class Set>
void run_and_compare(const c::graph& network, int threads, bool count_allocations) {
  c::place_options options;
  options.threads = threads;
  options.comparing.seconds = 0.05;
  options.measuring.timing.rounds = 3;
  const c::plan plan = c::place<Set>(network, options);
  const c::dynamic_engine engine = c::engine<Set>(network, plan);
  c::dynamic_context context = engine.context();
  c::run_buffers memory(network);
  memory.randomise(7);
  context.run(memory.inputs, memory.outputs);
  const std::size_t before = collage_test::allocations();
  for (int i = 0; i < 3; ++i) context.run(memory.inputs, memory.outputs);
  if (count_allocations) EXPECT_EQ(collage_test::allocations(), before);
  const std::vector<c::oracle_value> expected = c::evaluate(network, memory.inputs);
  const c::agreement a = c::compare(memory.out[0], expected[0]);
  EXPECT_TRUE(a.agrees) << (a.why != nullptr ? a.why : "");
}

TEST(network, eigen_alone_runs_it_without_allocating) {
  const c::graph network = small_network();
  for (const int threads : {1, 2}) run_and_compare<c::backend_set<c::eigen>>(network, threads, true);
}

#ifdef COLLAGE_HAS_OPENBLAS
TEST(network, openblas_and_eigen_run_it_without_allocating) {
  const c::graph network = small_network();
  if (!c::openblas::probe().available) GTEST_SKIP() << c::openblas::probe().reason;
  for (const int threads : {1, 2}) run_and_compare<c::backend_set<c::openblas, c::eigen>>(network, threads, true);
}
#endif

#ifdef COLLAGE_HAS_ONEDNN
// oneDNN itself allocates in every call and offers no way around it, so only the result is compared.
TEST(network, onednn_and_eigen_run_it) {
  const c::graph network = small_network();
  if (!c::onednn::probe().available) GTEST_SKIP() << c::onednn::probe().reason;
  for (const int threads : {1, 2}) run_and_compare<c::backend_set<c::onednn, c::eigen>>(network, threads, false);
}

TEST(network, packed_weights_are_shared_between_plans) {
  const c::graph network = small_network();
  if (!c::onednn::probe().available) GTEST_SKIP() << c::onednn::probe().reason;
  using set = c::backend_set<c::onednn, c::eigen>;
  c::place_options options;
  options.threads = 1;
  options.comparing.seconds = 0.05;
  const c::plan plan = c::place<set>(network, options);
  const auto packed = std::make_shared<c::packed_weights>();
  const c::dynamic_engine first = c::engine<set>(network, plan, plan.chosen, packed);
  const std::size_t forms = packed->size();
  {
    const c::dynamic_engine second = c::engine<set>(network, plan, plan.chosen, packed);
    EXPECT_EQ(packed->size(), forms);
  }
  EXPECT_EQ(packed->size(), forms);
}
#endif

}  // namespace run_network_test

#endif
