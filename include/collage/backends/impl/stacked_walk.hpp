// How a program walks over a group's elements: its rows, and the steps through the values that it reads and writes.
#pragma once

#include <algorithm>
#include <collage/backends/impl/stacked_access.hpp>
#include <collage/backends/impl/stacked_group.hpp>
#include <collage/backends/impl/stacked_program.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Dimensions [first, last) without dimensions of extent 1. Neighbours are joined where all lists of steps traverse
/// both with one step.
inline shape joined(const shape& dims, std::size_t first, std::size_t last, std::span<const shape> all,
                    std::vector<shape>& steps) {
  shape result;
  steps.assign(all.size(), shape{});
  for (std::size_t i = first; i < last; ++i) {
    if (dims[i] == 1) continue;
    bool joins = !result.empty();
    for (std::size_t k = 0; joins && k < all.size(); ++k) joins = steps[k][result.size() - 1] == all[k][i] * dims[i];
    if (joins) result[result.size() - 1] *= dims[i];
    else result.push_back(dims[i]);
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (!joins) steps[k].push_back(0);
      steps[k][result.size() - 1] = all[k][i];
    }
  }
  return result;
}

class walk_of_group {
 public:
  explicit walk_of_group(const expression_maker& group) : group_(group), extents_(group.box().extents()) {
    program_.arguments = group_.arguments();
    program_.tables = group_.tables();
    list_what_is_walked();
    choose_rows();
    write_down();
    program_.has_lanes = gains_by_lanes();
  }
  /// A program without steps.
  tile_program take() { return std::move(program_); }

 private:
  static constexpr std::int64_t short_row = 32;     // broadcast operands of shorter rows are copied out
  static constexpr std::int64_t shortest_row = 16;  // rows of at most this many elements are treated side by side

  void list_what_is_walked() {
    for (const walked_leaf& l : group_.leaves()) walked_.push_back(&l);
    for (const group_output& o : group_.outputs()) walked_.push_back(&o.to);
    for (const std::vector<walked_part>& parts : group_.pieces())
      for (const walked_part& part : parts) {
        walked_.push_back(&part.leaf);
        for (std::size_t i = 0; i < extents_.size(); ++i)
          if (part.box.begin[i] != group_.box().begin[i] || part.box.end[i] != group_.box().end[i]) cut_ |= 1U << i;
      }
  }

  void choose_rows() {
    const walked_space& space = group_.space();
    // Dimensions of rows come last.
    std::vector<std::size_t> order;
    for (const bool rows : {false, true})
      for (std::size_t i = 0; i < extents_.size(); ++i)
        if (space.is_row(i) == rows) order.push_back(i);
    const auto ordered = [&](const shape& s) {
      shape made;
      for (const std::size_t i : order) made.push_back(s[i]);
      return made;
    };
    std::vector<shape> all;
    for (const walked_leaf* l : walked_)
      all.push_back(l->steps.empty() ? shape::filled(extents_.size(), 0) : ordered(l->steps));
    // Marks keep a dimension in which rows are put together from being joined to its neighbours.
    for (std::size_t i = 0; i < extents_.size(); ++i)
      if ((cut_ >> i & 1U) != 0) {
        shape marks = shape::filled(extents_.size(), 0);
        marks[i] = 1;
        all.push_back(ordered(marks));
      }
    const shape dims = ordered(extents_);
    if (space.rows != 0) {
      std::size_t first = 0;
      while (first < order.size() && !space.is_row(order[first])) ++first;
      program_.outer = joined(dims, 0, first, all, outer_);
      row_ = joined(dims, first, dims.size(), all, inner_);
      program_.pieces_apart = false;
    } else {
      row_ = joined(dims, 0, dims.size(), all, inner_);
      outer_.assign(all.size(), shape{});
      if (row_.size() > 1 && row_[row_.size() - 1] >= short_row) {
        const std::size_t last = row_.size() - 1;
        program_.outer = row_.first(last);
        row_ = row_.from(last);
        for (std::size_t k = 0; k < all.size(); ++k) {
          outer_[k] = inner_[k].first(last);
          inner_[k] = inner_[k].from(last);
        }
      }
    }
    program_.row = row_.elements();
  }

  /// Adds the walked leaves to the program, in the order of the list.
  void write_down() {
    std::size_t next = 0;
    for (; next < group_.leaves().size(); ++next) program_.leaves.push_back(leaf(next));
    for (std::size_t i = 0; i < group_.outputs().size(); ++i) program_.outputs.push_back(leaf(next++));
    for (const std::vector<walked_part>& parts : group_.pieces()) {
      tile_pieces pieces{.dims = row_, .parts = {}};
      for (const walked_part& p : parts) pieces.parts.push_back(part(p, next++));
      program_.pieces.push_back(std::move(pieces));
    }
  }
  tile_leaf leaf(std::size_t k) const {
    const walked_leaf& l = *walked_[k];
    tile_leaf made{.argument = l.argument, .offset = l.offset, .outer_steps = outer_[k], .is_bytes = l.is_bytes};
    for (std::size_t i = 0; i < l.steps.size(); ++i) made.offset += group_.box().begin[i] * l.steps[i];
    std::vector<shape> own;
    made.inner_dims = joined(row_, 0, row_.size(), std::span(&inner_[k], 1), own);
    made.inner_steps = own[0];
    return made;
  }
  tile_part part(const walked_part& of, std::size_t k) const {
    tile_part made{.begin = shape::filled(row_.size(), 0), .end = row_, .is_number = of.is_number, .number = of.number};
    made.from = leaf(k);
    made.from.inner_dims = row_;
    made.from.inner_steps = inner_[k];
    std::size_t mark = walked_.size();
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      if ((cut_ >> i & 1U) == 0) continue;
      const shape& marks = inner_[mark++];
      const auto d = static_cast<std::size_t>(std::ranges::find(marks, 1) - marks.begin());
      made.begin[d] = of.box.begin[i];
      made.end[d] = of.box.end[i];
    }
    return made;
  }

  /// Whether rows are better treated side by side, one in each lane of a vector. This is so if they are short, or if
  /// elements of neighbouring rows are adjacent in memory.
  bool gains_by_lanes() const {
    if (group_.space().rows == 0 || program_.last() < 8 || !program_.pieces.empty()) return false;
    if (program_.row <= shortest_row) return true;
    std::size_t beside = 0, along = 0;
    for (const tile_leaf& l : program_.leaves) {
      if (!l.varies() || l.is_bytes || l.row_step() == 0) continue;
      ++(l.is_transposed() ? beside : along);
    }
    return beside > along;
  }

  const expression_maker& group_;
  shape extents_;
  std::vector<const walked_leaf*> walked_;  // leaves, outputs, parts of rows
  std::uint32_t cut_ = 0;                   // dimensions in which rows are put together, a bit for each
  shape row_{};
  std::vector<shape> outer_, inner_;  // steps through `walked_`; then marks of the dimensions that are cut
  tile_program program_;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
