// Parts of a bounded problem that are equal: it does not matter which of them takes which plan.
#pragma once

#include <collage/search/problem.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::search::detail {

/// Finds the parts of a graph between which only amounts are added up, and which of them are equal. Plans of equal parts can be
/// exchanged, and the sums of costs and amounts stay. So it is enough to try a candidate in the first of several equal parts
/// (orbital branching; Ostrowski, Linderoth, Rossi, Smriglio 2011).
class equal_parts {
 public:
  explicit equal_parts(const problem& p) : part_of_(p.candidates.size()), rank_(p.candidates.size()) {
    const std::vector<std::uint32_t> begin = begins(p);
    std::vector<std::uint32_t> part_at(p.nodes);
    for (std::uint32_t k = 0; k + 1 < begin.size(); ++k)
      std::fill(part_at.begin() + begin[k], part_at.begin() + begin[k + 1], k);
    parts_.resize(begin.size() - 1);
    std::vector<std::vector<std::uint64_t>> words(parts_.size());
    for (std::uint32_t k = 0; k < words.size(); ++k) words[k].push_back(begin[k + 1] - begin[k]);
    const std::vector<std::uint32_t> name = write_values(p, begin, part_at, words);
    for (std::uint32_t i = 0; i < p.candidates.size(); ++i) {
      const std::uint32_t k = part_at[p.candidates[i].nodes.first()];
      part_of_[i] = k;
      rank_[i] = static_cast<std::uint32_t>(parts_[k].size());
      parts_[k].push_back(i);
      write(p, p.candidates[i], begin[k], name, words[k]);
    }
    for (const auto& [from, to] : p.edges)
      if (part_at[from] == part_at[to]) put(words[part_at[from]], {from - begin[part_at[from]], to - from});
    // Parts with an item or in an excluded set are like no other.
    std::set<std::uint32_t> single;
    for (std::uint32_t i = 0; i < p.candidates.size(); ++i)
      for (const use& u : p.candidates[i].uses)
        if (u.item != use::own) single.insert(part_of_[i]);
    for (const auto& set : p.excluded)
      for (const std::uint32_t i : set) single.insert(part_of_[i]);
    for (const std::uint32_t k : single) words[k].assign({~std::uint64_t{0}, k});
    std::map<std::vector<std::uint64_t>, std::uint32_t> known;
    for (std::uint32_t k = 0; k < words.size(); ++k) {
      const auto at = known.try_emplace(std::move(words[k]), static_cast<std::uint32_t>(alike_.size()));
      if (at.second) alike_.emplace_back();
      class_.push_back(at.first->second);
      alike_[class_.back()].push_back(k);
    }
  }

  /// A candidate, and those at its place in equal parts of which the same is decided.
  std::vector<std::uint32_t> orbit(std::uint32_t i, std::span<const std::uint32_t> decided,
                                   std::span<const std::uint32_t> left_out) const {
    const std::vector<std::uint32_t>& parts = alike_[class_[part_of_[i]]];
    if (parts.size() == 1) return {i};
    std::map<std::uint32_t, std::set<std::pair<bool, std::uint32_t>>> states;  // by part
    for (const std::uint32_t c : decided) states[part_of_[c]].emplace(true, rank_[c]);
    for (const std::uint32_t c : left_out) states[part_of_[c]].emplace(false, rank_[c]);
    const auto mine = states[part_of_[i]];
    std::vector<std::uint32_t> list;
    for (const std::uint32_t k : parts)
      if (states[k] == mine) list.push_back(parts_[k][rank_[i]]);
    return list;
  }

 private:
  static void put(std::vector<std::uint64_t>& words, std::initializer_list<std::uint64_t> more) {
    words.insert(words.end(), more);
  }

  /// The positions across which no candidate reaches, and no value whose form or runtime may matter.
  static std::vector<std::uint32_t> begins(const problem& p) {
    std::vector<std::uint32_t> reach(p.nodes + 1);  // by node: the last node that it is tied to
    const auto tie = [&](std::uint32_t first, std::uint32_t last) { reach[first] = std::max(reach[first], last); };
    for (const candidate& c : p.candidates) tie(c.nodes.first(), c.nodes.last());
    const bool all = p.runtimes > 1;
    for (const value& v : p.values) {
      if ((v.forms == 1 && !all) || v.readers.empty()) continue;
      tie(v.producer == node_set::none ? v.readers.front() : v.producer, v.readers.back());
    }
    if (p.values.empty() && all)
      for (const auto& [from, to] : p.edges) tie(from, to);
    std::vector<std::uint32_t> list;
    std::uint32_t last = 0;
    for (std::uint32_t node = 0; node < p.nodes; ++node) {
      if (node == 0 || last < node) list.push_back(node);
      last = std::max(last, reach[node]);
    }
    list.push_back(static_cast<std::uint32_t>(p.nodes));
    return list;
  }

  /// Writes the candidate. Its values are named by their order in the part.
  static void write(const problem& p, const candidate& c, std::uint32_t begin, std::span<const std::uint32_t> name,
                    std::vector<std::uint64_t>& words) {
    put(words, {c.nodes.size(), std::bit_cast<std::uint64_t>(c.cost_ms), c.runtime, c.uses.size()});
    for (const std::uint32_t n : c.nodes) put(words, {n - begin});
    for (const use& u : c.uses) put(words, {u.resource, static_cast<std::uint64_t>(u.amount)});
    for (const border& b : c.borders)
      if (p.values[b.value].forms > 1) put(words, {1, name[b.value], b.form});
    put(words, {2});
  }
  /// Writes the values whose form or runtime may matter. Returns their order in the part of each.
  static std::vector<std::uint32_t> write_values(const problem& p, std::span<const std::uint32_t> begin,
                                                 std::span<const std::uint32_t> part_at,
                                                 std::vector<std::vector<std::uint64_t>>& words) {
    std::vector<std::uint32_t> name(p.values.size()), count(words.size());
    for (std::size_t i = 0; i < name.size(); ++i) {
      const value& v = p.values[i];
      const bool given = v.producer == node_set::none;
      if ((given && v.readers.empty()) || (v.forms == 1 && p.runtimes == 1)) continue;
      const std::uint32_t k = part_at[given ? v.readers.front() : v.producer];
      name[i] = count[k]++;
      put(words[k], {3, given ? v.producer : v.producer - begin[k], static_cast<std::uint64_t>(v.is_output), v.forms,
                     v.readers.size(), v.convert_ms.size(), v.convert_amounts.size()});
      for (const std::uint32_t r : v.readers) put(words[k], {r - begin[k]});
      for (const double ms : v.convert_ms) put(words[k], {std::bit_cast<std::uint64_t>(ms)});
      for (const std::int64_t amount : v.convert_amounts) put(words[k], {static_cast<std::uint64_t>(amount)});
    }
    return name;
  }

  std::vector<std::uint32_t> part_of_, rank_;      // by candidate
  std::vector<std::vector<std::uint32_t>> parts_;  // candidates
  std::vector<std::uint32_t> class_;               // by part
  std::vector<std::vector<std::uint32_t>> alike_;  // by class: parts
};

}  // namespace collage::inline v0::search::detail
