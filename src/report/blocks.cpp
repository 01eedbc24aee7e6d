// Repeated blocks: runs of nodes that equal the nodes a fixed distance later.
#include "items.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace collage::inline v0::report {
namespace {

/// Nodes [first, first + length * count): `count` equal parts of `length` nodes each.
struct repetition {
  std::uint32_t first = 0, length = 0, count = 0;
  std::uint32_t end() const { return first + length * count; }
  std::uint32_t nodes() const { return length * count; }
};

/// A hash of each node without names: of its operator, attributes and types. Extents of the types may be left out.
std::vector<std::uint64_t> hashes_of(const graph& network, bool with_extents) {
  std::vector<std::uint64_t> hashes;
  const graph_view view = network.view();
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    std::uint64_t h = network.node(n).kind->id;
    const auto add = [&](std::uint64_t word) { h = (h ^ word) * 0x9E3779B97F4A7C15U, h ^= h >> 29; };
    for (const std::uint64_t word : view.words_of(n)) add(word);
    const auto add_type = [&](std::uint32_t v) {
      add(static_cast<std::uint64_t>(network.type_of(v).type));
      const shape& dims = network.type_of(v).dims;
      add(dims.rank);
      for (std::size_t d = 0; with_extents && d < dims.rank; ++d) add(static_cast<std::uint64_t>(dims.extent[d]));
    };
    for (const std::uint32_t v : view.inputs_of(n)) {
      add_type(v);
      add(static_cast<std::uint64_t>(network.at(v).role == value_role::constant));
    }
    for (std::uint32_t o = 0; o < network.node(n).outputs; ++o) add_type(view.output_of(n, o));
    hashes.push_back(h);
  }
  return hashes;
}

/// All runs in which nodes equal the nodes `length` later, for each length.
std::vector<repetition> repetitions_in(const std::vector<std::uint64_t>& hashes, std::uint32_t least) {
  constexpr std::uint32_t longest = 1024;
  std::vector<repetition> found;
  const auto nodes = static_cast<std::uint32_t>(hashes.size());
  for (std::uint32_t length = least; length <= std::min(nodes / 2, longest); ++length)
    for (std::uint32_t i = 0, run = 0; i + length <= nodes; ++i) {
      if (i + length < nodes && hashes[i] == hashes[i + length]) {
        ++run;
        continue;
      }
      if (run >= length) found.push_back({i - run, length, run / length + 1});
      run = 0;
    }
  return found;
}

/// A hash of the connections inside a part: which of its nodes each operand comes from, if from any.
std::uint64_t connections_of(const graph& network, std::uint32_t first, std::uint32_t length) {
  std::uint64_t h = length;
  for (std::uint32_t n = first; n < first + length; ++n)
    for (const std::uint32_t v : network.view().inputs_of(n)) {
      const std::int64_t within = std::int64_t{network.at(v).producer} - first;
      h = (h ^ static_cast<std::uint64_t>(within >= 0 ? within + 1 : 0)) * 0x9E3779B97F4A7C15U, h ^= h >> 29;
    }
  return h;
}

/// The longest stretch of parts with equal connections.
repetition equally_connected(const graph& network, const repetition& r) {
  repetition best = r, now = r;
  best.count = 0;
  now.count = 0;
  std::uint64_t last = 0;
  for (std::uint32_t part = 0; part < r.count; ++part) {
    const std::uint32_t first = r.first + part * r.length;
    const std::uint64_t h = connections_of(network, first, r.length);
    if (part == 0 || h != last) now.first = first, now.count = 0;
    ++now.count;
    last = h;
    if (now.count > best.count) best = now;
  }
  return best;
}

/// Values that are computed in front of a node and read at or behind it.
std::vector<std::uint32_t> cuts_of(const graph& network) {
  std::vector<std::int64_t> change(network.nodes().size() + 2, 0);
  for (const value_record& v : network.values()) {
    if (v.producer < 0) continue;
    std::int64_t last = v.producer;
    for (std::uint32_t u = 0; u < v.uses; ++u)
      last = std::max<std::int64_t>(last, network.view().uses[v.first_use + u].node);
    if (last <= v.producer) continue;
    ++change[static_cast<std::size_t>(v.producer) + 1];
    --change[static_cast<std::size_t>(last) + 1];
  }
  std::vector<std::uint32_t> cuts(network.nodes().size() + 1, 0);
  std::int64_t alive = 0;
  for (std::size_t n = 0; n < cuts.size(); ++n) cuts[n] = static_cast<std::uint32_t>(alive += change[n]);
  return cuts;
}

