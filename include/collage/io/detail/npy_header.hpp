// The header of an .npy file: a Python dictionary of fixed form, read strictly.
#pragma once

#include <bit>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace collage::inline v0::detail {

static_assert(std::endian::native == std::endian::little, ".npy files are read and written as they lie in memory");

/// numpy's code for an element type. numpy keeps elements of types that it lacks as raw bytes: bfloat16 as two, small types as one.
constexpr const char* npy_code(dtype type) {
  switch (type) {
    case dtype::f32: return "<f4";
    case dtype::f64: return "<f8";
    case dtype::f16: return "<f2";
    case dtype::bf16: return "<V2";
    case dtype::i8: return "|i1";
    case dtype::i16: return "<i2";
    case dtype::i32: return "<i4";
    case dtype::i64: return "<i8";
    case dtype::u8: return "|u1";
    case dtype::u16: return "<u2";
    case dtype::u32: return "<u4";
    case dtype::u64: return "<u8";
    case dtype::boolean: return "|b1";
    default: return "|V1";
  }
}
/// The types that their code determines.
inline constexpr dtype coded_dtypes[] = {dtype::f32, dtype::f64, dtype::f16,    dtype::bf16, dtype::i8,
                                         dtype::i16, dtype::i32, dtype::i64,    dtype::u8,   dtype::u16,
                                         dtype::u32, dtype::u64, dtype::boolean};

/// A shape as numpy writes it: (), (3,), (1, 3).
inline std::string npy_shape(const shape& dims) {
  std::string text = "(";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + (dims.size() == 1 ? ",)" : ")");
}

/// The text of the header for a type, without padding.
inline std::string npy_dictionary(const tensor_type& type) {
  return std::string("{'descr': '") + npy_code(type.type) +
         "', 'fortran_order': False, 'shape': " + npy_shape(type.dims) + ", }";
}

/// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), } and nothing else. The keys may come in any order.
class npy_dictionary_parser {
 public:
  /// A raw byte is an element of the type `expected` if that is a small one, and is refused otherwise.
  npy_dictionary_parser(std::string_view text, const std::string& file, dtype expected)
      : text_(text), file_(file), expected_(expected) {}

  tensor_type parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") once(has_type_, key), read_type();
      else if (key == "fortran_order") once(has_order_, key), read_order();
      else if (key == "shape") once(has_shape_, key), read_shape();
      else malformed("it has the unknown key '" + printable(key) + "'");
      if (accept('}')) break;
      expect(',');
    }
    skip_space();
    if (at_ != text_.size()) malformed("something follows its closing brace");
    if (!has_type_ || !has_order_ || !has_shape_) malformed("'descr', 'fortran_order' or 'shape' is missing");
    return result_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& remedy = {}) const {
    throw error(error_kind::invalid_argument, what, file_, remedy);
  }
  [[noreturn]] void malformed(const std::string& why) const { refuse("its .npy header cannot be read: " + why); }

  /// Text of the file, made fit for a message: unprintable bytes become dots, and long texts are cut.
  static std::string printable(std::string_view text) {
    std::string shown;
    for (const char c : text.substr(0, 24)) shown += c >= ' ' && c <= '~' ? c : '.';
    return text.size() > 24 ? shown + "..." : shown;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed(std::string("a '") + c + "' is missing at byte " + std::to_string(at_));
  }
  void once(bool& seen, std::string_view key) const {
    if (seen) malformed("the key '" + std::string(key) + "' occurs twice");
    seen = true;
  }
  std::string_view string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') malformed("a quoted text is missing at byte " + std::to_string(at_));
    const std::size_t from = ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\' && text_[at_] != '\n') ++at_;
    if (at_ == text_.size() || text_[at_] != quote) malformed("a text has no closing quote");
    return text_.substr(from, at_++ - from);
  }
  bool word(std::string_view wanted) {
    skip_space();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }

  void read_type() {
    if (accept('[') || accept('('))
      refuse("its elements are records, but a tensor holds numbers", "save one field of them");
    const std::string_view code = string();
    const std::string shown = "'" + printable(code) + "'";
    // The package ml_dtypes writes float8e5m2 as 'f1'.
    if (code.size() == 3 && (code.substr(1) == "V1" || (code.substr(1) == "f1" && expected_ == dtype::f8e5m2))) {
      if (!is_small(expected_))
        refuse("its elements are raw bytes (" + shown +
                   "), which do not say whether they are float8e4m3fn or of another type",
               "give the file for an input of such a type, or save numbers, as with array.astype('float32')");
      result_.type = expected_;
      return;
    }
    const bool swapped = code.size() == 3 && code[0] == '>' && code[2] != '1';
    for (const dtype type : coded_dtypes) {
      const std::string_view known = npy_code(type);
      // A single byte has no byte order, and numpy writes '|V2' when it saves an array that it has read as '<V2'.
      const bool orderless = known[2] == '1' || type == dtype::bf16;
      if (code.size() != 3 || code.substr(1) != known.substr(1)) continue;
      if (swapped)
        refuse("its numbers are big-endian (" + shown + ")", "save it with array.astype('" + std::string(known) + "')");
      if (code[0] == known[0] || (orderless && (code[0] == '|' || code[0] == '<'))) {
        result_.type = type;
        return;
      }
    }
    const char kind = code.size() > 1 ? code[1] : '\0';
    const char* what = kind == 'O'                  ? "Python objects"
                       : kind == 'c'                ? "complex numbers"
                       : kind == 'U' || kind == 'S' ? "texts"
                       : kind == 'M' || kind == 'm' ? "times"
                                                    : "of an unknown type";
    refuse("its elements are " + std::string(what) + " (" + shown + ")",
           "save numbers, as with array.astype('float32')");
  }
  void read_order() {
    if (word("False")) return;
    if (!word("True")) malformed("'fortran_order' is neither True nor False");
    refuse("it is stored in Fortran order", "save it with numpy.ascontiguousarray(array)");
  }
  void read_shape() {
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) malformed("its shape has no comma between two extents");
      if (result_.dims.size() == shape::max_rank) refuse("it has more than 8 dimensions");
      result_.dims.push_back(extent());
      comma = accept(',');
    }
    if (result_.dims.size() == 1 && !comma) malformed("its shape is a number and not a list");
    check_size();
  }
  std::int64_t extent() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '-') refuse("its shape has a negative extent");
    const std::size_t from = at_;
    std::int64_t number = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (at_ - from == 18) refuse("its shape is too large");
      number = 10 * number + (text_[at_++] - '0');
    }
    if (at_ == from || (at_ - from > 1 && text_[from] == '0')) malformed("its shape has an extent that is no number");
    return number;
  }
  /// Refuses extents and numbers of elements above 2^48, so that sizes in bytes cannot overflow.
  void check_size() const {
    std::int64_t elements = 1;
    for (const std::int64_t extent : result_.dims) {
      if (extent > (std::int64_t{1} << 48) || (extent > 0 && elements > (std::int64_t{1} << 48) / extent))
        refuse("its shape " + to_string(result_.dims) + " is too large");
      elements *= extent == 0 ? 1 : extent;
    }
  }

  std::string_view text_;
  const std::string& file_;
  dtype expected_;
  std::size_t at_ = 0;
  bool has_type_ = false, has_order_ = false, has_shape_ = false;
  tensor_type result_;
};

}  // namespace collage::inline v0::detail
