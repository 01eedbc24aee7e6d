// The store of measured costs: one file that several processes share, so that nothing is measured twice (docs/store.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// All that the cost of a kernel depends on; another value anywhere is another measurement. Texts are UTF-8.
struct stored_key {
  std::string machine = {};    ///< the processor, as in "AMD EPYC 9R14 (avx512)", or the GPU and its driver
  int threads = 1;             ///< 1 to 65536
  std::string waiting = {};    ///< the thread pool's waiting policy: "passive", "active"
  std::string precision = {};  ///< "fp32"
  std::string backend = {};
  std::string library = {};  ///< its version at run time, and what the adapter was compiled for
  std::string pattern = {};
  std::uint32_t choice = 0;                  ///< which of the backend's ways to build the pattern
  std::vector<std::uint64_t> computes = {};  ///< what the group computes: operators, attributes, shapes, types, layouts

  friend bool operator==(const stored_key&, const stored_key&) = default;
};

/// What was measured, or why there is nothing to measure. Times are in milliseconds, finite and not negative.
struct stored_cost {
  std::string label = {};    ///< for people: "conv+relu 1x64x56x56"
  std::string kernel = {};   ///< the implementation that was measured
  std::string refusal = {};  ///< why it cannot be used; empty when it can
  double median_ms = 0;
  double low_ms = 0, high_ms = 0;            ///< 10th and 90th percentile of the samples
  double sure_low_ms = 0, sure_high_ms = 0;  ///< 95 % confidence interval of the median
  std::uint64_t samples = 0;
  std::string how = {};     ///< "in a worker, warm"
  std::int64_t when_s = 0;  ///< seconds since 1970; `put` replaces 0 by now

  friend bool operator==(const stored_cost&, const stored_cost&) = default;
};

/// What the result of an end-to-end comparison depends on.
struct stored_run_key {
  std::uint64_t network = 0;   ///< the graph's fingerprint
  std::string placement = {};  ///< a digest of the placements that were compared first, as text
  std::string machine = {};
  int threads = 1;
  std::string waiting = {};
  std::string precision = {};
  std::string libraries = {};  ///< of every backend that took part, as `library` of a `stored_key`

  friend bool operator==(const stored_run_key&, const stored_run_key&) = default;
};

/// The result of an end-to-end comparison: the plan that was handed out, and how fast it ran.
struct stored_run {
  std::string label = {};  ///< for people: "zoo:resnet50"
  std::string name = {};   ///< where the plan comes from: "search", "previous", or the backend that alone was faster
  double median_ms = 0, low_ms = 0, high_ms = 0;
  std::uint64_t runs = 0;
  std::string against = {};                         ///< the best of those that ran in turns with it; empty: none did
  double ratio = 1, ratio_low = 1, ratio_high = 1;  ///< its time to that one's, with 95 % confidence interval
  std::string plan = {};                            ///< as a plan file has it
  std::int64_t when_s = 0;

  friend bool operator==(const stored_run&, const stored_run&) = default;
};

/// An entry with its name: 32 hexadecimal digits, a digest of the key. The first few name it as well.
struct stored_entry {
  std::string id = {};
  stored_key key;
  stored_cost cost;
};
struct stored_run_entry {
  std::string id = {};
  stored_run_key key;
  stored_run run;
};

/// Which entries are meant: those that meet every condition that is set. One about backends or refusals is met by no
/// run.
struct store_filter {
  std::string backend = {};
  std::string machine = {};
  std::string other_than_machine = {};
  std::string text =
      {};  ///< part of the label, the kernel or the pattern (of a run: label or name), or how the id begins
  bool refused = false;
  std::int64_t before_s = 0;  ///< measured before that; 0: whenever
};

struct store_count {
  std::size_t costs = 0;
  std::size_t runs = 0;
};

/// What became of the entries of another store or a file.
struct store_merge {
  std::size_t added = 0;
  std::size_t replaced = 0;  ///< the other one was newer
  std::size_t kept = 0;      ///< ours was as new or newer
  std::size_t damaged = 0;   ///< left out
};

