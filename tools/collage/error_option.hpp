// The option --error: how far the outputs of a plan may err because it rounds values.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace program {

/// Reads "1%" and "0.01" as 0.01. Nothing if it is not a number from 0 to 1.
inline std::optional<double> read_error(std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto end = std::from_chars(text.data(), last, number);
  const std::string_view unit(end.ptr, static_cast<std::size_t>(last - end.ptr));
  if (end.ec != std::errc() || !(unit.empty() || unit == "%")) return {};
  if (unit == "%") number /= 100;
  if (!(number >= 0 && number <= 1)) return {};
  return number;
}
inline std::string fault_of_error(const std::string& text) {
  return read_error(text) ? std::string() : "'" + text + "' is not an error from 0 to 1; write 1% or 0.01";
}

}  // namespace program
