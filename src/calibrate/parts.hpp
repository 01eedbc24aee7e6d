// The parts of calibration:
//
//   ranges.cpp       intervals, schemas and 8-bit numbers
//   histogram.cpp    what is counted of a value
//   choose.cpp       intervals from histograms
//   placement.cpp    a kernel for each operator
//   watch.cpp        which values are observed, and where; runs of subgraphs
//   calibration.cpp  the pass over samples
//   finish.cpp       ranges of values from what was seen, and of constants
//   merge.cpp        ranges of several passes; ranges of another network
#pragma once

#include <collage/calibrate/histogram.hpp>
#include <collage/calibrate/ranges.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/body_observer.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {

/// A placement without fusion, and the kernels that were built to see that it can be built. While they exist, an engine shares their
/// packed weights.
struct unfused_placement {
  placement made;
  std::vector<kernel> kernels;
};
/// Each operator goes to the first backend of the table that runs it alone, on the host, in plain layouts and by its definition. Errors:
/// no backend runs an operator.
unfused_placement place_unfused(const graph& network, backend_table backends, int threads,
                                const std::shared_ptr<packed_weights>& packed);

/// Whether a value has a range: it is float32 and not empty, and something reads it. Nothing has to read an input.
bool has_range(const graph& network, std::uint32_t value);

/// The value whose numbers a value has or picks: that of the first operand as long as operators only move or pick numbers. The value
/// itself if it is computed otherwise, or is not float32.
std::uint32_t origin_of(const graph& network, std::uint32_t value);

/// The numbers of a value.
struct observed_value {
  explicit observed_value(std::size_t bins) : numbers(std::make_shared<value_histogram>(bins)) {}
  std::shared_ptr<value_histogram> numbers;
  std::uint64_t bad_sample = 0;  ///< the first in which it was not finite, from 1; 0: none
  bool is_nan = false;           ///< in that sample; infinite otherwise
};

/// The observed values of a graph and of its subgraphs.
class graph_watch {
 public:
  explicit graph_watch(const graph& network);
  /// How many values are observed, subgraphs included.
  std::size_t size() const;
  /// Makes the histograms. To be called once.
  void start(std::size_t bins);

  const graph& network() const { return *network_; }
  /// The numbers of a value; null if it is not observed.
  const observed_value* find(std::uint32_t value) const;
  /// Notes the numbers of a value, if it is observed. A null pointer is a value without memory, which nothing reads.
  void note(std::uint32_t value, const void* numbers, std::uint64_t sample);
  /// Notes what step `step` of the graph's engine has written.
  void note_step(std::size_t step, const dynamic_context& context, std::uint64_t sample);
  /// The inputs of a subgraph, which are noted with its first step.
  void note_inputs(const dynamic_context& context, std::uint64_t sample);

  graph_watch& body(std::uint32_t node, std::size_t which);
  struct owned_body {
    std::uint32_t node = 0;
    std::uint32_t which = 0;
    std::unique_ptr<graph_watch> inside;
  };
  const std::vector<owned_body>& bodies() const { return bodies_; }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFF;

  const graph* network_;
  std::vector<std::uint32_t> slots_;       // by value: its place in seen_, or none
  std::vector<std::uint32_t> step_nodes_;  // by step of the engine
  std::size_t count_ = 0;
  std::vector<observed_value> seen_;
  std::vector<owned_body> bodies_;
};

/// The ranges of a graph's values.
graph_ranges ranges_of(const graph_watch& watched, const range_origin& made_by);
/// Chooses the interval and the numbers of a value from its histogram, or says why it has none.
void choose_numbers(value_range& of, const value_histogram& seen, const range_origin& made_by);
/// Gives values that have the range of another one its range.
void share_ranges(graph_ranges& in);

}  // namespace collage::inline v0::detail
