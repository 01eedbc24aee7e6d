#include "configuration.hpp"

#include <collage/error.hpp>

#include <charconv>
#include <string>
#include <string_view>

namespace collage::inline v0::detail::jit {
namespace {

/// Reads the words of a text one after the other.
class word_reader {
 public:
  explicit word_reader(std::string_view text) : text_(text), rest_(text) {}

  std::string_view word(const char* what) {
    if (rest_.empty()) refuse(std::string("it ends where ") + what + " is expected");
    const std::size_t end = rest_.find(' ');
    const std::string_view found = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    return found;
  }
  void literally(const char* expected) {
    const std::string_view found = word(expected);
    if (found != expected) refuse("it has '" + std::string(found) + "' where '" + expected + "' is expected");
  }
  int number(const char* what, std::string_view digits) const {
    int value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (fault != std::errc() || end != digits.data() + digits.size() || value < 0)
      refuse(std::string(what) + " is '" + std::string(digits) + "', which is not a number");
    return value;
  }
  int number(const char* what) { return number(what, word(what)); }

  [[noreturn]] void refuse(const std::string& why) const {
    throw error(error_kind::invalid_argument, why, "the configuration '" + std::string(text_) + "'",
                "a configuration looks like '" + to_text(default_configuration(instruction_set::avx512)) + "'");
  }

 private:
  std::string_view text_, rest_;
};

std::string version_word() { return "jit" + std::to_string(generator_version); }

}  // namespace

std::string to_text(const configuration& c) {
  return version_word() + ' ' + name_of(c.set) + " tile " + std::to_string(c.rows) + 'x' + std::to_string(c.vectors) +
         " unroll " + std::to_string(c.unroll) + " prefetch " + std::to_string(c.prefetch) + " broadcast " +
         (c.broadcast == broadcast_from::memory ? "memory" : "register");
}

configuration parse_configuration(std::string_view text) {
  word_reader read(text);
  configuration c;
  const std::string_view version = read.word("the generator's version");
  if (version != version_word())
    read.refuse("it is for the generator '" + std::string(version) + "', and this one is '" + version_word() + "'");
  const std::string_view set = read.word("the instruction set");
  if (set == name_of(instruction_set::avx2)) c.set = instruction_set::avx2;
  else if (set != name_of(instruction_set::avx512))
    read.refuse("there is no instruction set '" + std::string(set) + "': avx512 and avx2 are known");
  read.literally("tile");
  const std::string_view tile = read.word("the tile");
  const std::size_t cross = tile.find('x');
  if (cross == std::string_view::npos) read.refuse("the tile is '" + std::string(tile) + "', and not like '14x2'");
  c.rows = read.number("the number of rows", tile.substr(0, cross));
  c.vectors = read.number("the number of vectors", tile.substr(cross + 1));
  read.literally("unroll");
  c.unroll = read.number("the unrolling");
  read.literally("prefetch");
  c.prefetch = read.number("the prefetch distance");
  read.literally("broadcast");
  const std::string_view from = read.word("the source of broadcasts");
  if (from != "memory" && from != "register")
    read.refuse("the broadcast is '" + std::string(from) + "', and memory and register are known");
  c.broadcast = from == "memory" ? broadcast_from::memory : broadcast_from::vector_register;
  if (const sentence why = fault_of(c); !why.empty()) read.refuse(std::string(why.text, why.size));
  // A text with further words, spaces or zeros is no key.
  if (to_text(c) != text) read.refuse("it is written as '" + to_text(c) + "'");
  return c;
}

}  // namespace collage::inline v0::detail::jit
