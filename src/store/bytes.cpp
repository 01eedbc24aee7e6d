// Texts, words, digests and seals of entries.
#include "parts.hpp"

#include <collage/detail/hash.hpp>
#include <collage/io/json.hpp>

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace collage::inline v0 {

namespace detail::store_parts {

namespace {

/// Length of the UTF-8 sequence at the beginning, 0 if it is none. Zero bytes count as none: SQL cuts texts there.
std::size_t character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first != 0 && first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    const bool shortest = first != 0xE0 || byte(1) >= 0xA0;
    const bool no_surrogate = first != 0xED || byte(1) < 0xA0;
    return follows(1) && follows(2) && shortest && no_surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const bool shortest = first != 0xF0 || byte(1) >= 0x90;
    const bool in_range = first != 0xF4 || byte(1) < 0x90;
    return follows(1) && follows(2) && follows(3) && shortest && in_range ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = character_at(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_at(text);
    if (length == 0) made += '?';
    else made += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return made;
}

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    text += detail::hex_digits[static_cast<unsigned char>(c) >> 4U];
    text += detail::hex_digits[static_cast<unsigned char>(c) & 15U];
  }
  return text;
}

std::optional<std::uint64_t> word_of(std::string_view hex) {
  std::uint64_t word = 0;
  const auto end = std::from_chars(hex.data(), hex.data() + hex.size(), word, 16);
  if (hex.size() != 16 || end.ec != std::errc() || end.ptr != hex.data() + hex.size()) return std::nullopt;
  return word;
}

void append_word(std::string& bytes, std::uint64_t word) {
  for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>((word >> (8 * i)) & 0xFFU);
}

std::uint64_t word_at(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 8 && i < bytes.size(); ++i)
    word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return word;
}

namespace {

/// Part of the file format, as are the seeds below: with another function every entry would look damaged.
std::uint64_t hash_of(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t h = detail::combine(seed, bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += 8) h = detail::combine(h, word_at(bytes.substr(at)));
  return h;
}

}  // namespace

std::string digest_of(std::string_view key_bytes) {
  std::string digest;
  append_word(digest, hash_of(key_bytes, 0x243F6A8885A308D3));
  append_word(digest, hash_of(key_bytes, 0x13198A2E03707344));
  return digest;
}

std::int64_t seal_of(std::string_view key_bytes, std::string_view value_bytes) {
  return std::bit_cast<std::int64_t>(hash_of(value_bytes, hash_of(key_bytes, 0xA4093822299F31D0)));
}
}  // namespace detail::store_parts

}  // namespace collage::inline v0
