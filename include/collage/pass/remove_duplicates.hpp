// The pass that computes everything once: equal nodes over equal operands, and equal constants, become one.
#pragma once

#include <algorithm>
#include <array>
#include <collage/detail/hash.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pass/rewrite.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {

/// A hash of the contents of a constant. It takes eight bytes at a time in four lanes, since weights are large.
inline std::uint64_t hash_contents(std::span<const std::byte> bytes) {
  std::array<std::uint64_t, 4> lanes = {1, 2, 3, 4};
  for (std::size_t at = 0; at < bytes.size(); at += sizeof lanes) {
    std::array<std::uint64_t, 4> words = {};
    std::memcpy(words.data(), bytes.data() + at, std::min(sizeof words, bytes.size() - at));
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lanes[i] = (lanes[i] ^ words[i]) * 0x9E3779B97F4A7C15ULL;
      lanes[i] ^= lanes[i] >> 32;
    }
  }
  std::uint64_t h = bytes.size();
  for (const std::uint64_t lane : lanes) h = combine(h, lane);
  return h;
}

inline std::uint64_t hash_type(const tensor_type& type) {
  std::uint64_t h = combine(type.dims.rank, static_cast<std::uint64_t>(type.type));
  for (const std::int64_t extent : type.dims) h = combine(h, static_cast<std::uint64_t>(extent));
  return h;
}

/// A hash of a small part of the contents: different constants mostly differ there, and weights take long to read.
inline std::uint64_t hash_of_some(std::span<const std::byte> bytes) {
  constexpr std::size_t some = 256;
  const std::size_t middle = bytes.size() / 2;
  return combine(hash_contents(bytes.first(std::min(some, bytes.size()))),
                 hash_contents(bytes.subspan(middle, std::min(some, bytes.size() - middle))));
}

/// For each loaded constant, the first constant with its type and contents; for every other value, the value itself.
inline std::vector<std::uint32_t> first_of_equal_constants(const graph& network) {
  std::vector<std::uint32_t> first(network.values().size());
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> alike, of_contents;
  for (std::uint32_t v = 0; v < first.size(); ++v) {
    first[v] = v;
    if (network.at(v).role == value_role::constant && network.constant(v).bytes != nullptr)
      alike[combine(hash_type(network.type_of(v)), hash_of_some(network.bytes_of(v)))].push_back(v);
  }
  const auto equal = [&](std::uint32_t a, std::uint32_t b) {
    if (network.type_of(a) != network.type_of(b)) return false;
    const std::byte *x = network.bytes_of(a).data(), *y = network.bytes_of(b).data();
    return x == y || std::memcmp(x, y, network.bytes_of(a).size()) == 0;
  };
  for (const auto& [hash, constants] : alike) {
    if (constants.size() == 1) continue;  // no need to read all its contents
    for (const std::uint32_t v : constants) {
      std::vector<std::uint32_t>& known = of_contents[combine(hash, hash_contents(network.bytes_of(v)))];
      const auto found = std::find_if(known.begin(), known.end(), [&](std::uint32_t other) { return equal(other, v); });
      if (found == known.end()) known.push_back(v);
      else first[v] = *found;
    }
  }
  return first;
}

/// The identity of a node: kind, attributes, and operands in the new graph.
inline std::vector<std::uint64_t> identity_of(const rewriter& r, std::uint32_t node) {
  const kind_info& kind = *r.from().node(node).kind;
  std::vector<std::uint64_t> identity = {kind.id, r.from().node(node).inputs};
  for (const value v : r.operands_of(node)) identity.push_back(v.index);
  if (kind.commutative && identity.size() >= 4 && identity[2] > identity[3]) std::swap(identity[2], identity[3]);
  const std::span<const std::uint64_t> words = r.from().view().words_of(node);
  identity.insert(identity.end(), words.begin(), words.end());
  return identity;
}

struct hash_of_words {
  std::size_t operator()(const std::vector<std::uint64_t>& words) const {
    std::uint64_t h = words.size();
    for (const std::uint64_t word : words) h = combine(h, word);
    return static_cast<std::size_t>(h);
  }
};

}  // namespace detail

/// Returns the graph in which nodes of the same kind, attributes and operands are one. So are loaded constants of the
/// same type and contents, bit by bit. The first of them stays, under its name. Operands that a kind lets swap may be
/// in either order. One walk in topological order is the fixed point. Nodes that own subgraphs are never merged; each
/// subgraph is treated in the same way, by itself.
inline graph remove_duplicates(const graph& network) {
  const std::vector<std::uint32_t> first = detail::first_of_equal_constants(network);
  std::unordered_map<std::vector<std::uint64_t>, std::uint32_t, detail::hash_of_words> known;  // the first such node
  return rewrite(network, {.constant =
                               [&](rewriter& r, std::uint32_t v) {
                                 if (first[v] == v) r.copy_constant(v);
                                 else r.put(v, r.of(first[v]));
                               },
                           .node =
                               [&](rewriter& r, std::uint32_t node) {
                                 if (network.node(node).bodies != 0) return r.copy_node(node);
                                 const auto [at, is_new] = known.emplace(detail::identity_of(r, node), node);
                                 if (is_new) return r.copy_node(node);
                                 for (std::uint32_t i = 0; i < network.node(node).outputs; ++i)
                                   r.put(network.view().output_of(node, i),
                                         r.of(network.view().output_of(at->second, i)));
                               },
                           .body = [](const graph& body) { return remove_duplicates(body); }});
}

}  // namespace collage::inline v0
