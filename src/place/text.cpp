// Pages of text, in the target collage::place.
#include "text.hpp"
#include <algorithm>
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

std::string wrap(std::string_view text, std::size_t indent, std::size_t first) {
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

std::string format_number(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof(text), format, number);
  return text;
}

std::string table::text(painter paint) const {
  std::vector<std::size_t> width;
  for (const column& c : columns_) width.push_back(width_of(c.title));
  for (const std::vector<cell>& row : rows_)
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
  for (std::vector<cell> row : rows_) {
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
