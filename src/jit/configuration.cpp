#include "configuration.hpp"

#include "word_reader.hpp"

#include <string>
#include <string_view>

namespace collage::inline v0::detail::jit {
namespace {

std::string version_word() { return "jit" + std::to_string(generator_version); }

}  // namespace

std::string words_of(const configuration& c) {
  return std::string(name_of(c.set)) + " tile " + std::to_string(c.rows) + 'x' + std::to_string(c.vectors) +
         " unroll " + std::to_string(c.unroll) + " prefetch " + std::to_string(c.prefetch) + " broadcast " +
         (c.broadcast == broadcast_from::memory ? "memory" : "register");
}

configuration read_words(word_reader& read) {
  configuration c;
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
  return c;
}

std::string to_text(const configuration& c) { return version_word() + ' ' + words_of(c); }

configuration parse_configuration(std::string_view text) {
  word_reader read(text, to_text(default_configuration(instruction_set::avx512)));
  read.version(version_word());
  const configuration c = read_words(read);
  read.must_be(to_text(c));
  return c;
}

}  // namespace collage::inline v0::detail::jit
