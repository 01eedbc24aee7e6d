// Where costs come from: one concept for measured, published, modelled and random ones.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace collage::inline v0 {

/// A candidate as a source of costs sees it. Every source reads the part that it knows; a span and a view stay the
/// asker's.
struct cost_question {
  /// Ascending.
  std::span<const std::uint32_t> nodes = {};
  std::string_view backend = {};
  /// What the group computes, as words: operators, how they hang together, shapes, attributes. Equal words, equal
  /// computation. How they are made is between who fills a source and who asks it.
  std::span<const std::uint64_t> computes = {};
  /// Arithmetic of the whole group; a multiply-add counts twice.
  double flops = 0;
  /// What crosses the group's border: operands from outside, constants included, and results read outside.
  double bytes = 0;
  /// The asker's own number for the candidate.
  std::uint32_t tag = 0;
};

/// Milliseconds, finite and not negative, or why there are none.
struct cost_answer {
  double ms = 0;
  std::string refusal;  ///< one clause, "the table has no record of it"; empty where there is a cost

  explicit operator bool() const noexcept { return refusal.empty(); }
  static cost_answer none(std::string why) { return {0, std::move(why)}; }
};

/// Anything that prices candidates. The answer depends on the source and the question alone, so that a search over it can
/// be repeated.
template <class Source>
concept cost_source = requires(const Source& source, const cost_question& question) {
  { source.cost_of(question) } -> std::same_as<cost_answer>;
};

/// Asks one source, and another where the first has no cost.
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
