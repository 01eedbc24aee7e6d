// Visitors of an entry's fields: as names of columns, bytes for seals, parameters of a statement, and out of a row.
#pragma once

#include "parts.hpp"

#include <sqlite3.h>

#include <collage/io/json.hpp>
#include <collage/measure/store.hpp>
#include <collage/run/configuration.hpp>

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::store_parts {
namespace {

struct to_names {
  std::string names;
  void add(const char* name) { names += std::string(", ") + name; }
  void text(const char* name, const std::string&) { add(name); }
  template <class Int>
  void whole(const char* name, const Int&, std::int64_t, std::int64_t) {
    add(name);
  }
  void number(const char* name, double) { add(name); }
  void configured(const char* name, const configuration&) { add(name); }
  void words(const char* name, const std::vector<std::uint64_t>&) { add(name); }
  void hash(const char* name, std::uint64_t) { add(name); }
};

struct to_bytes {
  std::string bytes;
  void text(const char*, const std::string& text) {
    append_word(bytes, text.size());
    bytes += text;
  }
  template <class Int>
  void whole(const char*, const Int& number, std::int64_t, std::int64_t) {
    append_word(bytes, static_cast<std::uint64_t>(number));
  }
  /// A number is one word, as it was before there were texts. The first word of a text is larger than all numbers.
  void configured(const char* name, const configuration& how) {
    if (const std::optional<std::size_t> number = how.number()) {
      append_word(bytes, *number);
      return;
    }
    append_word(bytes, ~std::uint64_t{0});
    text(name, how.text());
  }
  void number(const char*, double number) { append_word(bytes, std::bit_cast<std::uint64_t>(number)); }
  void words(const char*, const std::vector<std::uint64_t>& words) {
    append_word(bytes, words.size());
    for (const std::uint64_t w : words) append_word(bytes, w);
  }
  void hash(const char*, std::uint64_t hash) { append_word(bytes, hash); }
};

/// Refuses what cannot be stored. Texts of a key must be right as they are; those of a value are for people and are
/// made right.
struct to_valid {
  std::string wrong;  // the first mistake

  void fail(const char* name, const std::string& why) {
    if (wrong.empty()) wrong = std::string(name) + " " + why;
  }
  void text(const char* name, const std::string& text) {
    if (!is_utf8(text)) fail(name, "is not text in UTF-8");
  }
  void text(const char*, std::string& text) {
    if (!is_utf8(text)) text = as_utf8(text);
  }
  template <class Int>
  void whole(const char* name, const Int& number, std::int64_t least, std::int64_t most) {
    if (std::cmp_less(number, least) || std::cmp_greater(number, most))
      fail(name,
           "is " + std::to_string(number) + " and not from " + std::to_string(least) + " to " + std::to_string(most));
  }
  void configured(const char* name, const configuration& how) {
    whole(name, how.number().value_or(0), 0, configuration::largest);
  }
  void number(const char* name, const double& number) {
    if (!std::isfinite(number) || number < 0)
      fail(name, "is " + std::to_string(number) + " and not a finite number from 0");
  }
  void number(const char* name, double& number) {
    number += 0.0;  // the database keeps no negative zero
    this->number(name, std::as_const(number));
  }
  void words(const char*, const std::vector<std::uint64_t>&) {}
  void hash(const char*, std::uint64_t) {}
};

struct to_statement {
  sqlite3_stmt* statement;
  int at;
  int code = SQLITE_OK;

  void done(int result) {
    ++at;
    if (code == SQLITE_OK) code = result;
  }
  void text(const char*, const std::string& text) {
    done(sqlite3_bind_text64(statement, at, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  template <class Int>
  void whole(const char*, const Int& number, std::int64_t, std::int64_t) {
    done(sqlite3_bind_int64(statement, at, static_cast<sqlite3_int64>(number)));
  }
  void configured(const char* name, const configuration& how) {
    if (const std::optional<std::size_t> number = how.number()) whole(name, *number, 0, 0);
    else text(name, how.text());
  }
  void number(const char*, double number) { done(sqlite3_bind_double(statement, at, number)); }
  void bytes(const std::string& bytes) {
    done(sqlite3_bind_blob64(statement, at, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
  }
  void words(const char*, const std::vector<std::uint64_t>& words) {
    std::string packed;
    for (const std::uint64_t w : words) append_word(packed, w);
    bytes(packed);
  }
  void hash(const char* name, std::uint64_t hash) { text(name, detail::hex_of(hash)); }
};

/// Trusts nothing: a column of another type than its own makes the entry a damaged one.
struct from_row {
  sqlite3_stmt* statement;
  int at;
  bool ok = true;

  bool has(int type) {
    if (sqlite3_column_type(statement, at) != type) ok = false;
    return ok;
  }
  std::string_view view() const {
    const void* data = sqlite3_column_blob(statement, at);
    const int size = sqlite3_column_bytes(statement, at);
    return data == nullptr || size <= 0
               ? std::string_view()
               : std::string_view(static_cast<const char*>(data), static_cast<std::size_t>(size));
  }
  void text(const char*, std::string& text) {
    if (has(SQLITE_TEXT)) {
      text = view();
      ok = is_utf8(text);
    }
    ++at;
  }
  template <class Int>
  void whole(const char*, Int& number, std::int64_t least, std::int64_t most) {
    if (has(SQLITE_INTEGER)) {
      const sqlite3_int64 read = sqlite3_column_int64(statement, at);
      ok = read >= least && read <= most;
      number = static_cast<Int>(read);
    }
    ++at;
  }
  void configured(const char* name, configuration& how) {
    if (sqlite3_column_type(statement, at) == SQLITE_INTEGER) {
      std::size_t number = 0;
      whole(name, number, 0, configuration::largest);
      how = configuration(number);
      return;
    }
    std::string read;
    text(name, read);
    const std::optional<configuration> found = configuration::of(read);
    if (found) how = *found;
    else ok = false;
  }
  void number(const char*, double& number) {
    if (has(SQLITE_FLOAT)) {
      number = sqlite3_column_double(statement, at);
      ok = std::isfinite(number) && number >= 0;
    }
    ++at;
  }
  void bytes(std::string& bytes) {
    if (has(SQLITE_BLOB)) bytes = view();
    ++at;
  }
  void words(const char*, std::vector<std::uint64_t>& words) {
    std::string packed;
    bytes(packed);
    if (packed.size() % 8 != 0) ok = false;
    for (std::size_t i = 0; ok && i < packed.size(); i += 8)
      words.push_back(word_at(std::string_view(packed).substr(i)));
  }
  void hash(const char* name, std::uint64_t& hash) {
    std::string hex;
    text(name, hex);
    const std::optional<std::uint64_t> word = word_of(hex);
    if (word) hash = *word;
    else ok = false;
  }
};

template <class Table>
std::string key_bytes(const typename Table::key_type& key) {
  to_bytes fields;
  Table::each_of_key(key, fields);
  return std::move(fields.bytes);
}

template <class Table>
std::string value_bytes(const typename Table::value_type& value) {
  to_bytes fields;
  Table::each_of_value(value, fields);
  return std::move(fields.bytes);
}

template <class Table>
const std::string& column_names() {
  static const std::string all = [] {
    to_names fields;
    const typename Table::key_type key;
    const typename Table::value_type value;
    Table::each_of_key(key, fields);
    Table::each_of_value(value, fields);
    return "digest" + fields.names + ", seal";
  }();
  return all;
}

}  // namespace
}  // namespace collage::inline v0::detail::store_parts
