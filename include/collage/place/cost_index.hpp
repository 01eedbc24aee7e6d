// Costs of a store in memory, and estimates of costs at sizes that were not measured (docs/measuring.md).
//
// Declarations only. The definitions are in src/place/ (the target collage::place).
#pragma once

#include <collage/measure/statistics.hpp>
#include <collage/measure/store.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0 {

/// Where a cost comes from, the best first.
enum class cost_basis : std::uint8_t {
  measured,      ///< the store has the cost of this kernel for this workload
  interpolated,  ///< the kernel was measured at a smaller and a larger size
  extrapolated,  ///< it was measured at other sizes, all of them smaller or all of them larger
  modelled       ///< it was measured at no size: a model's time, scaled as kernels like it turned out
};

/// The cost of a kernel for a workload, as far as a store has it.
struct cost_estimate {
  cost_basis basis = cost_basis::modelled;
  double ms = 0;
  timing time = {};  ///< as it was measured
  /// The usual relative error of such an estimate, 0.1 for 10 %. Nothing if there is too little to tell, or if it was measured.
  std::optional<double> error = {};
  std::string refusal = {};   ///< why the kernel cannot be used at this size; empty if nothing is known against it
  std::string kernel = {};    ///< the implementation that was measured or checked; empty if it was neither
  bool is_checked = false;    ///< it was compared with the reference at this size
  bool was_refused = false;   ///< it was refused at another size
  bool is_of_others = false;  ///< the sizes are those of other configurations, or of constants with other extents
  std::string low = {}, high = {};  ///< labels of the measured sizes; equal if there is only one
  std::size_t like_it = 0;          ///< modelled: how many measured kernels scale the model; 0: none is known

  /// In words: "interpolated between matmul 64x768 and matmul 128x768, usual error 3 %". Empty for `measured`.
  std::string text() const;
};

/// The pattern of entries that name the fastest configurations of a space begins with it.
inline constexpr std::string_view fastest_prefix = "space of ";

/// The costs of a store, read once. They do not change, so any number of placings and threads may share an index. An index does
/// not see what the store gets later.
///
/// The *family* of a workload is the workload without the extents of its values: operators, connections, attributes, types
/// and forms. Its *size* is its arithmetic, or the bytes that it moves if it has none. Both follow from the stored words.
class cost_index {
 public:
  /// An index without costs.
  cost_index();
  /// Reads a store's costs for this machine. A file that does not exist is an empty store. Errors: those of cost_store.
  explicit cost_index(const std::string& store);
  /// Entries as `cost_store::list` and `list_runs` return them.
  explicit cost_index(std::span<const stored_entry> entries, std::span<const stored_run_entry> runs = {});
  cost_index(cost_index&&) noexcept;
  cost_index& operator=(cost_index&&) noexcept;
  ~cost_index();

  /// The number of costs and refusals.
  std::size_t size() const noexcept;

  /// The cost under a key, or an estimate. An estimate is a finite time above 0.
  cost_estimate estimate(const stored_key& key) const;

  /// A plan that end-to-end runs of a network selected, as in a plan file.
  struct tuned_plan {
    std::string text;
    bool is_finished = false;  ///< false: time was up while there was more to try
    std::int64_t when_s = 0;
  };
  /// The plans of the key's network, machine, threads, waiting policy and libraries: finished ones first, then by age, the newest first.
  /// The key's placement and precision do not count: plans say them.
  std::span<const tuned_plan> tuned_plans(const stored_run_key& of) const;

  /// A workload, prepared for several estimates.
  class workload;
  std::shared_ptr<const workload> prepared(std::span<const std::uint64_t> computes) const;
  /// The same, for a key with this workload.
  cost_estimate estimate(const stored_key& key, const workload& its) const;

 private:
  struct state;
  std::unique_ptr<const state> state_;
};

}  // namespace collage::inline v0