/// Adds the longest stretches of parts with equal hashes that overlap none. Each begins where few values lead from one part to the
/// next.
void choose_repetitions(const graph& network, const std::vector<std::uint64_t>& hashes, std::uint32_t least,
                        std::vector<repetition>& chosen) {
  const std::vector<std::uint32_t> cuts = cuts_of(network);
  std::vector<repetition> all = repetitions_in(hashes, least);
  std::ranges::stable_sort(all, [](const repetition& a, const repetition& b) {
    return a.nodes() != b.nodes() ? a.nodes() > b.nodes() : a.length < b.length;
  });
  for (repetition r : all) {
    const auto overlaps = [&](const repetition& c) { return r.first < c.end() && c.first < r.end(); };
    if (std::ranges::any_of(chosen, overlaps)) continue;
    // The run may go on by less than a part, so that the parts can begin at several nodes.
    const auto is_run = [&](std::uint32_t begin) {
      return begin + r.nodes() <= hashes.size() &&
             std::equal(hashes.begin() + begin, hashes.begin() + begin + r.nodes() - r.length,
                        hashes.begin() + begin + r.length);
    };
    const auto cut_of = [&](std::uint32_t begin) {
      std::size_t sum = 0;
      for (std::uint32_t part = 0; part <= r.count; ++part) sum += cuts[begin + part * r.length];
      return sum;
    };
    std::uint32_t best = r.first;
    for (std::uint32_t begin = r.first + 1; begin < r.first + r.length && is_run(begin); ++begin)
      if (cut_of(begin) < cut_of(best)) best = begin;
    r.first = best;
    r = equally_connected(network, r);
    if (r.count > 1 && std::ranges::none_of(chosen, overlaps)) chosen.push_back(r);
  }
}

/// Stretches of equal parts first, then of parts that differ in extents only.
std::vector<repetition> chosen_repetitions(const graph& network, std::uint32_t least) {
  std::vector<repetition> chosen;
  for (const bool with_extents : {true, false})
    choose_repetitions(network, hashes_of(network, with_extents), least, chosen);
  std::ranges::sort(chosen, {}, &repetition::first);
  return chosen;
}

/// Whether boxes can still be ordered if each block is one box.
bool is_ordered(const item_graph& items, const std::vector<repeated_block>& blocks) {
  std::size_t boxes = items.items.size();
  for (const repeated_block& b : blocks) boxes -= b.items.size() - 1;
  return collapsed(items, blocks).items.size() == boxes;
}

}  // namespace

std::vector<repeated_block> repeated_blocks(const graph& network, const placement& placed, const item_graph& items,
                                            std::uint32_t least) {
  const std::vector<repetition> found = chosen_repetitions(network, least);
  std::vector<std::int64_t> part_of(network.nodes().size(), -1);
  std::vector<repeated_block> parts;
  for (std::uint32_t r = 0; r < found.size(); ++r)
    for (std::uint32_t which = 0; which < found[r].count; ++which) {
      for (std::uint32_t i = 0; i < found[r].length; ++i)
        part_of[found[r].first + which * found[r].length + i] = static_cast<std::int64_t>(parts.size());
      parts.push_back({r, which, found[r].count, {}});
    }
  std::vector<std::int64_t> part_of_item(items.items.size(), -1);
  for (std::uint32_t i = 0; i < items.items.size(); ++i)
    if (items.items[i].what == item::kind::group)
      part_of_item[i] = part_of[*std::ranges::max_element(placed.groups[items.items[i].number].nodes)];
  // A conversion belongs to the part of its readers if they are in one, and otherwise to the part of what it reads.
  for (const item_net& net : items.nets)
    if (items.items[net.from].what == item::kind::conversion) {
      const std::int64_t first = part_of_item[net.to.front()];
      if (std::ranges::all_of(net.to, [&](std::uint32_t to) { return part_of_item[to] == first; }))
        part_of_item[net.from] = first;
    }
  for (std::uint32_t i = 0; i < items.items.size(); ++i)
    if (part_of_item[i] >= 0) parts[static_cast<std::size_t>(part_of_item[i])].items.push_back(i);
  // Regions may reach over whole parts. A part with one box or none hides nothing.
  std::erase_if(parts, [](const repeated_block& b) { return b.items.size() < 2; });
  std::vector<repeated_block> kept;
  for (std::size_t p = 0; p < parts.size();) {
    std::size_t end = p;
    std::vector<repeated_block> more = kept;
    while (end < parts.size() && parts[end].kind == parts[p].kind) more.push_back(parts[end++]);
    if (end - p > 1 && is_ordered(items, more)) kept = std::move(more);
    p = end;
  }
  std::map<std::uint32_t, std::uint32_t> kinds, counts;
  for (repeated_block& b : kept) {
    b.kind = kinds.emplace(b.kind, static_cast<std::uint32_t>(kinds.size())).first->second;
    b.which = counts[b.kind]++;
  }
  for (repeated_block& b : kept) b.count = counts[b.kind];
  return kept;
}

}  // namespace collage::inline v0::report
