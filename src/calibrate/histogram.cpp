#include <collage/calibrate/histogram.hpp>
#include <collage/error.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

namespace collage::inline v0 {
namespace {

constexpr std::uint32_t sign_bit = 0x80000000U, infinite_bits = 0x7F800000U;

/// The bin of a number: the quotient is exact, because the width is a power of two.
std::int64_t bin_of(float x, double per_width) {
  const double at = static_cast<double>(x) * per_width;
  const auto whole = static_cast<std::int64_t>(at);
  return whole - (at < static_cast<double>(whole) ? 1 : 0);
}

/// How many bins reach from the smallest number to the largest and to zero.
std::int64_t bins_needed(interval range, int exponent) {
  const double per_width = std::ldexp(1.0, -exponent);
  const double low = std::floor(static_cast<double>(std::min(range.low, 0.0F)) * per_width);
  const double high = std::floor(static_cast<double>(std::max(range.high, 0.0F)) * per_width);
  constexpr double many = 1e18;
  return high - low > many ? static_cast<std::int64_t>(many) : static_cast<std::int64_t>(high - low) + 1;
}

/// The smallest exponent for which `bins` bins reach over a range.
int smallest_exponent(interval range, std::size_t bins, int from) {
  const float largest = std::max(-range.low, range.high);
  // bins widths of half of this exponent cannot reach over the largest number.
  const int least = largest > 0 ? std::ilogb(largest) - static_cast<int>(std::bit_width(bins)) - 1 : from;
  int exponent = std::max(from, least);
  while (bins_needed(range, exponent) > static_cast<std::int64_t>(bins)) ++exponent;
  return exponent;
}

/// The position of the first number that is NaN or infinite.
std::optional<std::size_t> first_non_finite(std::span<const float> numbers) {
  std::uint32_t largest = 0;
  for (const float x : numbers) largest = std::max(largest, std::bit_cast<std::uint32_t>(x) & ~sign_bit);
  if (largest < infinite_bits) return {};
  const auto at = std::ranges::find_if(numbers, [](float x) { return !std::isfinite(x); });
  return static_cast<std::size_t>(at - numbers.begin());
}

}  // namespace

std::optional<std::size_t> value_histogram::add(std::span<const float> numbers) {
  if (numbers.empty()) return {};
  if (const auto at = first_non_finite(numbers)) return at;
  interval range{numbers[0], numbers[0]};
  for (const float x : numbers) {
    range.low = std::min(range.low, x);
    range.high = std::max(range.high, x);
  }
  reach(range);
  const double per_width = std::ldexp(1.0, -exponent_);
  std::uint64_t zeros = 0;
  if (counts_.empty()) {
    zeros = numbers.size();
  } else {
    for (const float x : numbers) {
      if (x == 0) ++zeros;
      else ++counts_[static_cast<std::size_t>(bin_of(x, per_width) - origin_)];
    }
  }
  count_ += numbers.size();
  zeros_ += zeros;
  return {};
}

/// Widens bins until they reach over a range and over what was seen, and notes that it was seen.
void value_histogram::reach(interval range) {
  // A negative zero is no other number.
  range = {range.low + 0.0F, range.high + 0.0F};
  seen_ = count_ == 0 ? range : interval{std::min(seen_.low, range.low), std::max(seen_.high, range.high)};
  if (seen_.low == 0 && seen_.high == 0) return;
  const bool is_first = counts_.empty();
  const int wanted = smallest_exponent(seen_, bins_, is_first ? lowest_exponent : exponent_);
  if (is_first) counts_.resize(bins_);
  if (is_first) exponent_ = wanted;
  while (exponent_ < wanted) widen();
  // The bins in use may lie anywhere among all; they move to begin with the lowest one that is needed.
  const std::int64_t origin = bin_of(std::min(seen_.low, 0.0F), std::ldexp(1.0, -exponent_));
  if (is_first) origin_ = origin;
  if (origin < origin_) {
    const auto by = static_cast<std::ptrdiff_t>(origin_ - origin);
    std::rotate(counts_.begin(), counts_.end() - by, counts_.end());  // the bins that come round are empty
    origin_ = origin;
  }
}

/// Doubles the width: bins 2 i and 2 i + 1 become bin i.
void value_histogram::widen() {
  std::vector<std::uint64_t> wider(counts_.size());
  const std::int64_t origin = origin_ >> 1;
  for (std::size_t i = 0; i < counts_.size(); ++i)
    wider[static_cast<std::size_t>(((origin_ + static_cast<std::int64_t>(i)) >> 1) - origin)] += counts_[i];
  std::ranges::copy(wider, counts_.begin());
  origin_ = origin;
  ++exponent_;
}

void value_histogram::narrow_to(std::size_t bins) {
  if (bins >= bins_) return;
  bins_ = bins;
  if (counts_.empty()) return;
  const int wanted = smallest_exponent(seen_, bins_, exponent_);
  while (exponent_ < wanted) widen();
  std::vector<std::uint64_t> fewer(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(bins));
  counts_ = std::move(fewer);
}

void value_histogram::merge(const value_histogram& other) {
  narrow_to(other.bins_);
  if (other.count_ == 0) return;
  reach(other.seen_);
  const int shift = exponent_ - other.exponent_;
  const auto list = other.counts();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::int64_t bin = other.first_bin() + static_cast<std::int64_t>(i);
    counts_[static_cast<std::size_t>((shift >= 62 ? (bin < 0 ? -1 : 0) : bin >> shift) - origin_)] += list[i];
  }
  count_ += other.count_;
  zeros_ += other.zeros_;
}

