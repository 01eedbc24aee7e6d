// The states of a search: interned pairs (first uncovered node, covered set beyond it).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::search::detail {

/// Moves a state past its covered nodes. `mask` has bit i for node position + i; afterwards bit 0 is clear. Returns the
/// new position, which is the first uncovered node.
inline std::uint32_t past_covered(std::uint32_t position, std::span<std::uint64_t> mask) {
  std::size_t whole = 0;
  while (whole < mask.size() && mask[whole] == ~std::uint64_t{0}) ++whole;
  const unsigned part = whole < mask.size() ? static_cast<unsigned>(std::countr_one(mask[whole])) : 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const std::uint64_t low = i + whole < mask.size() ? mask[i + whole] : 0;
    const std::uint64_t high = i + whole + 1 < mask.size() ? mask[i + whole + 1] : 0;
    mask[i] = part == 0 ? low : (low >> part) | (high << (64 - part));
  }
  return position + static_cast<std::uint32_t>(64 * whole) + part;
}

/// Numbers states from 0: equal states get equal numbers. All masks lie in one array, without an allocation per state.
class state_table {
 public:
  /// `words`: 64-bit words per mask.
  explicit state_table(std::size_t words) : words_(words), slots_(smallest, empty) {}

  std::size_t size() const { return positions_.size(); }
  std::uint32_t position(std::uint32_t id) const { return positions_[id]; }
  /// Valid until the next `insert`.
  std::span<const std::uint64_t> mask(std::uint32_t id) const { return std::span(masks_).subspan(id * words_, words_); }

  /// Returns the state's number, and whether it is new.
  std::pair<std::uint32_t, bool> insert(std::uint32_t position, std::span<const std::uint64_t> mask) {
    std::size_t slot = find(position, mask);
    if (slots_[slot] != empty) return {slots_[slot], false};
    if (2 * (size() + 1) > used_) {
      grow();
      slot = find(position, mask);
    }
    const auto id = static_cast<std::uint32_t>(size());
    slots_[slot] = id;
    positions_.push_back(position);
    masks_.insert(masks_.end(), mask.begin(), mask.end());
    return {id, true};
  }

  bool contains(std::uint32_t position, std::span<const std::uint64_t> mask) const {
    return slots_[find(position, mask)] != empty;
  }

  /// The state's number, if it has one.
  std::optional<std::uint32_t> find_id(std::uint32_t position, std::span<const std::uint64_t> mask) const {
    const std::uint32_t id = slots_[find(position, mask)];
    return id == empty ? std::nullopt : std::optional(id);
  }

  std::size_t size_in_bytes() const {
    return (slots_.capacity() + positions_.capacity()) * sizeof(std::uint32_t) +
           masks_.capacity() * sizeof(std::uint64_t);
  }

  /// Forgets all states and keeps the memory. Clears only the slots that are used next: pieces are many and mostly small.
  void clear() {
    positions_.clear();
    masks_.clear();
    used_ = smallest;
    std::fill_n(slots_.begin(), used_, empty);
  }

 private:
  static constexpr std::uint32_t empty = 0xffff'ffffu;
  static constexpr std::size_t smallest = 64;  // a power of two

  std::size_t find(std::uint32_t position, std::span<const std::uint64_t> mask) const {
    std::uint64_t h = position * 0x9e37'79b9'7f4a'7c15u;
    for (const std::uint64_t word : mask) {
      h = (h ^ word) * 0xff51'afd7'ed55'8ccdu;
      h ^= h >> 32u;
    }
    std::size_t slot = static_cast<std::size_t>(h) & (used_ - 1);
    while (slots_[slot] != empty && !equal(slots_[slot], position, mask)) slot = (slot + 1) & (used_ - 1);
    return slot;
  }

  bool equal(std::uint32_t id, std::uint32_t position, std::span<const std::uint64_t> mask) const {
    return positions_[id] == position && std::equal(mask.begin(), mask.end(), masks_.data() + id * words_);
  }

  void grow() {
    used_ *= 2;
    if (slots_.size() < used_) slots_.resize(used_);
    std::fill_n(slots_.begin(), used_, empty);
    for (std::uint32_t id = 0; id < size(); ++id) slots_[find(positions_[id], mask(id))] = id;
  }

  std::size_t words_;
  std::size_t used_ = smallest;  // number of slots in use; the array may be longer
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint64_t> masks_;
};

}  // namespace collage::inline v0::search::detail
