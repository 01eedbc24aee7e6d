// Errors of values in the store: kept, found again, and left alone by what concerns machines.
#include <gtest/gtest.h>

#include <collage/backends/portable.hpp>
#include <collage/calibrate/value_errors.hpp>
#include <collage/collage.hpp>
#include <collage/measure/store.hpp>
#include <collage/place/kept_errors.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "support/files.hpp"

namespace place_kept_errors_test {

namespace c = collage;
namespace op = collage::ops;
using set = c::backend_set<c::portable>;

c::graph small_network() {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3, 4}});
  const c::value w = g.constant("w", {c::dtype::f32, {3, 4}}, c::uniform{-1, 1});
  g.output("y", g(op::relu, g.named("sum")(op::add, x, w)));
  c::graph network = g.finish();
  c::fill_constants(network);
  return network;
}

c::sample_source numbers(float factor) {
  return [factor](std::size_t which, std::span<const c::tensor_view> inputs) {
    for (int i = 0; i < 12; ++i)
      static_cast<float*>(inputs[0].data)[i] = factor * (0.3F + static_cast<float>(i) / 7 + static_cast<float>(which));
    return which < 3;
  };
}

TEST(kept_errors, are_found_again) {
  const collage_test::temporary_folder folder;
  const c::graph network = small_network();
  std::vector<c::value_rounding> requests;
  for (const std::uint32_t v : {network.inputs()[0], network.outputs()[0]}) {
    requests.push_back({v, c::rounding_to(c::dtype::bf16)});
    requests.push_back({v, c::rounding_to(c::dtype::f16)});
  }
  const auto measure = [&](c::cost_store& store, float factor) {
    c::value_error_options options{.threads = 1};
    c::use_store(options, store, network);
    return c::measure_value_errors(network, c::table_of<set>, requests, numbers(factor), options);
  };
  c::value_errors first;
  {
    c::cost_store store(folder.path("costs.db"));
    first = measure(store, 1);
    EXPECT_GT(first.steps, 0U);
    EXPECT_EQ(store.list().size(), 4U);
    EXPECT_EQ(store.list({.text = "error of sum"}).size(), 0U);
    EXPECT_EQ(store.list({.text = "error of x"}).size(), 2U);
    // An error belongs to no machine.
    EXPECT_EQ(store.remove({.other_than_machine = "this one"}).costs, 0U);
  }
  c::cost_store store(folder.path("costs.db"), c::store_mode::read_only);
  const c::value_errors again = measure(store, 1);
  EXPECT_EQ(again.steps, 0U);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE(again.list[i].is_recalled);
    EXPECT_EQ(again.list[i].value, first.list[i].value);
    EXPECT_EQ(again.list[i].rounding, first.list[i].rounding);
    EXPECT_EQ(again.list[i].nmse, first.list[i].nmse);
    EXPECT_EQ(again.list[i].worst, first.list[i].worst);
    EXPECT_EQ(again.list[i].own, first.list[i].own);
    EXPECT_EQ(again.list[i].samples, 3U);
  }
  EXPECT_GT(measure(store, 2).steps, 0U) << "other samples; and a store that cannot be written is no error";
}

TEST(kept_errors, may_be_infinite) {
  const collage_test::temporary_folder folder;
  const c::graph network = small_network();
  c::cost_store store(folder.path("costs.db"));
  const c::value_rounding request{network.inputs()[0], c::rounding_to(c::dtype::f16)};
  c::value_error_options options{.threads = 1};
  c::use_store(options, store, network);
  for (int i = 0; i < 2; ++i) {
    const c::value_errors found =
        c::measure_value_errors(network, c::table_of<set>, {&request, 1}, numbers(1e5F), options);
    EXPECT_EQ(found.list[0].nmse, std::numeric_limits<double>::infinity());
    EXPECT_EQ(found.list[0].is_recalled, i == 1);
  }
  EXPECT_EQ(store.list({.refused = true}).size(), 1U);
}

}  // namespace place_kept_errors_test
