// HTML and SVG in which names cannot become markup: only literals of this program enter unescaped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace collage::inline v0::report {

/// A text as a page may show it. Characters that are invisible or change the order of others become \u001b and the like: control
/// characters, U+2028, marks of writing direction. Bytes that are not UTF-8 become U+FFFD.
std::string shown(std::string_view text);
/// The same, and with all characters that mean something in HTML replaced. For contents of elements and quoted attributes.
std::string escaped(std::string_view text);
/// JSON, in ASCII, for a `<script>` element: no character in it means something in HTML.
std::string json_for_script(std::string json_in_ascii);

/// Whether a text has letters that are written from right to left.
bool is_right_to_left(std::string_view text);
/// The first characters of a text that fit in a width, in pixels, in a common sans-serif font; "…" stands for the others.
std::string shortened(const std::string& text, double width, double font_size);
/// An estimate of the width of a text, in pixels. It is rather too large.
double width_of(std::string_view text, double font_size);

/// A piece of HTML. `raw` takes literals only, so every text from elsewhere goes through `text`.
class html {
 public:
  struct literal {
    std::string_view text;
    consteval literal(const char* written) : text(written) {}
  };

  html& raw(literal written) {
    text_ += written.text;
    return *this;
  }
  html& text(std::string_view any) {
    text_ += escaped(any);
    return *this;
  }
  /// The same, with its line breaks. Longer lines than pages have are shortened.
  html& lines(std::string_view any);
  /// A name, which keeps its own direction of writing: one from right to left would turn round the figures beside it.
  html& name(std::string_view any);
  /// The same where no element can stand: in titles and attributes.
  html& plain_name(std::string_view any);
  html& add(const html& other) {
    text_ += other.text_;
    return *this;
  }
  html& count(std::size_t number) {
    text_ += std::to_string(number);
    return *this;
  }
  /// A length, in pixels, with at most one decimal.
  html& length(double pixels);
  /// The contents of a file of this program, or JSON that `json_for_script` made.
  html& trusted(std::string_view contents) {
    text_ += contents;
    return *this;
  }

  bool empty() const { return text_.empty(); }
  const std::string& str() const& { return text_; }
  std::string str() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace collage::inline v0::report
