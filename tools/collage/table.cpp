#include "table.hpp"

#include <algorithm>

namespace program {

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

std::string table::text() const {
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

}  // namespace program
