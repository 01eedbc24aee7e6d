// Reads the words of a stored workload: its operators and values, from which its family and size follow.
#pragma once

#include <collage/detail/hash.hpp>
#include <collage/dtype.hpp>
#include <collage/layout.hpp>
#include <collage/list_view.hpp>
#include <collage/op/inference.hpp>
#include <collage/op/kind.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/slice.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace collage::inline v0::detail {

/// A workload as `structure_key` (place/workloads.hpp) writes it, followed by the forms of the values that its kernel reads and
/// writes. Words that were not written so have no operators.
struct workload_words {
  struct value_type {
    tensor_type type;
    std::uint64_t role = 0;  ///< the word about its role, without its element type
    bool is_constant = false;
    std::uint64_t scalar = 0;
  };
  struct operation {
    std::uint64_t kind = 0;
    std::span<const std::uint64_t> attributes;
    std::vector<std::uint32_t> inputs, outputs;  ///< numbers of values
  };
  std::vector<operation> nodes;
  std::vector<value_type> values;
  std::span<const std::uint64_t> forms;

  bool is_understood() const { return !nodes.empty(); }
};

/// Reads the words of a workload. Refers to them.
class workload_reader {
 public:
  explicit workload_reader(std::span<const std::uint64_t> words) : words_(words) {}

  workload_words read() {
    workload_words found;
    while (at_ < words_.size()) {
      const std::size_t start = at_, values = found.values.size();
      if (read_node(found)) continue;
      found.values.resize(values);
      found.forms = words_.subspan(start);
      break;
    }
    return found;
  }

 private:
  static constexpr std::uint64_t most_operands = 0xFFFF;

  bool read_node(workload_words& found) {
    if (words_.size() - at_ < 3 || words_[at_ + 1] > most_operands) return false;
    workload_words::operation node;
    node.kind = words_[at_];
    const std::uint64_t inputs = words_[at_ + 1];
    at_ += 2;
    for (std::uint64_t i = 0; i < inputs; ++i) {
      if (at_ >= words_.size() || words_[at_] > found.values.size()) return false;
      node.inputs.push_back(static_cast<std::uint32_t>(words_[at_]));
      if (words_[at_++] == found.values.size() && !read_value(found)) return false;
    }
    if (at_ >= words_.size() || words_[at_] > words_.size() - at_ - 1) return false;
    const auto count = static_cast<std::size_t>(words_[at_++]);
    node.attributes = words_.subspan(at_, count);
    at_ += count;
    // How many results an operator has is not among the words. Each is a value that was not met before.
    while (at_ + 3 < words_.size() && words_[at_] == found.values.size() && words_[at_ + 2] == plain.id) {
      node.outputs.push_back(static_cast<std::uint32_t>(words_[at_++]));
      if (!read_value(found)) return false;
    }
    found.nodes.push_back(std::move(node));
    return true;
  }
  bool read_value(workload_words& found) {
    if (words_.size() - at_ < 3 || words_[at_ + 1] != plain.id || words_[at_ + 2] > shape::max_rank) return false;
    workload_words::value_type v;
    const std::uint64_t what = words_[at_];
    v.type.type = static_cast<dtype>(what >> 8);
    v.role = what & 0xFF;
    v.is_constant = (what >> 2 & 1) != 0;
    const auto rank = static_cast<std::size_t>(words_[at_ + 2]);
    const bool has_scalar = (what & 1) != 0;
    at_ += 3;
    if (words_.size() - at_ < rank + (has_scalar ? 1 : 0)) return false;
    for (std::size_t d = 0; d < rank; ++d) v.type.dims.push_back(static_cast<std::int64_t>(words_[at_++]));
    if (has_scalar) v.scalar = words_[at_++];
    found.values.push_back(v);
    return true;
  }

  std::span<const std::uint64_t> words_;
  std::size_t at_ = 0;
};

/// Two independent hashes: equal ones mean equal words, for all that can happen.
struct wide_hash {
  std::uint64_t first = 0x243F6A8885A308D3, second = 0x13198A2E03707344;

  void add(std::uint64_t word) {
    first = combine(first, word);
    second = combine(second, word ^ 0xA4093822299F31D0);
  }
  void add(std::span<const std::uint64_t> words) {
    add(words.size());
    for (const std::uint64_t word : words) add(word);
  }
  friend bool operator==(const wide_hash&, const wide_hash&) = default;
  struct hasher {
    std::size_t operator()(const wide_hash& h) const { return static_cast<std::size_t>(h.first); }
  };
};

/// Which extents are part of a family.
enum class family_extents : std::uint8_t {
  constants,  ///< those of constants, which stay as they are where the shapes of a network change
  none
};

/// Adds all of a workload but its extents. The attributes of reshapes and expansions are extents, too.
inline void add_family(const workload_words& w, family_extents which, wide_hash& to) {
  const auto is_shape = [](std::uint64_t kind) {
    return kind == kind_id<struct ops::reshape> || kind == kind_id<struct ops::expand>;
  };
  for (const workload_words::operation& node : w.nodes) {
    to.add(node.kind);
    for (const auto* const list : {&node.inputs, &node.outputs}) {
      to.add(list->size());
      for (const std::uint32_t v : *list) to.add(v);
    }
    if (!is_shape(node.kind)) to.add(node.attributes);
  }
  for (const workload_words::value_type& v : w.values) {
    to.add(static_cast<std::uint64_t>(v.type.type) << 8 | v.role);
    to.add(v.scalar);
    to.add(v.type.dims.rank);
    if (which == family_extents::constants && v.is_constant)
      for (const std::int64_t extent : v.type.dims) to.add(static_cast<std::uint64_t>(extent));
  }
  to.add(w.forms);
}

/// The kinds of a workload's operators alone.
inline void add_kinds(const workload_words& w, wide_hash& to) {
  for (const workload_words::operation& node : w.nodes) to.add(node.kind);
  to.add(w.nodes.size());
}

}  // namespace collage::inline v0::detail
