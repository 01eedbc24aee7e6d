// Families of groups of operators: which of them share a cost model.
//
// A key is any function from a group to a text, and groups with equal texts are a family. The three keys here are those of FamilySeer
// (Zhang et al. 2022). A model is for one search space, so kernels of different spaces are never of one family.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::tune {

/// An operator of a group, as families see it.
struct member_operator {
  std::string_view kind;     ///< "conv"
  std::string_view variant;  ///< what makes its kernels others: "depthwise", "grouped", or empty
  bool is_core = false;      ///< the operator that dominates the group's work: a convolution, a product
  friend bool operator==(const member_operator&, const member_operator&) = default;
};

/// A group of operators that one kernel computes, in the order of the data.
struct subgraph {
  std::string_view space;  ///< the name of the search space of its kernels
  std::vector<member_operator> operators;
};

/// The key of a group. Others than those below may be given wherever one is expected.
using family_key = std::function<std::string(const subgraph&)>;

/// "conv depthwise": the core operator, or the first one if none is.
std::string by_core_operator(const subgraph& group);
/// "conv bias relu": all operators.
std::string by_operator_sequence(const subgraph& group);
/// "3 operators". Depthwise and dense convolutions are apart by their spaces.
std::string by_operator_count(const subgraph& group);

/// The family of each group: numbers from 0 on, in the order of their first groups.
std::vector<std::size_t> families_of(std::span<const subgraph> groups, const family_key& key);

/// How well the model of one task orders the points of another: row `from`, column `to`, each from 0 to 1.
struct agreement_table {
  std::size_t tasks = 0;
  std::vector<double> shares;  ///< row after row
  double at(std::size_t from, std::size_t to) const { return shares[from * tasks + to]; }
};

/// The share of pairs of points that a prediction orders as the times do. A larger prediction means a shorter time. Only pairs count
/// whose times differ by more than `apart` of the shorter one. Those predicted as equal count half. The result is 1 if no pair counts.
/// Error (invalid_argument): the lists differ in length, or there are more than 4096 points.
double share_of_ordered_pairs(std::span<const float> predicted, std::span<const double> times, double apart = 0.02);

/// Families by how well models predict each other. The agreement of two tasks is the smaller of their two shares. The two families that
/// agree most on average are joined, as long as they agree by `least`. Numbers as in `families_of`.
/// Error (invalid_argument): the table is not square, or holds a number outside 0 to 1.
std::vector<std::size_t> learned_families(const agreement_table& table, double least);

}  // namespace collage::inline v0::tune
