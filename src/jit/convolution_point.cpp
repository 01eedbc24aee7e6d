#include "convolution_point.hpp"

#include <collage/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace collage::inline v0::detail::jit {
namespace {

constexpr std::array layouts{image_layout::blocked_16, image_layout::channels_last, image_layout::plain};

std::optional<image_layout> layout_named(std::string_view name) {
  for (const image_layout order : layouts)
    if (name == layout_of(order).name) return order;
  return {};
}

/// Removes " WORD LAYOUT" from the end of a text.
std::optional<image_layout> take_last(std::string_view& text, std::string_view word) {
  const std::size_t name = text.rfind(' ');
  if (name == std::string_view::npos) return {};
  const std::optional<image_layout> found = layout_named(text.substr(name + 1));
  text = text.substr(0, name);
  if (!found || !text.ends_with(word)) return {};
  text.remove_suffix(word.size());
  return found;
}

/// Whether each of so many threads gets at least two blocks of its own.
bool keeps_busy(const convolution_configuration& c, const convolution_shape& s, int threads) {
  return threads == 1 || blocks_of(c, s).blocks() >= 2 * threads;
}

}  // namespace

std::string convolution_point::text() const {
  return to_text(how) + " from " + layout_of(from).name + " to " + layout_of(to).name;
}

convolution_point::reading convolution_point::read(std::string_view text) {
  convolution_point made;
  std::string_view rest = text;
  const std::optional<image_layout> to = take_last(rest, " to"), from = take_last(rest, " from");
  if (!to || !from)
    return {{},
            "it does not end as in: from plain to blocked-16, with the layouts plain, channels-last and blocked-16"};
  made.from = *from;
  made.to = *to;
  try {
    made.how = parse_convolution_configuration(rest);
  } catch (const error&) {
    return {{},
            "it is not of the form: winograd1 F(4,3) avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory block 56 "
            "threads tiles from plain to plain, or has a tile that does not fit the registers"};
  }
  return {made, ""};
}

std::vector<convolution_point> promising_points(const convolution_shape& s, const convolution_machine& machine) {
  convolution_machine alone = machine;
  alone.threads = 1;
  // A configuration holds for every number of threads. Blocks of one thread serve several if there are enough of them;
  // otherwise the threads share each block.
  std::vector<convolution_configuration> first, others;
  for (const convolution_configuration& c : propose_configurations(s, alone))
    (keeps_busy(c, s, machine.threads) ? first : others).push_back(c);
  if (machine.threads > 1)
    for (const convolution_configuration& c : propose_configurations(s, machine))
      if (c.partition == work_partition::phases) first.push_back(c);
  first.insert(first.end(), others.begin(), others.end());

  // Those that are likely to be accurate enough come first, and of these the ones with the fewest multiplications.
  constexpr double usual_amplification = 100;
  std::ranges::stable_sort(first, {}, [](const convolution_configuration& c) {
    const convolution_family& f = c.algorithm();
    return std::pair(f.error.amplification > usual_amplification, -f.gain());
  });
  // One of each family, then second ones. The last place is that of weights on the fly, where these are proposed.
  std::vector<convolution_configuration> chosen;
  const auto on_the_fly =
      std::ranges::find(first, weight_transform_time::on_the_fly, &convolution_configuration::weights);
  const std::size_t of_each = most_proposals / layouts.size() - (on_the_fly == first.end() ? 0 : 1);
  for (int most = 1; most <= 2; ++most)
    for (const convolution_configuration& c : first)
      if (chosen.size() < of_each && c.weights == weight_transform_time::once &&
          std::ranges::find(chosen, c) == chosen.end() &&
          std::ranges::count(chosen, c.family, &convolution_configuration::family) < most)
        chosen.push_back(c);
  if (on_the_fly != first.end()) chosen.push_back(*on_the_fly);

  std::vector<convolution_point> list;
  for (const convolution_configuration& c : chosen)
    for (const image_layout order : layouts) list.push_back({c, order, order});
  return list;
}

convolution_machine this_machine() {
  convolution_machine machine;
  if (!refusal_of(instruction_set::avx512).empty()) machine.set = instruction_set::avx2;
  machine.threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
#ifdef _SC_LEVEL2_CACHE_SIZE
  // Some virtual machines hide it.
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) machine.second_level_bytes = bytes;
#endif
  return machine;
}

}  // namespace collage::inline v0::detail::jit
