// The client of workers, which measure for it. Declarations; the definitions are in worker.cpp.
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
  double timeout_s = 60;  ///< for one step of one candidate: building it, its first call, a round of timing
};

/// Measures in a worker, which is started when it is first needed and lives until it fails. Where there can be none, it
/// measures in this process. Used by one thread at a time.
class worker_client {
 public:
  explicit worker_client(const worker_options& options = {});
  worker_client(worker_client&&) noexcept;
  worker_client& operator=(worker_client&&) noexcept;
  ~worker_client();

  /// Whether this program can be started as a worker: its main has called collage::worker.
  static bool is_possible();

  /// As measure_candidates, but a candidate that brings its worker down is refused with a sentence that says when and how.
  /// Of `setup`, a worker takes over the threads, the seed, the timing, what is to be kept and the monitor's options; its
  /// memory is always fenced. When `stop` says so, timing ends after the round under way, and what there is by then is answered.
  std::vector<measured_candidate> measure(const graph& network, backend_table backends,
                                          const place_candidates& candidates, std::span<const std::uint32_t> asked,
                                          const measuring_setup& setup);

  /// Where the last list was measured: "in a worker", or "in this process (why)".
  std::string where() const;
  /// How often a worker had to be replaced.
  std::size_t restarts() const;
  /// How long workers have waited until the machine was calm.
  double waited_ms() const;
  /// The process id of the worker that is alive; 0 where there is none.
  int process() const;

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace collage::inline v0::detail
