// A set of node numbers, stored as bits in words. Candidates are described by such sets.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::search {

/// A set of node numbers. It has no fixed universe: it grows as numbers are inserted, and any two sets may be combined.
///
/// Only the 64-bit words between its smallest and its largest member are stored. A fused group is small, and its nodes
/// are close in a topological order. So a set costs its span, not the size of the graph. Equal sets have equal
/// representations: comparison and hash are word by word.
class node_set {
 public:
  using word = std::uint64_t;
  static constexpr std::uint32_t word_bits = 64;
  /// No node.
  static constexpr std::uint32_t none = 0xffff'ffffu;

  /// Visits the members in ascending order.
  class iterator {
   public:
    using value_type = std::uint32_t;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;

    iterator() = default;
    std::uint32_t operator*() const { return at_; }
    iterator& operator++() {
      at_ = set_->next(at_ + 1);
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator& a, const iterator& b) { return a.at_ == b.at_; }

   private:
    friend class node_set;
    iterator(const node_set* set, std::uint32_t at) : set_(set), at_(at) {}
    const node_set* set_ = nullptr;
    std::uint32_t at_ = none;
  };

  node_set() = default;
  node_set(std::initializer_list<std::uint32_t> nodes) : node_set(std::span(nodes.begin(), nodes.size())) {}
  explicit node_set(std::span<const std::uint32_t> nodes) {
    for (const std::uint32_t node : nodes) insert(node);
  }

  bool empty() const noexcept { return words_.empty(); }

  /// The number of members; counts bits.
  std::size_t size() const noexcept {
    std::size_t count = 0;
    for (const word w : words_) count += static_cast<std::size_t>(std::popcount(w));
    return count;
  }

  /// The smallest member; `none` if the set is empty.
  std::uint32_t first() const noexcept {
    return empty() ? none : base_ + static_cast<std::uint32_t>(std::countr_zero(words_.front()));
  }

  /// The largest member; `none` if the set is empty.
  std::uint32_t last() const noexcept {
    return empty() ? none : end_base() - 1 - static_cast<std::uint32_t>(std::countl_zero(words_.back()));
  }

  /// The smallest member that is not below `from`; `none` if there is none.
  std::uint32_t next(std::uint32_t from) const noexcept {
    if (empty() || from >= end_base()) return none;
    if (from < base_) return first();
    std::size_t at = (from - base_) / word_bits;
    word rest = words_[at] & (~word{0} << (from % word_bits));
    while (rest == 0) {
      if (++at == words_.size()) return none;
      rest = words_[at];
    }
    return node_at(at, rest);
  }

  /// The smallest number that is not below `from` and not a member. It always exists, since the set has no end.
  std::uint32_t first_unset(std::uint32_t from = 0) const noexcept {
    if (empty() || from < base_ || from >= end_base()) return from;
    std::size_t at = (from - base_) / word_bits;
    word rest = ~words_[at] & (~word{0} << (from % word_bits));
    while (rest == 0) {
      if (++at == words_.size()) return end_base();
      rest = ~words_[at];
    }
    return node_at(at, rest);
  }

  bool contains(std::uint32_t node) const noexcept {
    if (node < base_ || node >= end_base()) return false;
    return ((words_[(node - base_) / word_bits] >> (node % word_bits)) & 1u) != 0;
  }

  /// Whether every member of `part` is a member of this set. The empty set is part of every set.
  bool contains(const node_set& part) const noexcept {
    if (part.empty()) return true;
    if (part.base_ < base_ || part.end_base() > end_base()) return false;
    const std::size_t offset = (part.base_ - base_) / word_bits;
    for (std::size_t i = 0; i < part.words_.size(); ++i) {
      if ((part.words_[i] & ~words_[i + offset]) != 0) return false;
    }
    return true;
  }

  /// Whether the two sets share a member.
  bool intersects(const node_set& other) const noexcept {
    const std::uint32_t begin = std::max(base_, other.base_);
    const std::uint32_t end = std::min(end_base(), other.end_base());
    for (std::uint32_t at = begin; at < end; at += word_bits) {
      if ((words_[(at - base_) / word_bits] & other.words_[(at - other.base_) / word_bits]) != 0) return true;
    }
    return false;
  }

