// Histograms of a value's numbers, in memory that does not grow with their count.
#pragma once

#include <collage/calibrate/ranges.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace collage::inline v0 {

/// Counts float32 numbers in bins of one width, a power of two. Bin i has the numbers from i to i + 1 widths; zeros are counted apart.
/// When a number lies outside, the width doubles and neighbours merge, as often as needed.
///
/// The width is always the smallest one for which the bins reach from the smallest number to the largest and to zero. So a histogram
/// depends on the numbers alone, not on their order. Merging two of them loses nothing: the result is the histogram of all numbers.
class value_histogram {
 public:
  /// At most `bins` bins, from 2 on. Between half of them and all of them are in use once there are two different numbers.
  explicit value_histogram(std::size_t bins = most_bins) : bins_(bins) {}

  /// Counts numbers. If one is NaN or infinite, counts nothing and returns the position of the first such number.
  std::optional<std::size_t> add(std::span<const float> numbers);
  /// Counts the numbers of another histogram. With fewer bins than the other one, the result is that of all numbers in this many bins.
  /// With more, it has as few as the other one.
  void merge(const value_histogram& other);

  /// How many numbers were counted, and how many of them were zero, of either sign.
  std::uint64_t count() const { return count_; }
  std::uint64_t zeros() const { return zeros_; }
  /// The smallest and the largest number; both are 0 if none was counted.
  interval seen() const { return seen_; }

  /// The width of a bin is 2^exponent. Number k of the list of counts is that of bin first_bin() + k. The list begins and ends with a
  /// count above 0. It is empty if no number but zero was counted.
  int exponent() const { return exponent_; }
  std::int64_t first_bin() const;
  std::span<const std::uint64_t> counts() const;
  double width() const;
  std::size_t bins() const { return bins_; }
  /// Bytes that the histogram holds beside the object itself.
  std::size_t bytes() const { return counts_.capacity() * sizeof(std::uint64_t); }

  /// The parts of a histogram, as files hold them. `of` returns nothing if they are the parts of none. Then a count is no sum, or
  /// bins lie outside of what was seen, or their width is not the one that follows from it.
  struct parts {
    std::size_t bins = most_bins;
    interval seen;
    std::uint64_t count = 0, zeros = 0;
    int exponent = 0;
    std::int64_t first_bin = 0;
    std::vector<std::uint64_t> counts;
  };
  static std::optional<value_histogram> of(const parts& from);

  static constexpr std::size_t most_bins = 4096;

  friend bool operator==(const value_histogram& a, const value_histogram& b);

 private:
  void reach(interval range);
  void widen();
  void narrow_to(std::size_t bins);

  std::size_t bins_;
  interval seen_;
  std::uint64_t count_ = 0, zeros_ = 0;
  int exponent_ = lowest_exponent;
  std::int64_t origin_ = 0;            // the bin that counts_[0] counts
  std::vector<std::uint64_t> counts_;  // empty, or bins_ long

  static constexpr int lowest_exponent = -149;  // of the smallest float32 above zero
};

/// The number of bins for each of `values` histograms, so that all of them take at most `bytes`. It is a power of two from 128 to
/// value_histogram::most_bins. Errors: not even 128 fit.
std::size_t bins_for(std::size_t values, std::size_t bytes);

}  // namespace collage::inline v0
