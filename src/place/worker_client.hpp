// The client that lets workers measure. Declarations; the definitions are in worker.cpp.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/measuring.hpp>
#include <collage/run/backend_table.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::detail {

struct worker_options {
  double timeout_s = 60;  ///< for one step of one candidate: building, the first call, a round of timing
};

/// Measures in a worker, which starts when it is first needed and lives until it fails. If there can be no worker, measures in this
/// process. Only one thread at a time may use a client.
class worker_client {
 public:
  explicit worker_client(const worker_options& options = {});
  worker_client(worker_client&&) noexcept;
  worker_client& operator=(worker_client&&) noexcept;
  ~worker_client();

  /// Whether there can be a worker: main has called collage::worker, or an executable that measures for this program is set.
  static bool is_possible();

  /// As measure_candidates. But a candidate that makes its worker fail is refused, with a sentence that says when and how.
  ///
  /// From `setup`, a worker uses the threads, seed, timing, slot, `keep_non_finite` and the options of the monitor. Its memory is
  /// always guarded. When `setup.stop` returns true, timing ends once each candidate has a sample, and the results so far are returned.
  /// If `setup.stop` or `setup.note` throws, the worker is ended.
  std::vector<measured_candidate> measure(const graph& network, backend_table backends,
                                          const place_candidates& candidates, std::span<const std::uint32_t> asked,
                                          const measuring_setup& setup);

  /// Where the last list was measured: "in a worker", or "in this process (why)".
  std::string where() const;
  /// The number of workers that had to be replaced.
  std::size_t restarts() const;
  /// The time that workers waited for an undisturbed machine, in milliseconds.
  double waited_ms() const;
  /// The time that threads of workers waited for a processor, summed over threads, in milliseconds.
  double held_up_ms() const;
  /// The process id of the current worker; 0 if there is none.
  int process() const;

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace collage::inline v0::detail
