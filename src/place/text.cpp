// Pages of text, in the target collage::place.
#include "text.hpp"
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace collage::inline v0 {

namespace detail {

namespace {

constexpr std::size_t gap = 2;

/// Columns that a text takes: bytes without the followers of UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string cut(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  return text.substr(0, width - 2) + "..";
}

}  // namespace

std::string plain_text(colour, std::string_view text) { return std::string(text); }

namespace {

// A mark is a control character, which `visible` removes everywhere else, and a letter.
constexpr char mark = '\x01';
constexpr char first_letter = 'a';
constexpr int colours = 6;

}  // namespace

std::string painted(colour c, std::string_view text) {
  const auto letter = [](colour of) { return static_cast<char>(first_letter + static_cast<int>(of)); };
  return std::string{mark, letter(c)} + visible(text) + std::string{mark, letter(colour::none)};
}

std::optional<colour> mark_at(std::string_view text) {
  if (text.size() < mark_size || text[0] != mark) return {};
  const int number = text[1] - first_letter;
  if (number < 0 || number >= colours) return {};
  return static_cast<colour>(number);
}

std::string visible(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (mark_at(text.substr(i))) {
      shown += text.substr(i++, mark_size);
      continue;
    }
    unsigned control = 0;
    if ((c < 0x20 && c != '\n') || c == 0x7F) control = c;
    // U+0080 to U+009F in UTF-8.
    if (c == 0xC2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xE0U) == 0x80)
      control = static_cast<unsigned char>(text[++i]);
    if (control == 0 && c != 0) {
      shown += text[i];
      continue;
    }
    char code[8];
    std::snprintf(code, sizeof(code), "\\u%04x", control);
    shown += code;
  }
  return shown;
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t first) {
  const std::string shown = visible(text);
  text = shown;
  std::string page(first, ' ');
  std::size_t column = first;
  bool fresh = true;  // nothing stands in this line yet
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!fresh && column + 1 + word.size() > page_width) {
      page += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!fresh) {
      page += ' ';
      ++column;
    }
    page += word;
    column += word.size();
    fresh = false;
  }
  return page + '\n';
}

namespace {

/// Removes the sign of a number that was rounded to zero.
std::string without_sign_of_zero(const std::string& number) {
  const bool is_zero = number.find_first_of("123456789") == std::string::npos;
  return number.starts_with("-0") && is_zero ? number.substr(1) : number;
}

}  // namespace

std::string format_number(const char* format, double number) {
  std::string chosen = format;
  // A file that was edited by hand may hold any number. The digits of a huge one say no more than its exponent.
  if (std::abs(number) > 1e15 && chosen.starts_with("%.") && chosen.find('f') == 3) chosen.replace(2, 2, "3g");
  char text[64];
  std::snprintf(text, sizeof(text), chosen.c_str(), number);
  return without_sign_of_zero(text);
}

std::string ratio_text(double ratio) { return format_number(ratio <= 1e6 ? "%.3f" : "%.3g", ratio); }

std::string count_of(std::size_t number, const char* one) {
  return std::to_string(number) + " " + one + (number == 1 ? "" : "s");
}

time_unit::time_unit(double largest_ms) {
  if (largest_ms >= 0.01 || largest_ms <= 0) return;
  name = "µs";
  in_one_ms = 1e3;
}
std::string time_unit::number(double ms, int decimals) const {
  return format_number(("%." + std::to_string(decimals) + "f").c_str(), ms * in_one_ms);
}
std::string format_time(double ms) {
  const time_unit unit(ms);
  return unit.number(ms, 3) + " " + unit.name;
}

std::string size_text(std::uint64_t bytes) {
  const auto up = [bytes](std::uint64_t step) {
    return static_cast<double>(bytes / step + (bytes % step != 0 ? 1 : 0));
  };
  if (bytes >= 1'000'000'000) return format_number("%.2f GB", up(10'000'000) / 100);
  return bytes >= 1'000'000 ? format_number("%.2f MB", up(10'000) / 100) : format_number("%.1f KB", up(100) / 10);
}

std::string table::text(painter paint) const {
  std::vector<std::size_t> width;
  for (const column& c : columns_) width.push_back(width_of(c.title));
  std::vector<std::vector<cell>> rows = rows_;
  for (std::vector<cell>& row : rows)
    for (cell& one : row) one.text = visible(one.text);
  for (const std::vector<cell>& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], width_of(row[i].text));

  std::size_t total = gap * (width.size() - 1);
  for (const std::size_t w : width) total += w;
  // The widest column gives first.
  while (total > page_width) {
    std::size_t widest = width.size();
    for (std::size_t i = 0; i < width.size(); ++i)
      if (columns_[i].least != 0 && width[i] > columns_[i].least &&
          (widest == width.size() || width[i] > width[widest]))
        widest = i;
    if (widest == width.size()) break;
    --width[widest];
    --total;
  }

  std::string page;
  const auto line = [&](const std::vector<cell>& row, colour ink) {
    std::string text;
    std::size_t owed = 0;  // spaces that are only written if something follows
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string words = cut(row[i].text, width[i]);
      const std::size_t room = width[i] - std::min(width[i], width_of(words));
      const std::size_t before = columns_[i].side == align::right ? room : 0;
      if (!words.empty()) {
        text += std::string(owed + before, ' ') + paint(ink == colour::none ? row[i].ink : ink, words);
        owed = room - before + gap;
      } else {
        owed += width[i] + gap;
      }
    }
    page += text + '\n';
  };
  std::vector<cell> titles;
  for (const column& c : columns_) titles.emplace_back(c.title);
  line(titles, colour::bold);
  for (std::vector<cell> row : rows) {
    for (bool more = true; more;) {
      more = false;
      std::vector<cell> rest(row.size(), cell(""));
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (!columns_[i].wraps || width_of(row[i].text) <= width[i]) continue;
        const std::size_t space = row[i].text.rfind(' ', width[i]);
        if (space == std::string::npos || space == 0) continue;
        rest[i].text = row[i].text.substr(space + 1);
        row[i].text.resize(space);
        more = true;
      }
      line(row, colour::none);
      row = rest;
    }
  }
  return page;
}

}  // namespace detail
}  // namespace collage::inline v0
