// The store of measured costs: one file that several processes share, so that nothing is measured twice (docs/store.md).
#pragma once

#include <collage/run/configuration.hpp>
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

/// All that the cost of a kernel depends on. Keys that differ in any member are for different measurements. Texts are UTF-8.
struct stored_key {
  std::string machine = {};    ///< the processor, as in "AMD EPYC 9R14 (avx512)", or the GPU and its driver
  int threads = 1;             ///< 1 to 65536
  std::string waiting = {};    ///< the thread pool's waiting policy: "passive", "active"
  std::string precision = {};  ///< "fp32"
  std::string backend = {};
  std::string library = {};  ///< its version at run time, and the version that the adapter was compiled for
  std::string pattern = {};
  configuration choice = {};                 ///< the backend's configuration: a number for variants, else a text
  std::vector<std::uint64_t> computes = {};  ///< the workload: operators, attributes, shapes, types, layouts

  friend bool operator==(const stored_key&, const stored_key&) = default;
};

/// A measured cost, or a refusal. Times are in milliseconds, finite and not negative.
struct stored_cost {
  std::string label = {};    ///< for display: "conv+relu 1x64x56x56"
  std::string kernel = {};   ///< the implementation that was measured
  std::string refusal = {};  ///< why the kernel cannot be used; empty if it can
  double median_ms = 0;
  double low_ms = 0, high_ms = 0;            ///< 10th and 90th percentile of the samples
  double sure_low_ms = 0, sure_high_ms = 0;  ///< 95 % confidence interval of the median
  std::uint64_t samples = 0;
  std::string how = {};     ///< "in a worker, warm"
  std::int64_t when_s = 0;  ///< seconds since 1970; `put` replaces 0 by now

  friend bool operator==(const stored_cost&, const stored_cost&) = default;
};

/// All that the result of an end-to-end comparison depends on.
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

/// The result of an end-to-end comparison: the selected plan and its times.
struct stored_run {
  std::string label = {};  ///< for display: "zoo:resnet50"
  std::string name = {};   ///< the origin of the plan: "search", "previous", or the backend whose baseline was faster
  double median_ms = 0, low_ms = 0, high_ms = 0;
  std::uint64_t runs = 0;
  std::string against = {};                         ///< the best placement compared with it; empty: there was none
  double ratio = 1, ratio_low = 1, ratio_high = 1;  ///< its time divided by that of `against`; 95 % confidence
  std::string plan = {};                            ///< as in a plan file
  std::int64_t when_s = 0;

  friend bool operator==(const stored_run&, const stored_run&) = default;
};

/// An entry with its id: a digest of the key in 32 hexadecimal digits. The first few are enough to name the entry.
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

/// Selects the entries that meet every condition that is set. No run meets a condition on backends or refusals.
struct store_filter {
  std::string backend = {};
  std::string machine = {};
  std::string other_than_machine = {};
  std::string text =
      {};  ///< part of the label, kernel or pattern (of a run: label or name), or the beginning of the id
  bool refused = false;
  std::int64_t before_s = 0;  ///< measured before this time; 0: at any time
};

struct store_count {
  std::size_t costs = 0;
  std::size_t runs = 0;
};

/// The result of merging another store or a file into this store, in numbers of entries.
struct store_merge {
  std::size_t added = 0;
  std::size_t replaced = 0;  ///< the other entry was newer
  std::size_t kept = 0;      ///< this store's entry was as new or newer
  std::size_t damaged = 0;   ///< left out
};

/// The result of `check`.
struct store_report {
  std::vector<std::string> problems;  ///< empty: the store is sound
  std::vector<std::string> notes;     ///< remarks that are no problems: no write-ahead log, read-only
  store_count entries;
  std::size_t refused = 0;  ///< costs that are refusals
  std::size_t damaged = 0;  ///< entries that cannot be trusted: never returned, measured again when needed
  std::uint64_t bytes = 0;
  int schema = 0;
  std::string journal;  ///< "wal", or "delete" where the file system has no write-ahead log
};

/// Another process that measures while this process waits for it.
struct measuring_process {
  long pid = 0;  ///< 0: not known yet
  double waited_s = 0;
};

/// The right to measure. Held until it is destroyed or its process ends in any way.
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

/// An open store. Several threads may call its members at the same time. A member throws `error` with
/// - `environment` if the file, the system or another process prevents it,
/// - `invalid_argument` for a file that is no store of collage's and for a value that cannot be stored.
///
/// An error changes nothing in the file, and other members still work.
class cost_store {
 public:
  /// Opens the file or creates it, with its folder if it is the default store's. A file or folder without the right to write is
  /// opened all the same; see `writable`.
  explicit cost_store(const std::string& path, store_mode how = store_mode::read_write);
  cost_store(cost_store&&) noexcept;
  cost_store& operator=(cost_store&&) noexcept;
  ~cost_store();

  const std::string& path() const noexcept;
  /// Empty, or a clause that says why the store cannot be written: "is opened read-only". `find` still works; `put`,
  /// `remove`, `merge_from` and `import_json` throw.
  const std::string& why_not_writable() const noexcept;
  bool writable() const noexcept { return why_not_writable().empty(); }

  /// Returns nothing if the key was never measured, or if its entry was damaged in the file (`damaged` counts such entries).
  std::optional<stored_cost> find(const stored_key& key) const;
  std::optional<stored_run> find(const stored_run_key& key) const;

  /// Replaces the entry under the key. Once it returns, the end of this process cannot undo it.
  void put(const stored_key& key, const stored_cost& cost);
  void put(const stored_run_key& key, const stored_run& run);
  /// Puts all costs, or none if the process ends or an error is thrown. For the costs of rivals, which belong together.
  void put(const std::vector<std::pair<stored_key, stored_cost>>& costs);

  /// Sorted by backend, label, pattern and configuration; runs by label, network and name. Damaged entries are left out.
  std::vector<stored_entry> list(const store_filter& which = {}) const;
  std::vector<stored_run_entry> list_runs(const store_filter& which = {}) const;

  store_count remove(const store_filter& which);
  /// Removes the costs under these keys, all or none. Returns how many there were.
  std::size_t forget(const std::vector<stored_key>& keys);
  std::size_t remove_damaged();

  /// Adds the entries of another store, all or, with an error, none. If both stores have a key, the newer entry stays.
  store_merge merge_from(const std::string& other);
  /// All entries as JSON, and back, without loss. `name` names the text in errors.
  std::string export_json() const;
  store_merge import_json(std::string_view text, const std::string& name);

  /// Reads and checks all entries. Throws only if reading fails.
  store_report check() const;
  /// The number of damaged entries that `find` and `list` met so far.
  std::size_t damaged() const noexcept;

  /// Waits until no other process with this store measures. Processes that measure at the same time would disturb each other's
  /// times and measure everything twice. Call `find` again afterwards: the cost may be there now.
  /// While it waits, it calls `go_on` several times a second and gives up when `go_on` returns false. If the store is not
  /// writable, it returns at once, because nothing can be shared then. A thread that already holds the lock would wait for itself.
  measuring_lock measuring(const std::function<bool(const measuring_process&)>& go_on = {}) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The default path of the store: collage/costs.db under the user's folder of caches ($XDG_CACHE_HOME, or ~/.cache). Throws if
/// the environment names neither.
std::string default_store_path();

}  // namespace collage::inline v0
