#include <collage/calibrate/choose.hpp>
#include <collage/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace collage::inline v0 {
namespace {

/// A histogram whose bins are laid out from zero on both sides. Bin i of `above` has the numbers from i to i + 1 widths. Bin i of `below`
/// has those from -(i + 1) to -i widths.
struct two_sides {
  double width = 1;
  std::vector<std::uint64_t> above, below;

  explicit two_sides(const value_histogram& seen) : width(seen.width()) {
    const auto counts = seen.counts();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::int64_t bin = seen.first_bin() + static_cast<std::int64_t>(i);
      std::vector<std::uint64_t>& side = bin >= 0 ? above : below;
      const auto at = static_cast<std::size_t>(bin >= 0 ? bin : -1 - bin);
      if (side.size() <= at) side.resize(at + 1);
      side[at] = counts[i];
    }
  }
  /// Both sides as one, by magnitude.
  std::vector<std::uint64_t> magnitudes() const {
    std::vector<std::uint64_t> all(std::max(above.size(), below.size()));
    for (std::size_t i = 0; i < above.size(); ++i) all[i] += above[i];
    for (std::size_t i = 0; i < below.size(); ++i) all[i] += below[i];
    return all;
  }
  /// Both sides as one, from the lowest bin on. Bin `below.size()` begins at zero.
  std::vector<std::uint64_t> in_order() const {
    std::vector<std::uint64_t> all(below.rbegin(), below.rend());
    all.insert(all.end(), above.begin(), above.end());
    return all;
  }
};

bool is_unsigned(const value_histogram& seen, quantisation_schema schema) {
  return schema == quantisation_schema::symmetric_unsigned && seen.seen().low >= 0;
}

/// The interval of a schema that reaches `low` below zero and `high` above it; both are not negative.
interval reaching(double low, double high, const value_histogram& seen, quantisation_schema schema) {
  const auto most = static_cast<float>(std::max(low, high));
  if (schema == quantisation_schema::asymmetric) return {0.0F - static_cast<float>(low), static_cast<float>(high)};
  return {is_unsigned(seen, schema) ? 0.0F : -most, most};
}

// ---- Percentile ----------------------------------------------------------------------------------------------------

/// The smallest reach of a side that leaves out at most `share` of `all` numbers; numbers are spread evenly within bins.
double reach_without(const std::vector<std::uint64_t>& side, double width, double farthest, double share,
                     std::uint64_t all) {
  double left_out = share * static_cast<double>(all);
  for (std::size_t i = side.size(); i-- > 0;) {
    const auto here = static_cast<double>(side[i]);
    if (here > left_out) return std::min(farthest, (static_cast<double>(i + 1) - left_out / here) * width);
    left_out -= here;
  }
  return 0;
}

interval by_percentile(const value_histogram& seen, quantisation_schema schema, double percentile) {
  const two_sides sides(seen);
  const double share = 1 - percentile / 100;
  const double low = std::max(0.0, -static_cast<double>(seen.seen().low));
  const double high = std::max(0.0, static_cast<double>(seen.seen().high));
  interval kept;
  if (schema == quantisation_schema::asymmetric) {
    const double each = low > 0 && high > 0 ? share / 2 : share;
    kept = reaching(reach_without(sides.below, sides.width, low, each, seen.count()),
                    reach_without(sides.above, sides.width, high, each, seen.count()), seen, schema);
  } else {
    const double most = reach_without(sides.magnitudes(), sides.width, std::max(low, high), share, seen.count());
    kept = reaching(most, most, seen, schema);
  }
  // All numbers but zero may be so few that none would be kept.
  return kept.low == kept.high ? reaching(low, high, seen, schema) : kept;
}

// ---- Mean square error ---------------------------------------------------------------------------------------------

/// The integral of the squared error of rounding to whole numbers, from 0 to x. x is at most 256 from zero.
double rounding_integral(double x) {
  constexpr double shift = 1024;  // makes the conversion, which is faster than a call of floor, round downwards
  const double whole = static_cast<double>(static_cast<int>(x + shift + 0.5)) - shift, rest = x - whole;
  return whole / 12 + rest * rest * rest / 3;
}

/// The errors of bins under a quantisation with one scale.
class bin_errors {
 public:
  explicit bin_errors(const quantisation& how) : scale_(static_cast<double>(how.scales[0])) {
    const number_limits limits = limits_of(how.element);
    low_ = static_cast<double>(limits.low - how.zero_points[0]);
    high_ = static_cast<double>(limits.high - how.zero_points[0]);
  }
  /// The mean squared error of numbers that are spread evenly from a to b.
  double mean(double a, double b) const {
    a /= scale_, b /= scale_;
    double sum = 0;
    if (a < low_) {
      const double end = std::min(b, low_);
      sum += (cube(low_ - a) - cube(low_ - end)) / 3;
    }
    if (b > high_) {
      const double from = std::max(a, high_);
      sum += (cube(b - high_) - cube(from - high_)) / 3;
    }
    const double from = std::max(a, low_), to = std::min(b, high_);
    if (to > from) sum += rounding_integral(to) - rounding_integral(from);
    return sum / (b - a) * scale_ * scale_;
  }

