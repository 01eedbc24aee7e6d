// Costs from a table that was measured elsewhere, found by workload.
#pragma once

#include <collage/detail/hash.hpp>
#include <collage/place/cost_source.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// A table from (workload, backend) to milliseconds. It is looked up by hash and compared word by word. That is fast for the
/// thousands of candidates of a network, most of which are not in the table.
class table_costs {
 public:
  struct record {
    std::uint32_t backend;  ///< index into backends()
    double ms;
  };

  /// Adds a record. Several records for one workload and backend time the same thing, so the smallest cost is kept.
  void add(std::span<const std::uint64_t> computes, std::string_view backend, double ms) {
    const record added{number_of(backend), ms};
    const std::size_t at = locate(computes);
    if (at < slots_.size() && slots_[at] != nothing) {
      std::vector<record>& known = entries_[slots_[at]].records;
      const auto same = std::ranges::find(known, added.backend, &record::backend);
      if (same == known.end()) known.push_back(added);
      else same->ms = std::min(same->ms, ms);
      return;
    }
    entries_.push_back({{computes.begin(), computes.end()}, {added}});
    if (2 * entries_.size() > slots_.size()) grow();
    else slots_[at] = static_cast<std::uint32_t>(entries_.size() - 1);
  }

  /// The records of a workload, in the order in which their backends were added; empty if there are none.
  std::span<const record> records_of(std::span<const std::uint64_t> computes) const {
    const std::size_t at = locate(computes);
    if (at == slots_.size() || slots_[at] == nothing) return {};
    return entries_[slots_[at]].records;
  }

  const std::vector<std::string>& backends() const noexcept { return backends_; }
  /// The number of distinct workloads.
  std::size_t size() const noexcept { return entries_.size(); }

  cost_answer cost_of(const cost_question& question) const {
    for (const record& r : records_of(question.computes))
      if (backends_[r.backend] == question.backend) return {r.ms, {}};
    return cost_answer::none("the table has no record of it for " + std::string(question.backend));
  }

 private:
  static constexpr std::uint32_t nothing = 0xFFFFFFFF;
  struct entry {
    std::vector<std::uint64_t> computes;
    std::vector<record> records;
  };

  std::uint32_t number_of(std::string_view backend) {
    const auto found = std::ranges::find(backends_, backend);
    if (found == backends_.end()) backends_.emplace_back(backend);
    return static_cast<std::uint32_t>(std::ranges::find(backends_, backend) - backends_.begin());
  }

  /// The slot of a workload, or the empty slot where it would go. While there are no slots, it returns their number, 0.
  std::size_t locate(std::span<const std::uint64_t> computes) const {
    if (slots_.empty()) return 0;
    std::uint64_t key = computes.size();
    for (const std::uint64_t word : computes) key = detail::combine(key, word);
    std::size_t at = key & (slots_.size() - 1);
    while (slots_[at] != nothing && !std::ranges::equal(entries_[slots_[at]].computes, computes))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void grow() {
    slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), nothing);
    for (std::uint32_t e = 0; e < entries_.size(); ++e) slots_[locate(entries_[e].computes)] = e;
  }

  std::vector<std::string> backends_;
  std::vector<entry> entries_;
  std::vector<std::uint32_t> slots_;  // by hash, open addressing; a power of two, at most half full
};
static_assert(cost_source<table_costs>);

}  // namespace collage::inline v0