std::int64_t value_histogram::first_bin() const {
  const auto at = std::ranges::find_if(counts_, [](std::uint64_t n) { return n != 0; });
  return at == counts_.end() ? 0 : origin_ + (at - counts_.begin());
}

std::span<const std::uint64_t> value_histogram::counts() const {
  const auto holds = [](std::uint64_t n) { return n != 0; };
  const auto from = std::ranges::find_if(counts_, holds);
  if (from == counts_.end()) return {};
  const auto to = std::find_if(counts_.rbegin(), counts_.rend(), holds).base();
  return {from, to};
}

double value_histogram::width() const { return std::ldexp(1.0, exponent_); }

std::optional<value_histogram> value_histogram::of(const parts& from) {
  const auto is_finite = [](interval range) { return std::isfinite(range.low) && std::isfinite(range.high); };
  if (from.bins < 2 || from.bins > most_bins || from.counts.size() > from.bins || !is_finite(from.seen)) return {};
  if (from.seen.low > from.seen.high) return {};
  std::uint64_t sum = from.zeros;
  for (const std::uint64_t n : from.counts) {
    if (sum + n < sum) return {};
    sum += n;
  }
  if (sum != from.count) return {};
  value_histogram made(from.bins);
  if (from.count == 0) return from.seen == interval{} ? std::optional(made) : std::nullopt;
  made.reach(from.seen);
  made.count_ = from.count;
  made.zeros_ = from.zeros;
  if (made.counts_.empty()) return from.counts.empty() ? std::optional(made) : std::nullopt;
  // The numbers alone decide which bins there are.
  const double per_width = std::ldexp(1.0, -made.exponent_);
  const auto last = from.first_bin + static_cast<std::int64_t>(from.counts.size()) - 1;
  if (from.exponent != made.exponent_ || from.counts.empty() || from.counts.front() == 0 || from.counts.back() == 0)
    return {};
  const bool low_fits =
      from.seen.low != 0 ? from.first_bin == bin_of(from.seen.low, per_width) : from.zeros != 0 && from.first_bin >= 0;
  const bool high_fits = from.seen.high != 0 ? last == bin_of(from.seen.high, per_width) : from.zeros != 0 && last < 0;
  if (!low_fits || !high_fits) return {};
  std::ranges::copy(from.counts, made.counts_.begin() + (from.first_bin - made.origin_));
  return made;
}

bool operator==(const value_histogram& a, const value_histogram& b) {
  return a.bins_ == b.bins_ && a.seen_ == b.seen_ && a.count_ == b.count_ && a.zeros_ == b.zeros_ &&
         (a.counts().empty() || a.exponent_ == b.exponent_) && a.first_bin() == b.first_bin() &&
         std::ranges::equal(a.counts(), b.counts());
}

std::size_t bins_for(std::size_t values, std::size_t bytes) {
  constexpr std::size_t least = 128;
  const std::size_t most = bytes / sizeof(std::uint64_t) / std::max<std::size_t>(values, 1);
  if (most < least)
    throw error(error_kind::unsupported,
                "has " + std::to_string(values) +
                    " float32 values, and histograms of all of them would take more than " +
                    std::to_string(bytes >> 20U) + " MB",
                "calibration", "choose the method minmax, which keeps no histograms");
  return std::min(std::bit_floor(most), value_histogram::most_bins);
}

}  // namespace collage::inline v0
