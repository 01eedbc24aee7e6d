// The option --memory: how much memory the weights of a plan may take.
#pragma once

#include <collage/run/weights.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace program {

/// Reads "1.5x" as a ratio and "200MB" as bytes. Nothing if it is neither.
inline std::optional<collage::weight_bound> read_memory(std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto end = std::from_chars(text.data(), last, number);
  const std::string_view unit(end.ptr, static_cast<std::size_t>(last - end.ptr));
  if (end.ec != std::errc() || !(number > 0 && number <= 1e15)) return {};
  collage::weight_bound bound;
  if (unit == "x") {
    bound.ratio = number;
    return bound;
  }
  constexpr std::pair<std::string_view, double> units[] = {{"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                                                           {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
  for (const auto& [name, bytes] : units)
    if (unit == name && number * bytes <= 1e15) {
      bound.bytes = static_cast<std::uint64_t>(number * bytes);
      return bound;
    }
  return {};
}
inline std::string fault_of_memory(const std::string& text) {
  return read_memory(text) ? std::string()
                           : "'" + text + "' is not a ratio or a size above 0; write 1.5x, 200MB or 1.5GiB";
}

}  // namespace program
