// Folds of rows, for the current target of hwy/foreach_target.h, which includes this file once for each target.
#if defined(COLLAGE_STACKED_FOLDS) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_STACKED_FOLDS
#undef COLLAGE_STACKED_FOLDS
#else
#define COLLAGE_STACKED_FOLDS
#endif

#include <hwy/highway.h>
#include <collage/backends/impl/stacked_math.hpp>
#include <collage/backends/impl/stacked_memory.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::host {
namespace {
namespace HWY_NAMESPACE {

struct as_it_is {
  static HWY_INLINE vector run(vector x) { return x; }
};
struct squared {
  static HWY_INLINE vector run(vector x) { return hn::Mul(x, x); }
};
/// Each of four sums adds sixteen vectors; the four are then added in double. The error does not grow with the row.
template <class F>
struct sum_fold {
  static void rows(const tile_call& t) {
    constexpr std::int64_t together = 4 * 16 * lanes;
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const float* const a = t.a + r * t.a_step;
      double total = 0;
      for (std::int64_t first = 0; first < t.columns; first += together) {
        const std::int64_t end = first + together < t.columns ? first + together : t.columns;
        vector sum[4] = {hn::Zero(tag), hn::Zero(tag), hn::Zero(tag), hn::Zero(tag)};
        std::int64_t i = first;
        for (; i + 4 * lanes <= end; i += 4 * lanes)
          for (std::int64_t k = 0; k < 4; ++k) sum[k] = hn::Add(sum[k], F::run(load(a + i + k * lanes)));
        for (; i + lanes <= end; i += lanes) sum[0] = hn::Add(sum[0], F::run(load(a + i)));
        if (i < end) sum[1] = hn::Add(sum[1], F::run(load_some(a + i, end - i)));
        const vector all = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
        total += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, all)));
      }
      t.y[r * t.y_step] = static_cast<float>(total);
    }
  }
  /// One row in each lane: sums of sixteen elements are added in double.
  static void columns(const tile_call& t) {
    for (std::int64_t i = 0; i < t.columns; i += lanes) {
      const std::int64_t count = t.columns - i < lanes ? t.columns - i : lanes;
      const float* a = t.a + i;
      HWY_ALIGN float some[hn::MaxLanes(tag)];
      double total[hn::MaxLanes(tag)] = {};
      for (std::int64_t first = 0; first < t.rows; first += 16) {
        const std::int64_t end = first + 16 < t.rows ? first + 16 : t.rows;
        vector sum[2] = {hn::Zero(tag), hn::Zero(tag)};
        for (std::int64_t r = first; r < end; ++r, a += t.a_step) {
          const vector x = count == lanes ? load(a) : load_some(a, count);
          sum[r & 1] = hn::Add(sum[r & 1], F::run(x));
        }
        const vector both = hn::Add(sum[0], sum[1]);
        if (end == t.rows && first == 0) {  // a short row
          if (count == lanes) store(both, t.y + i);
          else store_some(both, t.y + i, count);
          break;
        }
        hn::Store(both, tag, some);
        for (std::int64_t k = 0; k < lanes; ++k) total[k] += static_cast<double>(some[k]);
      }
      if (t.rows > 16)
        for (std::int64_t k = 0; k < count; ++k) t.y[i + k] = static_cast<float>(total[k]);
    }
  }
};

struct larger {
  static constexpr float none = -std::numeric_limits<float>::infinity();
  static HWY_INLINE vector run(vector a, vector b) { return hn::Max(a, b); }
  static HWY_INLINE vector across(vector a) { return hn::MaxOfLanes(tag, a); }
};
struct smaller {
  static constexpr float none = std::numeric_limits<float>::infinity();
  static HWY_INLINE vector run(vector a, vector b) { return hn::Min(a, b); }
  static HWY_INLINE vector across(vector a) { return hn::MinOfLanes(tag, a); }
};

/// NaN where there is one. Processors differ in the operand that a maximum returns when one is NaN, so NaN is detected
/// separately.
template <class F>
struct extreme_fold {
  static void rows(const tile_call& t) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const float* const a = t.a + r * t.a_step;
      vector most[2] = {number(F::none), number(F::none)};
      auto bad = hn::FirstN(tag, 0);
      std::int64_t i = 0;
      for (; i + 2 * lanes <= t.columns; i += 2 * lanes) {
        const vector x = load(a + i), y = load(a + i + lanes);
        most[0] = F::run(x, most[0]);
        most[1] = F::run(y, most[1]);
        bad = hn::Or(bad, hn::Or(is_nan(x), is_nan(y)));
      }
      for (std::int64_t count; (count = t.columns - i) > 0; i += lanes) {
        vector x = number(F::none);
        if (count >= lanes) x = load(a + i);
        else x = hn::IfThenElse(hn::FirstN(tag, static_cast<std::size_t>(count)), load_some(a + i, count), x);
        most[0] = F::run(x, most[0]);
        bad = hn::Or(bad, is_nan(x));
      }
      const float found = hn::GetLane(F::across(F::run(most[0], most[1])));
      t.y[r * t.y_step] = hn::AllFalse(tag, bad) ? found : std::numeric_limits<float>::quiet_NaN();
    }
  }
  static void columns(const tile_call& t) {
    for (std::int64_t i = 0; i < t.columns; i += lanes) {
      const std::int64_t count = t.columns - i < lanes ? t.columns - i : lanes;
      const float* a = t.a + i;
      vector most = number(F::none);
      auto bad = hn::FirstN(tag, 0);
      for (std::int64_t r = 0; r < t.rows; ++r, a += t.a_step) {
        const vector x = count == lanes ? load(a) : load_some(a, count);
        most = F::run(x, most);
        bad = hn::Or(bad, is_nan(x));
      }
      most = hn::IfThenElse(bad, number(std::numeric_limits<float>::quiet_NaN()), most);
      if (count == lanes) store(most, t.y + i);
      else store_some(most, t.y + i, count);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::host
HWY_AFTER_NAMESPACE();

#endif