/// What `check` found.
struct store_report {
  std::vector<std::string> problems;  ///< empty: the store is sound
  std::vector<std::string> notes;     ///< what is worth knowing and no mistake: no write-ahead log, read-only
  store_count entries;
  std::size_t refused = 0;  ///< of the costs
  std::size_t damaged = 0;  ///< entries that cannot be trusted: never answered, measured again when they are needed
  std::uint64_t bytes = 0;
  int schema = 0;
  std::string journal;  ///< "wal", or "delete" where the file system has no write-ahead log
};

/// Another process that measures, while we wait for it.
struct measuring_process {
  long pid = 0;  ///< 0: it has not said so yet
  double waited_s = 0;
};

/// The right to measure. Held until it is destroyed or its process ends, however that ends.
class measuring_lock {
 public:
  measuring_lock() = default;
  measuring_lock(measuring_lock&& other) noexcept;
  measuring_lock& operator=(measuring_lock&& other) noexcept;
  ~measuring_lock();

  explicit operator bool() const noexcept { return held_; }  ///< false: the wait was cancelled

 private:
  friend class cost_store;
  measuring_lock(int file) noexcept : file_(file), held_(true) {}
  void release() noexcept;

  int file_ = -1;
  bool held_ = false;
};

enum class store_mode : std::uint8_t { read_write, read_only };

/// A store, open. Every member may be called from several threads and throws `error` where the file, its system or
/// another process is in the way: `environment` for those, `invalid_argument` for a file that is no store of ours and
/// for a value that cannot be stored. An error changes nothing in the file, and other members go on working.
class cost_store {
 public:
  /// Opens the file, or makes it (its folder too if it is the default store's). A file that we may read but not write,
  /// or whose folder we may not write to, is opened all the same; see `writable`.
  explicit cost_store(const std::string& path, store_mode how = store_mode::read_write);
  cost_store(cost_store&&) noexcept;
  cost_store& operator=(cost_store&&) noexcept;
  ~cost_store();

  const std::string& path() const noexcept;
  /// Empty, or one clause about why nothing can be put: "is opened to be read alone". `find` works all the same; `put`,
  /// `remove`, `merge_from` and `import_json` throw.
  const std::string& why_not_writable() const noexcept;
  bool writable() const noexcept { return why_not_writable().empty(); }

  /// Nothing for what was never measured, and for an entry whose bytes were changed in the file (`damaged` counts).
  std::optional<stored_cost> find(const stored_key& key) const;
  std::optional<stored_run> find(const stored_run_key& key) const;

  /// Replaces what is there under the key. Once it returns, the death of this process cannot undo it.
  void put(const stored_key& key, const stored_cost& cost);
  void put(const stored_run_key& key, const stored_run& run);
  /// All of them or, if the process dies or an error is thrown, none: costs of rivals, which mean something beside each
  /// other.
  void put(const std::vector<std::pair<stored_key, stored_cost>>& costs);

  /// By backend, label, pattern, choice; runs by label, network, name. Damaged entries are left out.
  std::vector<stored_entry> list(const store_filter& which = {}) const;
  std::vector<stored_run_entry> list_runs(const store_filter& which = {}) const;

  store_count remove(const store_filter& which);
  /// Removes the costs under these keys, all or none; answers how many there were.
  std::size_t forget(const std::vector<stored_key>& keys);
  std::size_t remove_damaged();

  /// Adds what another store has; of two entries for one key the newer stays. All of it or, with an error, nothing.
  store_merge merge_from(const std::string& other);
  /// Everything as JSON, and back; exact. `name` is what errors call the text.
  std::string export_json() const;
  store_merge import_json(std::string_view text, const std::string& name);

  /// Reads all of it. Throws only if that fails.
  store_report check() const;
  /// Damaged entries that `find` and `list` met so far.
  std::size_t damaged() const noexcept;

  /// One process measures at a time, or they would disturb each other's times and measure everything twice: waits until
  /// nobody else with this store measures. Ask `find` again afterwards. While it waits, `go_on` is asked several times
  /// a second, and false gives up. Granted at once if the store is not writable: nothing can be shared then. A thread
  /// that asks while it holds the lock waits for itself.
  measuring_lock measuring(const std::function<bool(const measuring_process&)>& go_on = {}) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Where the store is unless told: collage/costs.db under the user's folder of caches ($XDG_CACHE_HOME, or
/// ~/.cache). Throws if the environment names neither.
std::string default_store_path();

}  // namespace collage::inline v0
