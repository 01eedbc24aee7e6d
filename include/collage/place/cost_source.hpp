// Sources of costs: one concept for measured, published, modelled and random costs.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace collage::inline v0 {

/// A candidate as a source of costs sees it. Each source reads the members that it knows. The caller owns the memory of the
/// spans and views.
struct cost_question {
  /// Ascending.
  std::span<const std::uint32_t> nodes = {};
  std::string_view backend = {};
  /// The workload as 64-bit words: operators, their connections, shapes, attributes. Equal words mean equal workloads. The
  /// author of the source and its caller agree on the encoding.
  std::span<const std::uint64_t> computes = {};
  /// Arithmetic of the whole group; a multiply-add counts twice.
  double flops = 0;
  /// Bytes that cross the group's border: operands from outside, including constants, and results read outside.
  double bytes = 0;
  /// The caller's own number for the candidate.
  std::uint32_t tag = 0;
};

/// A cost in milliseconds, finite and not negative, or the reason why there is none.
struct cost_answer {
  double ms = 0;
  std::string refusal;  ///< one clause, such as "the table has no record of it"; empty if there is a cost

  explicit operator bool() const noexcept { return refusal.empty(); }
  static cost_answer none(std::string why) { return {0, std::move(why)}; }
};

/// A type that prices candidates. The result depends only on the source and the arguments, so that a search can be repeated.
template <class Source>
concept cost_source = requires(const Source& source, const cost_question& question) {
  { source.cost_of(question) } -> std::same_as<cost_answer>;
};

/// Queries the first source, and the second if the first has no cost. Refers to both; they must outlive it.
template <cost_source First, cost_source Second>
class first_known {
 public:
  first_known(const First& first, const Second& second) : first_(&first), second_(&second) {}

  cost_answer cost_of(const cost_question& question) const {
    cost_answer known = first_->cost_of(question);
    if (known) return known;
    cost_answer other = second_->cost_of(question);
    return other ? other : cost_answer::none(known.refusal + ", and " + other.refusal);
  }

 private:
  const First* first_;
  const Second* second_;
};

}  // namespace collage::inline v0
