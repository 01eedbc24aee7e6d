// Proposals to merge groups, judged by the bytes that they save, and taken best first.
#pragma once

#include <algorithm>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/kernel.hpp>
#include <collage/fuse/quotient.hpp>
#include <collage/search/node_set.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::fuse {

struct merge_count {
  std::size_t merges = 0;  ///< committed
  std::size_t judged = 0;  ///< proposals looked at
};

/// Collects proposals to merge groups of a quotient, and commits the best. Among proposals that share a group, only the
/// best is committed. The caller proposes the others again in the next round.
class merging {
 public:
  /// `log`, if there is one, gets the nodes of every proposed kernel that saves bytes. A kernel of siblings may depend
  /// on itself through other groups; this shows only when it is committed.
  merging(quotient& groups, const kernel_limits& most, std::vector<search::node_set>* log = nullptr)
      : groups_(&groups),
        most_(most),
        log_(log),
        survey_(groups.flow()),
        bytes_(groups.flow().size(), 0),
        changed_(groups.flow().size(), 0) {
    for (const std::uint32_t g : groups.groups()) bytes_[g] = survey_.measure(groups.members(g)).bytes();
  }

  /// Proposes to merge these groups into one, if the result is a kernel and saves bytes.
  void propose(std::vector<std::uint32_t> groups) {
    ++judged_;
    nodes_.clear();
    std::uint64_t before = 0;
    for (const std::uint32_t g : groups) {
      const auto members = groups_->members(g);
      nodes_.insert(nodes_.end(), members.begin(), members.end());
      before += bytes_[g];
      if (most_.nodes != 0 && nodes_.size() > most_.nodes) return;
    }
    std::ranges::sort(nodes_);
    const kernel_facts facts = survey_.measure(nodes_, most_.arguments);
    if (facts.bytes() >= before || *survey_.refusal(nodes_, most_, facts) != '\0') return;
    if (log_ != nullptr) log_->emplace_back(std::span<const std::uint32_t>(nodes_));
    std::ranges::sort(groups);
    proposals_.push_back({before - facts.bytes(), std::move(groups)});
  }

  /// Commits the proposals that can be committed: most bytes first, then the smallest names. Returns their number.
  std::size_t commit() {
    std::ranges::sort(proposals_, [](const proposal& a, const proposal& b) {
      return a.gain != b.gain ? a.gain > b.gain : a.groups < b.groups;
    });
    ++round_;
    std::size_t count = 0;
    for (const proposal& p : proposals_) {
      if (std::ranges::any_of(p.groups, [&](std::uint32_t g) { return changed_[g] == round_; })) continue;
      if (!groups_->merge(p.groups)) continue;
      ++count;
      std::uint64_t before = 0;
      for (const std::uint32_t g : p.groups) {
        before += std::exchange(bytes_[g], 0);
        changed_[g] = round_;
      }
      bytes_[p.groups.front()] = before - p.gain;  // the merged group has the smallest name
    }
    proposals_.clear();
    return count;
  }

  /// Whether the group was merged in the last round that committed, or no round has run yet.
  bool is_fresh(std::uint32_t group) const { return round_ == 0 || changed_[group] == round_; }
  std::size_t judged() const { return judged_; }

 private:
  struct proposal {
    std::uint64_t gain;
    std::vector<std::uint32_t> groups;
  };
  quotient* groups_;
  kernel_limits most_;
  std::vector<search::node_set>* log_;
  surveyor survey_;
  std::vector<proposal> proposals_;
  std::vector<std::uint32_t> nodes_;
  std::vector<std::uint64_t> bytes_;    // of each group
  std::vector<std::uint64_t> changed_;  // the round in which a group was merged
  std::uint64_t round_ = 0;
  std::size_t judged_ = 0;
};

}  // namespace collage::inline v0::fuse