 private:
  static double cube(double x) { return x * x * x; }
  double scale_, low_, high_;
};

/// The reach of one side for which f is least. Looks at `most` times powers of two down to 1/256, eight for each octave, and then at finer
/// steps around the best. The widest of equals is taken.
template <class F>
double best_reach(double most, F f) {
  double best = most, least = f(most);
  const auto look = [&](double reach) {
    if (const double error = f(reach); error < least) least = error, best = reach;
  };
  constexpr int per_octave = 8, octaves = 8, finer = 8;
  for (int i = 1; i <= octaves * per_octave; ++i) look(most * std::exp2(-static_cast<double>(i) / per_octave));
  const double centre = best;
  for (int i = -finer + 1; i < finer; ++i)
    if (i != 0) look(std::min(most, centre * std::exp2(static_cast<double>(i) / (per_octave * finer))));
  return best;
}

interval by_mse(const value_histogram& seen, quantisation_schema schema) {
  double low = std::max(0.0, -static_cast<double>(seen.seen().low));
  double high = std::max(0.0, static_cast<double>(seen.seen().high));
  const auto error_of = [&](double below, double above) {
    if (static_cast<float>(std::max(below, above)) == 0) return std::numeric_limits<double>::infinity();
    return mean_square_error(seen, quantisation_of(reaching(below, above, seen, schema), schema));
  };
  if (schema != quantisation_schema::asymmetric) {
    const double most = best_reach(std::max(low, high), [&](double t) { return error_of(t, t); });
    return reaching(most, most, seen, schema);
  }
  const double lowest = low, highest = high;
  constexpr int most_rounds = 4;
  for (int round = 0; round < most_rounds; ++round) {
    const double low_before = low, high_before = high;
    if (highest > 0) high = best_reach(highest, [&](double t) { return error_of(low, t); });
    if (lowest > 0) low = best_reach(lowest, [&](double t) { return error_of(t, high); });
    if ((low == low_before && high == high_before) || lowest == 0 || highest == 0) break;
  }
  return reaching(low, high, seen, schema);
}

// ---- Entropy -------------------------------------------------------------------------------------------------------

double x_log_x(double x) { return x > 0 ? x * std::log(x) : 0; }

/// Sums over the first bins of a histogram, for divergences of many windows.
class divergences {
 public:
  explicit divergences(std::span<const std::uint64_t> counts)
      : counts_(counts), sum_(counts.size() + 1), filled_(counts.size() + 1), entropy_(counts.size() + 1) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto n = static_cast<double>(counts[i]);
      sum_[i + 1] = sum_[i] + n;
      filled_[i + 1] = filled_[i] + (counts[i] != 0 ? 1 : 0);
      entropy_[i + 1] = entropy_[i] + x_log_x(n);
    }
  }
  std::size_t size() const { return counts_.size(); }

  /// As clipping_divergence: the sum of p log(p / q) over the window's bins. P and Q are counts, and Q of a bin is the mean of its
  /// group's filled bins. So it is (sum of P log P - sum of P log Q) / all - log(all) + log(inside).
  double of(std::size_t from, std::size_t to, std::size_t levels) const {
    const double all = sum_.back(), inside = sum_[to] - sum_[from];
    if (inside == 0) return std::numeric_limits<double>::infinity();
    const double before = sum_[from], after = all - sum_[to];
    const double first = static_cast<double>(counts_[from]), last = static_cast<double>(counts_[to - 1]);
    if ((before > 0 && first == 0) || (after > 0 && last == 0)) return std::numeric_limits<double>::infinity();
    double p_log_p = entropy_[to] - entropy_[from];
    if (to - from == 1) {
      p_log_p = x_log_x(all);
    } else {
      p_log_p += x_log_x(first + before) - x_log_x(first) + x_log_x(last + after) - x_log_x(last);
    }
    double p_log_q = 0;
    const std::size_t bins = to - from;
    for (std::size_t j = 0, at = from; j < levels; ++j) {
      const std::size_t end = from + (j + 1) * bins / levels;
      const double mass = sum_[end] - sum_[at];
      if (mass > 0) {
        double clipped = mass;
        if (at == from) clipped += before;
        if (end == to) clipped += after;
        p_log_q += clipped * std::log(mass / (filled_[end] - filled_[at]));
      }
      at = end;
    }
    return (p_log_p - p_log_q) / all - std::log(all) + std::log(inside);
  }

 private:
  std::span<const std::uint64_t> counts_;
  std::vector<double> sum_, filled_, entropy_;
};

