// Compares what engines compute with the reference.
#pragma once

#include <collage/backends/reference.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace collage_test {

/// Every output in `memory` is as expected.
template <class Memory>
void expect_outputs(const Memory& memory, const std::vector<collage::oracle_value>& expected,
                    const std::string& where = {}) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const collage::agreement a = collage::compare(memory.out[i], expected[i]);
    EXPECT_TRUE(a.agrees) << where << "output " << i << ": " << (a.why != nullptr ? a.why : "");
  }
}

/// Runs an engine twice over the inputs in `memory` and compares every output.
inline void expect_agreement(const collage::graph& network, const collage::dynamic_engine& engine,
                             const collage::run_buffers& memory, const std::string& where = {}) {
  const std::vector<collage::oracle_value> expected = collage::evaluate(network, memory.inputs);
  collage::dynamic_context context = engine.context();
  for (int run = 0; run < 2; ++run) context.run(memory.inputs, memory.outputs);
  expect_outputs(memory, expected, where);
}

/// Runs an engine in several threads at the same time, in each over other inputs and `runs` times, and compares the first output.
inline void expect_agreement_in_threads(const collage::graph& network, const collage::dynamic_engine& engine,
                                        std::size_t count, int runs) {
  std::vector<std::string> wrong(count);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      collage::run_buffers memory(network);
      memory.randomise(t);
      collage::dynamic_context context = engine.context();
      const std::vector<collage::oracle_value> expected = collage::evaluate(network, memory.inputs);
      for (int run = 0; run < runs; ++run) context.run(memory.inputs, memory.outputs);
      if (const collage::agreement a = collage::compare(memory.out[0], expected[0]); !a) wrong[t] = a.why;
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
}

}  // namespace collage_test
