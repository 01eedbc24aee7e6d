// Escaping, and estimates of the width of texts.
#include "markup.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

namespace collage::inline v0::report {
namespace {

constexpr std::uint32_t replacement = 0xFFFD;

/// The next character of a text in UTF-8; U+FFFD for a byte that begins none.
std::uint32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at++);
  if (first < 0x80) return first;
  const std::size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  if (first < 0xC2 || first > 0xF4 || at + more > text.size()) return replacement;
  std::uint32_t character = first & (0x3FU >> more);
  for (std::size_t i = 0; i < more; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return replacement;
    character = character << 6 | (byte(at + i) & 0x3FU);
  }
  constexpr std::uint32_t least[] = {0, 0x80, 0x800, 0x10000};
  if (character < least[more] || character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF))
    return replacement;
  at += more;
  return character;
}

void append(std::string& to, std::uint32_t character) {
  const auto put = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
  if (character < 0x80) return put(character);
  if (character < 0x800) {
    put(0xC0 | character >> 6);
  } else if (character < 0x10000) {
    put(0xE0 | character >> 12);
    put(0x80 | (character >> 6 & 0x3F));
  } else {
    put(0xF0 | character >> 18);
    put(0x80 | (character >> 12 & 0x3F));
    put(0x80 | (character >> 6 & 0x3F));
  }
  put(0x80 | (character & 0x3F));
}

bool is_hidden(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) ||
         (c >= 0xFFFE && c <= 0xFFFF) || (c >= 0xE0000 && c <= 0xE007F);
}

/// Hebrew, Arabic, and what lies among and behind them.
bool is_right_to_left(std::uint32_t c) {
  return (c >= 0x590 && c <= 0x8FF) || (c >= 0xFB1D && c <= 0xFDFF) || (c >= 0xFE70 && c <= 0xFEFE) ||
         (c >= 0x10800 && c <= 0x10FFF) || (c >= 0x1E800 && c <= 0x1EFFF);
}

/// The width of a character in parts of the font's size, as in the wider ones of common fonts.
double width_of(std::uint32_t c) {
  if (c >= 0x1100) return 1.05;  // Chinese, Japanese and Korean signs are as wide as high
  constexpr std::string_view narrow = "ijl.,:;'|!I", medium = "ftr ()[]/-\"`{}", wide = "mwMW@%<>=+~#&";
  const auto is_in = [&](std::string_view list) { return c < 0x80 && list.find(static_cast<char>(c)) != list.npos; };
  if (is_in(narrow)) return 0.34;
  if (is_in(medium)) return 0.45;
  if (is_in(wide)) return 0.92;
  return c >= 'A' && c <= 'Z' ? 0.72 : 0.63;
}

}  // namespace

std::string shown(std::string_view text) {
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t c = next_character(text, at);
    if (!is_hidden(c)) {
      append(clean, c);
      continue;
    }
    char code[16];
    std::snprintf(code, sizeof code, c > 0xFFFF ? "\\U%08x" : "\\u%04x", static_cast<unsigned>(c));
    clean += code;
  }
  return clean;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : shown(text)) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      case '`': safe += "&#96;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string json_for_script(std::string json_in_ascii) {
  std::string safe;
  safe.reserve(json_in_ascii.size());
  for (const char c : json_in_ascii) {
    switch (c) {
      case '<': safe += "\\u003c"; break;
      case '>': safe += "\\u003e"; break;
      case '&': safe += "\\u0026"; break;
      default: safe += c;
    }
  }
  return safe;
}

double width_of(std::string_view text, double font_size) {
  double sum = 0;
  for (std::size_t at = 0; at < text.size();) sum += width_of(next_character(text, at));
  return sum * font_size;
}

std::string shortened(const std::string& text, double width, double font_size) {
  const std::string clean = shown(text);
  if (width_of(clean, font_size) <= width) return clean;
  std::string kept;
  double left = width - font_size;  // for the sign of omission
  for (std::size_t at = 0; at < clean.size();) {
    const std::size_t before = at;
    left -= width_of(next_character(clean, at)) * font_size;
    if (left < 0) break;
    kept.append(clean, before, at - before);
  }
  return kept + "\u2026";
}

bool is_right_to_left(std::string_view text) {
  for (std::size_t at = 0; at < text.size();)
    if (is_right_to_left(next_character(text, at))) return true;
  return false;
}

html& html::name(std::string_view any) {
  if (!is_right_to_left(any)) return text(any);
  return raw("<bdi>").text(any).raw("</bdi>");
}

html& html::plain_name(std::string_view any) {
  if (!is_right_to_left(any)) return text(any);
  return raw("\u2068").text(any).raw("\u2069");  // the marks of an isolated text, which names cannot contain
}

html& html::lines(std::string_view any) {
  constexpr double longest = 4000, font = 12;
  for (bool is_first = true; is_first || !any.empty(); is_first = false) {
    const std::size_t end = std::min(any.find('\n'), any.size());
    if (!is_first) text_ += '\n';
    text(shortened(std::string(any.substr(0, end)), longest, font));
    any.remove_prefix(std::min(end + 1, any.size()));
  }
  return *this;
}

html& html::length(double pixels) {
  char digits[340];
  const auto end = std::to_chars(digits, digits + sizeof digits, pixels, std::chars_format::fixed, 1);
  std::string_view number(digits, static_cast<std::size_t>(end.ptr - digits));
  if (number.ends_with(".0")) number.remove_suffix(2);
  text_ += number == "-0" ? "0" : number;
  return *this;
}

}  // namespace collage::inline v0::report