/// The window over bins from `from` on whose end has the least divergence; the widest of equals.
std::size_t best_end(const divergences& of, std::size_t from, std::size_t least_end, std::size_t levels) {
  std::size_t best = of.size();
  double least = of.of(from, best, levels);
  for (std::size_t end = of.size() - 1; end >= least_end && end > from; --end)
    if (const double d = of.of(from, end, levels); d < least) least = d, best = end;
  return best;
}
/// The same for the beginning.
std::size_t best_begin(const divergences& of, std::size_t to, std::size_t most_begin, std::size_t levels) {
  std::size_t best = 0;
  double least = of.of(0, to, levels);
  for (std::size_t from = 1; from <= most_begin && from < to; ++from)
    if (const double d = of.of(from, to, levels); d < least) least = d, best = from;
  return best;
}

interval by_entropy(const value_histogram& seen, quantisation_schema schema) {
  const two_sides sides(seen);
  const double low = std::max(0.0, -static_cast<double>(seen.seen().low));
  const double high = std::max(0.0, static_cast<double>(seen.seen().high));
  constexpr std::size_t one_side = 128, all_numbers = 256;
  const auto reach = [&](std::size_t bins, double most) {
    return std::min(most, static_cast<double>(bins) * sides.width);
  };

  if (schema != quantisation_schema::asymmetric || low == 0 || high == 0) {
    const std::vector<std::uint64_t> magnitudes = sides.magnitudes();
    const bool takes_all = schema == quantisation_schema::asymmetric || is_unsigned(seen, schema);
    const std::size_t levels = takes_all ? all_numbers : one_side;
    const std::size_t end = best_end(divergences(magnitudes), 0, std::min(levels, magnitudes.size()), levels);
    return reaching(reach(end, low), reach(end, high), seen, schema);
  }

  // Both ends in turn, until neither moves. A window holds zero, and no fewer bins than there are numbers.
  const std::vector<std::uint64_t> counts = sides.in_order();
  const divergences of(counts);
  const std::size_t zero = sides.below.size(), least = std::min(all_numbers, counts.size());
  std::size_t from = 0, to = counts.size();
  constexpr int most_rounds = 4;
  for (int round = 0; round < most_rounds; ++round) {
    const std::size_t from_before = from, to_before = to;
    to = best_end(of, from, std::max(zero, from + least), all_numbers);
    from = best_begin(of, to, std::min(zero, to - std::min(to, least)), all_numbers);
    if (from == from_before && to == to_before) break;
  }
  return reaching(reach(zero - from, low), reach(to - zero, high), seen, schema);
}

}  // namespace

double mean_square_error(const value_histogram& seen, const quantisation& how) {
  if (seen.count() == 0) return 0;
  const bin_errors errors(how);
  const auto counts = seen.counts();
  const double width = seen.width(), first = static_cast<double>(seen.first_bin());
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const double from = (first + static_cast<double>(i)) * width;
    sum += static_cast<double>(counts[i]) * errors.mean(from, from + width);
  }
  return sum / static_cast<double>(seen.count());
}

double mean_square(const value_histogram& seen) {
  if (seen.count() == 0) return 0;
  const auto counts = seen.counts();
  const double first = static_cast<double>(seen.first_bin());
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double centre = first + static_cast<double>(i) + 0.5;
    sum += static_cast<double>(counts[i]) * (centre * centre + 1.0 / 12);
  }
  return sum / static_cast<double>(seen.count()) * seen.width() * seen.width();
}

double clipping_divergence(std::span<const std::uint64_t> counts, std::size_t from, std::size_t to,
                           std::size_t levels) {
  return divergences(counts).of(from, to, levels);
}

interval chosen_range(const value_histogram& seen, range_method method, quantisation_schema schema, double percentile) {
  if (!(percentile > 0 && percentile <= 100))
    throw error(error_kind::invalid_argument, "must be above 0 and at most 100", "percentile");
  const interval all = seen.seen();
  if (all.low == 0 && all.high == 0)
    throw error(error_kind::invalid_argument, "has no number but 0", "histogram of a value");
  switch (method) {
    case range_method::percentile: return by_percentile(seen, schema, percentile);
    case range_method::entropy: return by_entropy(seen, schema);
    case range_method::mse: return by_mse(seen, schema);
    case range_method::minmax: break;
  }
  return reaching(std::max(0.0, -static_cast<double>(all.low)), std::max(0.0, static_cast<double>(all.high)), seen,
                  schema);
}

}  // namespace collage::inline v0
