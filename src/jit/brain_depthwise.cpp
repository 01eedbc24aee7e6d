#include "depthwise.hpp"

#include <collage/backends/impl/team.hpp>

#include <algorithm>

namespace collage::inline v0::detail::jit {

void run_brain_depthwise(const brain_depthwise_call& call, int threads) {
  const depthwise_shape& s = call.shape;
  const brain_depthwise_function rows = brain_depthwise_rows(s.window, s.stride);
  constexpr std::int64_t pair = 2;  // rows that a tile has
  const std::int64_t height = s.output_height(), pairs = (height + pair - 1) / pair;
  const double cost = static_cast<double>(pair * s.output_width() * s.channels * s.window * s.window) / 2;
  host::parallel_parts(threads, s.batch * pairs, 1, cost, [&](std::int64_t first, std::int64_t last) {
    while (first < last) {
      const std::int64_t image = first / pairs, end = std::min(last, (image + 1) * pairs);
      const std::int64_t row = first % pairs * pair, last_row = std::min((end - image * pairs) * pair, height);
      brain_depthwise_call part = call;
      part.from += image * s.height * s.width * s.channels;
      part.to += (image * height + row) * s.output_width() * call.to_step;
      rows(part, {row, last_row, 0, s.channels});
      first = end;
    }
  });
}

}  // namespace collage::inline v0::detail::jit