  /// Adds one node. `node` must be below 0xffff'ffc0, so that the end of its word is still a number.
  void insert(std::uint32_t node) {
    reach(node, node);
    words_[(node - base_) / word_bits] |= word{1} << (node % word_bits);
  }

  /// Removes a node. Does nothing if it is not a member.
  void erase(std::uint32_t node) {
    if (!contains(node)) return;
    words_[(node - base_) / word_bits] &= ~(word{1} << (node % word_bits));
    trim();
  }

  void clear() noexcept {
    words_.clear();
    base_ = 0;
  }

  /// Union.
  node_set& operator|=(const node_set& other) {
    if (other.empty()) return *this;
    reach(other.first(), other.last());
    const std::size_t offset = (other.base_ - base_) / word_bits;
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i + offset] |= other.words_[i];
    return *this;
  }

  /// Intersection.
  node_set& operator&=(const node_set& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.word_from(base_ + shift(i));
    trim();
    return *this;
  }

  /// Difference.
  node_set& operator-=(const node_set& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.word_from(base_ + shift(i));
    trim();
    return *this;
  }

  friend node_set operator|(node_set a, const node_set& b) { return std::move(a |= b); }
  friend node_set operator&(node_set a, const node_set& b) { return std::move(a &= b); }
  friend node_set operator-(node_set a, const node_set& b) { return std::move(a -= b); }
  friend bool operator==(const node_set&, const node_set&) = default;

  iterator begin() const noexcept { return {this, first()}; }
  iterator end() const noexcept { return {this, none}; }

  /// The number of the first bit of `words()`, a multiple of 64.
  std::uint32_t base() const noexcept { return base_; }
  /// The words from the one that holds first() to the one that holds last().
  std::span<const word> words() const noexcept { return words_; }

  std::size_t hash() const noexcept {
    std::uint64_t h = base_ + 0x9e37'79b9'7f4a'7c15u;
    for (const word w : words_) {
      h = (h ^ w) * 0xff51'afd7'ed55'8ccdu;  // the finaliser of MurmurHash3, one round per word
      h ^= h >> 32u;
    }
    return static_cast<std::size_t>(h);
  }

 private:
  static constexpr std::uint32_t shift(std::size_t words) { return static_cast<std::uint32_t>(words) * word_bits; }
  std::uint32_t end_base() const noexcept { return base_ + shift(words_.size()); }
  std::uint32_t node_at(std::size_t at, word rest) const noexcept {
    return base_ + shift(at) + static_cast<std::uint32_t>(std::countr_zero(rest));
  }
  word word_from(std::uint32_t base) const noexcept {
    return base < base_ || base >= end_base() ? 0 : words_[(base - base_) / word_bits];
  }

  /// Widens the stored words to hold `low` and `high`.
  void reach(std::uint32_t low, std::uint32_t high) {
    const std::uint32_t begin = low - low % word_bits;
    const std::uint32_t end = high - high % word_bits + word_bits;
    if (words_.empty()) base_ = begin;
    if (begin < base_) {
      words_.insert(words_.begin(), (base_ - begin) / word_bits, word{0});
      base_ = begin;
    }
    if (end > end_base()) words_.resize((end - base_) / word_bits);
  }

  /// Restores the one representation: no zero word at either end.
  void trim() {
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
    const auto low = std::find_if(words_.begin(), words_.end(), [](word w) { return w != 0; });
    base_ = words_.empty() ? 0 : base_ + shift(static_cast<std::size_t>(low - words_.begin()));
    words_.erase(words_.begin(), low);
  }

  std::uint32_t base_ = 0;
  std::vector<word> words_;
};

/// "{2, 3, 7}".
inline std::string to_string(const node_set& nodes) {
  std::string text = "{";
  for (const std::uint32_t node : nodes) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(node);
  }
  return text + "}";
}

}  // namespace collage::inline v0::search

template <>
struct std::hash<collage::search::node_set> {
  std::size_t operator()(const collage::search::node_set& nodes) const noexcept { return nodes.hash(); }
};
