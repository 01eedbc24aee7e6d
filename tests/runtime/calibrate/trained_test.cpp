// A trained network in 8-bit numbers: Magika, which recognises types of files, on pages and sources of this project.
#if COLLAGE_HAS_EIGEN
#include <collage/backends/eigen.hpp>
#endif
#include <collage/backends/portable.hpp>
#include <collage/calibrate/calibrate.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/run/buffers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rounded_run.hpp"
#include "support/files.hpp"

#if COLLAGE_HAS_ONNX
#include <collage/io/onnx.hpp>

namespace calibrate_trained_test {

namespace c = collage;
#if COLLAGE_HAS_EIGEN
using set = c::backend_set<c::eigen, c::portable>;
#else
using set = c::backend_set<c::portable>;
#endif

constexpr const char* model = COLLAGE_TRAINED_MODELS "/magika/model.onnx";
const std::string project = std::string(COLLAGE_TEST_DATA) + "/../../";

/// As Magika reads a file: 1024 bytes of its beginning and of its end, 256 where it has none.
void read_file(const std::string& name, std::span<std::int32_t> to) {
  const std::string text = collage_test::bytes_of(project + name);
  const std::size_t half = to.size() / 2, count = std::min(half, text.size());
  std::ranges::fill(to, 256);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = static_cast<unsigned char>(text[i]);
    to[to.size() - count + i] = static_cast<unsigned char>(text[text.size() - count + i]);
  }
}

std::size_t best(std::span<const float> scores) {
  return static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
}

TEST(CalibrationOfATrainedNetwork, KeepsItsAnswersAndErrsByAFewPercent) {
  if (!std::filesystem::exists(model)) GTEST_SKIP() << model << " is not here; tools/setup fetches it";
  c::graph network = c::onnx::load(model, {.shapes = {{"bytes", {1, 2048}}}});
  c::fill_constants(network);
  network = c::optimise(network);
  c::run_buffers exact(network), rounded(network);

  c::calibration pass(network, c::table_of<set>);
  for (const char* name : {"README.md", "CMakeLists.txt", "LICENSE", "src/engine/engine.cpp", "tools/setup",
                           "mkdocs.yml", "docs/plan.schema.json", "tests/program/program.py"}) {
    read_file(name, exact.in[0].as<std::int32_t>());
    pass.add(exact.inputs);
  }
  const c::network_ranges found = std::move(pass).finish({.method = c::range_method::minmax, .per_channel = true});

  const c::dynamic_engine in_float = collage_test::unfused_engine(network, c::table_of<set>);
  const c::graph small = collage_test::with_rounded_weights(network, found.top);
  const c::dynamic_engine in_bytes = collage_test::unfused_engine(small, c::table_of<set>);
  collage_test::rounding run{small, found.top, in_bytes, true};
  collage_test::squared_error all;
  for (const char* name : {"docs/design.md", "src/CMakeLists.txt", "src/engine/lower.cpp", "tests/program/store.py"}) {
    read_file(name, exact.in[0].as<std::int32_t>());
    read_file(name, rounded.in[0].as<std::int32_t>());
    in_float.context().run(exact.inputs, exact.outputs);
    run.run(rounded);
    EXPECT_EQ(best(exact.out[0].as<float>()), best(rounded.out[0].as<float>())) << name;
    all.add(exact.out[0].as<float>(), rounded.out[0].as<float>());
  }
  EXPECT_LT(all.relative(), 0.1);
  EXPECT_GT(all.relative(), 1e-5) << "something was rounded";
}

}  // namespace calibrate_trained_test

#endif
