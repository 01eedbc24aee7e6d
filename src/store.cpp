// The target collage::store: measured costs in SQLite. Nothing else sees that library.
//
// SQLite notices when the shape of its file is damaged, not when a byte of a value is. So each entry carries a seal over
// everything in it, and is answered only if the seal is right.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <collage/detail/hash.hpp>
#include <collage/error.hpp>
#include <collage/io/json.hpp>
#include <collage/measure/store.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace {

namespace fs = std::filesystem;

// ---- What is in the file ------------------------------------------------------------------------------------------

constexpr std::int32_t application_id = 0x636C6765;  // "clge"
constexpr const char* costs_sql =
    "CREATE TABLE costs (digest BLOB PRIMARY KEY NOT NULL, machine TEXT NOT NULL, threads INTEGER NOT NULL, "
    "waiting TEXT NOT NULL, precision TEXT NOT NULL, backend TEXT NOT NULL, library TEXT NOT NULL, "
    "pattern TEXT NOT NULL, choice INTEGER NOT NULL, computes BLOB NOT NULL, label TEXT NOT NULL, "
    "kernel TEXT NOT NULL, refusal TEXT NOT NULL, median_ms REAL NOT NULL, low_ms REAL NOT NULL, "
    "high_ms REAL NOT NULL, sure_low_ms REAL NOT NULL, sure_high_ms REAL NOT NULL, samples INTEGER NOT NULL, "
    "how TEXT NOT NULL, when_s INTEGER NOT NULL, seal INTEGER NOT NULL)";
constexpr const char* runs_sql =
    "CREATE TABLE runs (digest BLOB PRIMARY KEY NOT NULL, network TEXT NOT NULL, placement TEXT NOT NULL, "
    "machine TEXT NOT NULL, threads INTEGER NOT NULL, waiting TEXT NOT NULL, precision TEXT NOT NULL, "
    "libraries TEXT NOT NULL, label TEXT NOT NULL, name TEXT NOT NULL, median_ms REAL NOT NULL, "
    "low_ms REAL NOT NULL, high_ms REAL NOT NULL, runs INTEGER NOT NULL, against TEXT NOT NULL, "
    "ratio REAL NOT NULL, ratio_low REAL NOT NULL, ratio_high REAL NOT NULL, plan TEXT NOT NULL, "
    "when_s INTEGER NOT NULL, seal INTEGER NOT NULL)";
constexpr std::size_t most_bytes = std::size_t{16} << 20;  // of an entry

/// Step i makes schema i + 1 of schema i; a new schema is a new step and never a change to an old one. Where it adds a
/// column, its value in old entries must be one that the fields below leave out of the seal, or the step seals anew.
/// Where the same key comes to be measured differently, a step deletes the costs.
constexpr std::array<std::array<const char*, 2>, 1> schema_steps{{{costs_sql, runs_sql}}};
constexpr int newest_schema = static_cast<int>(schema_steps.size());

/// Each table by its fields, in the order of its columns. `fields` is one of the visitors below.
struct costs_table {
  using key_type = stored_key;
  using value_type = stored_cost;
  static constexpr const char* name = "costs";
  static constexpr const char* sql = costs_sql;
  static constexpr const char* order = "backend, label, pattern, choice, machine, threads, waiting, digest";
  static constexpr const char* texts[] = {"label", "kernel", "pattern"};

  template <class Key, class Fields>
  static void each_of_key(Key& k, Fields& fields) {
    fields.text("machine", k.machine);
    fields.whole("threads", k.threads, 1, 65536);
    fields.text("waiting", k.waiting);
    fields.text("precision", k.precision);
    fields.text("backend", k.backend);
    fields.text("library", k.library);
    fields.text("pattern", k.pattern);
    fields.whole("choice", k.choice, 0, std::numeric_limits<std::uint32_t>::max());
    fields.words("computes", k.computes);
  }
  template <class Value, class Fields>
  static void each_of_value(Value& v, Fields& fields) {
    fields.text("label", v.label);
    fields.text("kernel", v.kernel);
    fields.text("refusal", v.refusal);
    fields.number("median_ms", v.median_ms);
    fields.number("low_ms", v.low_ms);
    fields.number("high_ms", v.high_ms);
    fields.number("sure_low_ms", v.sure_low_ms);
    fields.number("sure_high_ms", v.sure_high_ms);
    fields.whole("samples", v.samples, 0, std::numeric_limits<std::int64_t>::max());
    fields.text("how", v.how);
    fields.whole("when_s", v.when_s, 0, std::numeric_limits<std::int64_t>::max());
  }
};

struct runs_table {
  using key_type = stored_run_key;
  using value_type = stored_run;
  static constexpr const char* name = "runs";
  static constexpr const char* sql = runs_sql;
  static constexpr const char* order = "label, network, name, machine, threads, waiting, digest";
  static constexpr const char* texts[] = {"label", "name"};

  template <class Key, class Fields>
  static void each_of_key(Key& k, Fields& fields) {
    fields.hash("network", k.network);
    fields.text("placement", k.placement);
    fields.text("machine", k.machine);
    fields.whole("threads", k.threads, 1, 65536);
    fields.text("waiting", k.waiting);
    fields.text("precision", k.precision);
    fields.text("libraries", k.libraries);
  }
  template <class Value, class Fields>
  static void each_of_value(Value& v, Fields& fields) {
    fields.text("label", v.label);
    fields.text("name", v.name);
    fields.number("median_ms", v.median_ms);
    fields.number("low_ms", v.low_ms);
    fields.number("high_ms", v.high_ms);
    fields.whole("runs", v.runs, 0, std::numeric_limits<std::int64_t>::max());
    fields.text("against", v.against);
    fields.number("ratio", v.ratio);
    fields.number("ratio_low", v.ratio_low);
    fields.number("ratio_high", v.ratio_high);
    fields.text("plan", v.plan);
    fields.whole("when_s", v.when_s, 0, std::numeric_limits<std::int64_t>::max());
  }
};

template <class Key>
using table_of = std::conditional_t<std::same_as<Key, stored_key>, costs_table, runs_table>;

template <class Table>
struct entry {
  std::string digest;
  typename Table::key_type key;
  typename Table::value_type value;
};

// ---- Text and bytes -----------------------------------------------------------------------------------------------

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

/// Part of the file format, as are the seeds below: with another function every entry would look damaged.
std::uint64_t hash_of(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t h = detail::combine(seed, bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += 8) h = detail::combine(h, word_at(bytes.substr(at)));
  return h;
}

std::string digest_of(std::string_view key_bytes) {
  std::string digest;
  append_word(digest, hash_of(key_bytes, 0x243F6A8885A308D3));
  append_word(digest, hash_of(key_bytes, 0x13198A2E03707344));
  return digest;
}

std::int64_t seal_of(std::string_view key_bytes, std::string_view value_bytes) {
  return std::bit_cast<std::int64_t>(hash_of(value_bytes, hash_of(key_bytes, 0xA4093822299F31D0)));
}

// ---- Visitors of fields -------------------------------------------------------------------------------------------

struct to_names {
  std::string names;
  void add(const char* name) { names += std::string(", ") + name; }
  void text(const char* name, const std::string&) { add(name); }
  template <class Int>
  void whole(const char* name, const Int&, std::int64_t, std::int64_t) {
    add(name);
  }
  void number(const char* name, double) { add(name); }
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

struct to_json {
  json& object;
  void text(const char* name, const std::string& text) { object[name] = text; }
  template <class Int>
  void whole(const char* name, const Int& number, std::int64_t, std::int64_t) {
    object[name] = number;
  }
  void number(const char* name, double number) { object[name] = number; }
  // As text: readers of JSON commonly keep numbers as doubles, which do not hold 64 bits.
  void words(const char* name, const std::vector<std::uint64_t>& words) {
    std::string text;
    for (const std::uint64_t w : words) text += detail::hex_of(w);
    object[name] = text;
  }
  void hash(const char* name, std::uint64_t hash) { object[name] = detail::hex_of(hash); }
};

struct from_json {
  const json_place& object;
  void text(const char* name, std::string& text) const {
    const json_place at = object[name];
    text = at.text();
    if (!is_utf8(text)) at.wrong("has a zero byte");
  }
  template <class Int>
  void whole(const char* name, Int& number, std::int64_t least, std::int64_t most) const {
    number =
        static_cast<Int>(object[name].natural(static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most)));
  }
  void number(const char* name, double& number) const {
    const json_place at = object[name];
    number = at.number() + 0.0;
    if (!std::isfinite(number) || number < 0) at.wrong("is not a finite number from 0");
  }
  void words(const char* name, std::vector<std::uint64_t>& words) const {
    const json_place at = object[name];
    const std::string hex = at.text();
    if (hex.size() % 16 != 0) at.wrong("is not made of words of 16 hexadecimal digits");
    for (std::size_t i = 0; i < hex.size(); i += 16) {
      const std::optional<std::uint64_t> word = word_of(std::string_view(hex).substr(i, 16));
      if (!word) at.wrong("is not made of words of 16 hexadecimal digits");
      words.push_back(*word);
    }
  }
  void hash(const char* name, std::uint64_t& hash) const {
    const json_place at = object[name];
    const std::optional<std::uint64_t> word = word_of(at.text());
    if (!word) at.wrong("is not 16 hexadecimal digits");
    hash = *word;
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

// ---- The connection -----------------------------------------------------------------------------------------------

/// Kept apart, because `check` reports it where others throw.
struct damaged_store : error {
  using error::error;
};

constexpr int busy_ms = 10'000;
constexpr std::int64_t least_steps = 1'000'000;
constexpr const char* measure_anew = "remove the file, with its -wal and -shm, and measure again";
constexpr const char* not_a_store = "is not a store of costs, and not a file of SQLite";
constexpr const char* left_open = "was left open by a process that ended early, and may not be written to here";
constexpr const char* open_once = "open it once with the right to write, as in collage store check";
constexpr const char* name_another = "name another file for the store";

std::string sentence_of(int system_error) { return std::generic_category().message(system_error); }

bool is_full(int system_error) { return system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG; }

struct close_database {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct end_statement {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using database_handle = std::unique_ptr<sqlite3, close_database>;
using statement_handle = std::unique_ptr<sqlite3_stmt, end_statement>;

/// Gives a prepared statement back for its next use; until then it would keep its lock.
class statement_use {
 public:
  explicit statement_use(sqlite3_stmt* statement) : statement_(statement) {}
  statement_use(const statement_use&) = delete;
  statement_use& operator=(const statement_use&) = delete;
  ~statement_use() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }

 private:
  sqlite3_stmt* statement_;
};

class connection {
 public:
  connection() = default;
  connection(std::string name, const std::string& file, int flags) : name_(std::move(name)) {
    sqlite3* opened = nullptr;
    const int code =
        sqlite3_open_v2(file.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nullptr);
    db_.reset(opened);
    if (opened == nullptr) throw std::bad_alloc();
    sqlite3_extended_result_codes(opened, 1);
    if (code != SQLITE_OK) fail(sqlite3_extended_errcode(opened));
    sqlite3_busy_timeout(opened, busy_ms);
    // A file from elsewhere must not run anything: no triggers, no views, no functions of its schema.
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, static_cast<int>(2 * most_bytes));
    // No memory map: a file that another process cuts short would end this one.
    execute("PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY");
  }

  sqlite3* get() const { return db_.get(); }

  /// The last code that `fail` was given.
  int failed_with() const { return failed_with_; }

  [[noreturn]] void fail(int code) const {
    // SQLite does not keep the system's error of a failed commit.
    const int left = errno;
    const int kept = sqlite3_system_errno(db_.get());
    const int system_error = kept != 0 ? kept : left;
    failed_with_ = code;
    const std::string said = sqlite3_errmsg(db_.get());
    switch (code & 0xFF) {
      case SQLITE_NOMEM: throw std::bad_alloc();
      case SQLITE_NOTADB: throw error(error_kind::invalid_argument, not_a_store, name_, name_another);
      case SQLITE_BUSY:
      case SQLITE_LOCKED:
      case SQLITE_PROTOCOL:
        throw error(error_kind::environment,
                    "has been in use by another process for " + std::to_string(busy_ms / 1000) + " seconds", name_,
                    "wait for that process or end it");
      case SQLITE_FULL: full();
      case SQLITE_IOERR:
        if (code == SQLITE_IOERR_NOMEM) throw std::bad_alloc();
        if (is_full(system_error)) full();
        // What SQLite says where a file ends in the middle of a page.
        if (code == SQLITE_IOERR_SHORT_READ || code == SQLITE_IOERR_CORRUPTFS) damaged(said);
        throw error(error_kind::environment,
                    "cannot be read or written: " + (system_error != 0 ? sentence_of(system_error) : said), name_,
                    "check the disk and its file system");
      case SQLITE_READONLY:
        if (code == SQLITE_READONLY_DBMOVED) moved();
        if (code != SQLITE_READONLY && code != SQLITE_READONLY_DIRECTORY)
          throw error(error_kind::invalid_argument, left_open, name_, open_once);
        throw error(error_kind::invalid_argument, "cannot be written: " + said, name_, name_another);
      case SQLITE_CANTOPEN:
      case SQLITE_PERM:
      case SQLITE_AUTH:
        throw error(error_kind::invalid_argument,
                    "cannot be opened: " + (system_error != 0 ? sentence_of(system_error) : said), name_, name_another);
      case SQLITE_INTERRUPT: damaged("its pages lead back to themselves");
      case SQLITE_CORRUPT:
      case SQLITE_ERROR:  // our statements are right where our tables are
      case SQLITE_TOOBIG:
      case SQLITE_CONSTRAINT:
      case SQLITE_MISMATCH:
      case SQLITE_SCHEMA: damaged(said);
      default: throw error(error_kind::failure, "SQLite fails: " + said, name_, "please report it");
    }
  }
  [[noreturn]] void damaged(const std::string& why) const {
    throw damaged_store(error_kind::environment, "is damaged (" + why + ")", name_, measure_anew);
  }
  [[noreturn]] void full() const {
    throw error(error_kind::environment, "cannot grow: no room is left on its disk, or none that we may use", name_,
                "make room and start again, what was measured before is kept");
  }
  [[noreturn]] void moved() const {
    throw error(error_kind::environment, "was moved, removed or replaced while it was in use", name_,
                "start again, and leave the file alone meanwhile");
  }
  void need(int code) const {
    if (code != SQLITE_OK) fail(code);
  }

  void execute(const char* sql) const {
    errno = 0;
    need(sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr));
  }

  statement_handle prepare(const std::string& sql) const {
    sqlite3_stmt* made = nullptr;
    errno = 0;
    need(sqlite3_prepare_v2(db_.get(), sql.c_str(), static_cast<int>(sql.size()), &made, nullptr));
    return statement_handle(made);
  }
  bool step(sqlite3_stmt* statement) const {
    errno = 0;
    const int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) fail(code);
    return false;
  }
  std::string text(const std::string& sql) const {
    const statement_handle statement = prepare(sql);
    if (!step(statement.get())) return {};
    const unsigned char* read = sqlite3_column_text(statement.get(), 0);
    return read == nullptr ? std::string() : reinterpret_cast<const char*>(read);
  }
  std::int64_t number(const std::string& sql) const {
    const statement_handle statement = prepare(sql);
    return step(statement.get()) ? sqlite3_column_int64(statement.get(), 0) : 0;
  }

 private:
  std::string name_;
  database_handle db_;
  mutable int failed_with_ = SQLITE_OK;
};

/// Everything in it or nothing.
class transaction {
 public:
  transaction(const connection& c, const char* begin) : connection_(c) { c.execute(begin); }
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;
  ~transaction() {
    // Some errors have rolled back already.
    if (sqlite3_get_autocommit(connection_.get()) == 0)
      sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  void commit() { connection_.execute("COMMIT"); }

 private:
  const connection& connection_;
};

/// Empty if we may, else why not.
std::string why_not(const fs::path& path, int access) {
  return ::faccessat(AT_FDCWD, path.c_str(), access, AT_EACCESS) == 0 ? std::string() : sentence_of(errno);
}

/// Whether other machines may use the file at the same time: then processes do not share memory, which a write-ahead log
/// needs.
bool is_shared_by_machines(const fs::path& folder) {
  struct statfs found{};
  if (::statfs(folder.c_str(), &found) != 0) return false;
  // NFS, SMB 1 to 3, 9P, Ceph, AFS, Lustre, GPFS, OCFS2
  for (const unsigned long type : {0x6969UL, 0x517BUL, 0xFF534D42UL, 0xFE534D42UL, 0x01021997UL, 0x00C36400UL,
                                   0x5346414FUL, 0x0BD00BD0UL, 0x47504653UL, 0x7461636FUL})
    if ((static_cast<unsigned long>(found.f_type) & 0xFFFFFFFFUL) == type) return true;
  return false;
}

/// A path as SQLite's URIs have it.
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/' || c == '.' || c == '-' || c == '_' || (byte < 0x80 && std::isalnum(byte) != 0)) uri += c;
    else uri += {'%', detail::hex_digits[byte >> 4U], detail::hex_digits[byte & 15U]};
  }
  return uri + "?immutable=1";
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

// ---- The store ----------------------------------------------------------------------------------------------------

struct cost_store::state {
  std::string path;          // as given
  std::string real;          // without links: what locks are named after
  std::string not_writable;  // why
  connection db;
  std::string journal;
  std::vector<std::string> notes;
  mutable std::mutex mutex;
  mutable std::atomic<std::size_t> damaged = 0;
  mutable std::int64_t steps_left = 0;
  mutable statement_handle find_cost, find_run, put_cost, put_run;

  state(const std::string& given, store_mode how) : path(given) {
    look(how);
    open();
    prepare_journal();
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& remedy) const {
    throw error(error_kind::invalid_argument, what, path.empty() ? "store ''" : path, remedy);
  }

  /// What the path leads to, and what we may do there.
  void look(store_mode how) {
    if (path.empty()) refuse("has no name", "name a file");
    std::error_code failed;
    fs::path file = fs::weakly_canonical(fs::absolute(path, failed), failed);
    if (failed) refuse("cannot be opened: " + failed.message(), name_another);
    const fs::file_status status = fs::status(file, failed);
    const bool exists = fs::exists(status);
    if (!exists && status.type() != fs::file_type::not_found)
      refuse("cannot be opened: " + failed.message(), name_another);
    if (fs::is_directory(status)) refuse("is a folder", name_another);
    // Opening a pipe would wait for its other end.
    if (exists && !fs::is_regular_file(status)) refuse("is a device or pipe", name_another);
    if (!file.has_filename()) refuse("has no file name", name_another);
    const fs::path folder = file.parent_path();
    if (!exists && how == store_mode::read_only)
      refuse("cannot be read: " + sentence_of(ENOENT), "check the path, or measure something first");
    if (!exists && !fs::is_directory(folder, failed)) {
      if (!is_default()) refuse("its folder does not exist", "create the folder, or name another file");
      make_folder(folder);
    }
    real = file.string();
    // SQLite's own limit, with room for the ends of the names of its other files.
    if (real.size() > 480) refuse("is too long a path", name_another);

    if (exists) {
      if (const std::string why = why_not(file, R_OK); !why.empty()) refuse("cannot be read: " + why, name_another);
      look_at_header();
    }
    if (how == store_mode::read_only) not_writable = "is opened to be read alone";
    else if (const std::string own = exists ? why_not(file, W_OK) : ""; !own.empty())
      not_writable = "cannot be written: " + own;
    else if (const std::string around = why_not(folder, W_OK | X_OK); !around.empty())
      not_writable = "cannot be written, since its folder cannot: " + around;
    if (!exists && !not_writable.empty()) refuse(not_writable, name_another);
  }
  /// SQLite takes a file that is shorter than a page for an empty one, and would write over it.
  void look_at_header() const {
    constexpr std::string_view magic("SQLite format 3\0", 16);
    char header[magic.size()] = {};
    std::ifstream file(real, std::ios::binary);
    file.read(header, sizeof(header));
    const auto got = static_cast<std::size_t>(file.gcount());
    std::error_code ignored;
    // With a journal, SQLite puts back what a process that ended early has half written.
    if (got == 0 || std::string_view(header, got) == magic || fs::exists(real + "-journal", ignored)) return;
    refuse(not_a_store, name_another);
  }
  bool is_default() const {
    try {
      return path == default_store_path();
    } catch (const error&) { return false; }
  }
  void make_folder(const fs::path& folder) const {
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed)
      throw error(error_kind::environment, "cannot be created: " + failed.message(), folder.string(),
                  "create the folder, or name another file for the store");
  }

  void open() {
    if (not_writable.empty()) {
      db = connection(path, real, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    } else {
      // A store that is closed in an orderly way has no log. To read one that has it, SQLite needs a file beside it.
      std::error_code ignored;
      const bool has_log = fs::exists(real + "-wal", ignored) && fs::file_size(real + "-wal", ignored) != 0;
      const bool can_share = why_not(fs::path(real).parent_path(), W_OK | X_OK).empty();
      const bool is_shared = fs::exists(real + "-shm", ignored) && fs::exists(real + "-wal", ignored);
      if (can_share || is_shared) db = connection(path, real, SQLITE_OPEN_READONLY);
      else if (!has_log) read_as_unchanging();
      else refuse(left_open, open_once);
    }
    limit_steps(4);
    try {
      identify();
    } catch (const error&) {
      if (!is_log_impossible()) throw;
      leave_log();
      identify();
    }
    if (not_writable.empty() && sqlite3_db_readonly(db.get(), "main") == 1)
      not_writable = "may be written by a newer SQLite alone, as its header says";
  }
  void read_as_unchanging() {
    db = connection(path, immutable_uri(real), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    notes.emplace_back("its folder cannot be written to: it is read as a file that nobody changes meanwhile");
  }

  /// Whether the last error says that the store has a write-ahead log and that there can be none here.
  bool is_log_impossible() const {
    const int code = db.failed_with();
    const int shared[] = {SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMLOCK, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMSIZE};
    bool is = (code & 0xFF) == SQLITE_CANTOPEN;
    for (const int s : shared) is = is || code == s;
    return is;
  }
  /// SQLite reads the log without sharing it while nobody else has the file open.
  void leave_log() {
    if (!not_writable.empty()) {
      read_as_unchanging();
      limit_steps(4);
      return;
    }
    db = connection(path, real, SQLITE_OPEN_READWRITE);
    limit_steps(4);
    db.execute("PRAGMA locking_mode=EXCLUSIVE");
    db.text("PRAGMA journal_mode=DELETE");
    db.execute("PRAGMA locking_mode=NORMAL");
  }

  /// Refuses what is no store of ours, makes the tables of a new one and brings an old one up to date.
  void identify() {
    int schema = 0;
    {
      // In one transaction: another process may just be making the store.
      transaction reading(db, "BEGIN");
      schema = schema_found();
      reading.commit();
    }
    if (schema < newest_schema) {
      if (!not_writable.empty())
        refuse(schema == 0 ? "is empty"
                           : "has schema " + std::to_string(schema) + " of an older collage, and " + not_writable,
               schema == 0 ? "measure something first" : open_once);
      transaction writing(db, "BEGIN IMMEDIATE");
      for (int at = schema_found(); at < newest_schema; ++at)
        for (const char* sql : schema_steps[static_cast<std::size_t>(at)]) db.execute(sql);
      db.execute(("PRAGMA application_id=" + std::to_string(application_id)).c_str());
      db.execute(("PRAGMA user_version=" + std::to_string(newest_schema)).c_str());
      writing.commit();
    }
    for (const auto& [name, sql] :
         {std::pair{costs_table::name, costs_table::sql}, {runs_table::name, runs_table::sql}})
      if (db.text(std::string("SELECT sql FROM sqlite_schema WHERE type='table' AND name='") + name + "'") != sql)
        db.damaged("its table of " + std::string(name) + " is not ours");
  }
  /// 0: a file without anything in it.
  int schema_found() const {
    const std::int64_t id = db.number("PRAGMA application_id");
    const std::int64_t version = db.number("PRAGMA user_version");
    const std::int64_t tables = db.number("SELECT count(*) FROM sqlite_schema");
    if (id == 0 && version == 0 && tables == 0) return 0;
    if (id != application_id) refuse("is another program's database", name_another);
    if (version > newest_schema)
      refuse("was written by a newer collage: its schema is " + std::to_string(version) + ", and this one knows " +
                 std::to_string(newest_schema),
             "use that version, or another file for the store");
    if (version < 1) db.damaged("its schema is " + std::to_string(version));
    return static_cast<int>(version);
  }

  void prepare_journal() {
    journal = db.text("PRAGMA journal_mode");
    if (not_writable.empty() && journal != "wal") {
      if (is_shared_by_machines(fs::path(real).parent_path())) {
        notes.emplace_back(
            "its file system is shared between machines: it has no write-ahead log, and processes wait for each other");
      } else {
        // Busy at once, without waiting, where another process is just doing the same.
        int code = SQLITE_BUSY;
        for (const double end = now_s() + busy_ms / 1000.0; (code & 0xFF) == SQLITE_BUSY && now_s() < end;) {
          code = sqlite3_exec(db.get(), "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr);
          if ((code & 0xFF) == SQLITE_BUSY) sleep_ms(5);
        }
        const std::string said = code == SQLITE_OK ? "" : std::string(" (") + sqlite3_errmsg(db.get()) + ")";
        const int system_error = sqlite3_system_errno(db.get());
        if ((code & 0xFF) == SQLITE_IOERR && is_full(system_error)) db.full();
        for (const int fatal : {SQLITE_FULL, SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_NOMEM})
          if ((code & 0xFF) == fatal) db.fail(code);
        journal = db.text("PRAGMA journal_mode");
        if (journal != "wal")
          notes.push_back("there can be no write-ahead log here" + said + ": processes wait for each other");
      }
    }
    // The death of a process costs nothing either way. A power cut may take the last entries of a write-ahead log, and
    // would otherwise break the file.
    if (not_writable.empty()) db.execute(journal == "wal" ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL");
  }

  /// A damaged file can lead through the same pages again and again. To read an entry takes less than a step of SQLite's
  /// for each of its bytes, and to check it a few.
  void limit_steps(std::int64_t for_a_byte) const {
    std::int64_t bytes = 0;
    std::error_code failed;
    for (const char* part : {"", "-wal"})
      if (const auto size = fs::file_size(real + part, failed); !failed) bytes += static_cast<std::int64_t>(size);
    steps_left = least_steps + for_a_byte * bytes;
    constexpr int at_once = 1000;
    sqlite3_progress_handler(
        db.get(), at_once, [](void* left) { return (*static_cast<std::int64_t*>(left) -= at_once) < 0 ? 1 : 0; },
        &steps_left);
  }
  /// For one entry.
  void limit_steps() const { steps_left = least_steps; }

  void must_be_writable() const {
    if (!not_writable.empty()) refuse(not_writable, name_another);
    int moved = 0;
    if (sqlite3_file_control(db.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0) db.moved();
  }

  template <class Table>
  sqlite3_stmt* find_statement() const {
    statement_handle& s = std::same_as<Table, costs_table> ? find_cost : find_run;
    if (s == nullptr) s = db.prepare("SELECT " + column_names<Table>() + " FROM " + Table::name + " WHERE digest=?1");
    return s.get();
  }
  template <class Table>
  sqlite3_stmt* put_statement() const {
    statement_handle& s = std::same_as<Table, costs_table> ? put_cost : put_run;
    if (s == nullptr) {
      const std::string& names = column_names<Table>();
      std::string marks = "?";
      for (const char c : names)
        if (c == ',') marks += ", ?";
      s = db.prepare(std::string("INSERT OR REPLACE INTO ") + Table::name + " (" + names + ") VALUES (" + marks + ")");
    }
    return s.get();
  }

  template <class Table>
  static std::optional<entry<Table>> read(sqlite3_stmt* statement) {
    entry<Table> e;
    from_row row{statement, 0};
    row.bytes(e.digest);
    Table::each_of_key(e.key, row);
    Table::each_of_value(e.value, row);
    std::int64_t seal = 0;
    row.whole("seal", seal, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
    if (!row.ok) return std::nullopt;
    const std::string key = key_bytes<Table>(e.key);
    if (e.digest != digest_of(key) || seal != seal_of(key, value_bytes<Table>(e.value))) return std::nullopt;
    return e;
  }

  template <class Key>
  std::optional<typename table_of<Key>::value_type> find(const Key& key) const {
    using table = table_of<Key>;
    must_be_valid<table>(key);
    const std::string bytes = key_bytes<table>(key);
    const std::string digest = digest_of(bytes);
    limit_steps();
    sqlite3_stmt* statement = find_statement<table>();
    const statement_use use(statement);
    db.need(sqlite3_bind_blob64(statement, 1, digest.data(), digest.size(), SQLITE_TRANSIENT));
    if (!db.step(statement)) return std::nullopt;
    std::optional<entry<table>> found = read<table>(statement);
    if (!found) ++damaged;
    if (!found || found->key != key) return std::nullopt;
    return std::move(found->value);
  }
  template <class Table>
  void must_be_valid(const typename Table::key_type& key) const {
    to_valid fields;
    Table::each_of_key(key, fields);
    if (!fields.wrong.empty())
      refuse("cannot hold this key: " + fields.wrong, "ask for and put keys that are complete");
  }

  template <class Table>
  void put(const typename Table::key_type& key, typename Table::value_type value) const {
    must_be_valid<Table>(key);
    if (value.when_s == 0) value.when_s = static_cast<std::int64_t>(std::time(nullptr));
    to_valid fields;
    Table::each_of_value(value, fields);
    if (!fields.wrong.empty()) refuse("cannot hold this result: " + fields.wrong, "measure again");
    insert<Table>(key, value);
  }
  /// What has been checked.
  template <class Table>
  void insert(const typename Table::key_type& key, const typename Table::value_type& value) const {
    const std::string key_part = key_bytes<Table>(key), value_part = value_bytes<Table>(value);
    if (key_part.size() + value_part.size() > most_bytes)
      refuse("cannot hold an entry of " + std::to_string(key_part.size() + value_part.size()) + " bytes",
             "shorten its texts: " + std::to_string(most_bytes) + " is the most");
    limit_steps();
    sqlite3_stmt* statement = put_statement<Table>();
    const statement_use use(statement);
    to_statement row{statement, 1};
    row.bytes(digest_of(key_part));
    Table::each_of_key(key, row);
    Table::each_of_value(value, row);
    row.whole("seal", seal_of(key_part, value_part), 0, 0);
    db.need(row.code);
    db.step(statement);
  }

  /// The conditions of a filter, with numbered parameters.
  template <class Table>
  static std::string where(const store_filter& which) {
    std::string sql = " WHERE 1";
    constexpr bool are_costs = std::same_as<Table, costs_table>;
    if (!are_costs && (!which.backend.empty() || which.refused)) return " WHERE 0";
    if (!which.backend.empty()) sql += " AND backend=?1";
    if (!which.machine.empty()) sql += " AND machine=?2";
    if (!which.other_than_machine.empty()) sql += " AND machine<>?3";
    if (!which.text.empty()) {
      sql += " AND (substr(lower(hex(digest)), 1, length(?4))=lower(?4)";
      for (const char* column : Table::texts) sql += std::string(" OR instr(") + column + ", ?4)>0";
      sql += ")";
    }
    if (which.refused) sql += " AND refusal<>''";
    if (which.before_s != 0) sql += " AND when_s<?5";
    return sql;
  }
  static void bind(const connection& db, sqlite3_stmt* statement, const store_filter& which) {
    const std::string* texts[] = {&which.backend, &which.machine, &which.other_than_machine, &which.text};
    const int parameters = sqlite3_bind_parameter_count(statement);
    for (int i = 0; i < 4 && i < parameters; ++i)
      db.need(sqlite3_bind_text64(statement, i + 1, texts[i]->data(), texts[i]->size(), SQLITE_TRANSIENT, SQLITE_UTF8));
    if (parameters >= 5) db.need(sqlite3_bind_int64(statement, 5, which.before_s));
  }

  template <class Table>
  std::vector<entry<Table>> list(const store_filter& which, std::size_t* bad = nullptr) const {
    limit_steps(4);
    const statement_handle statement = db.prepare("SELECT " + column_names<Table>() + " FROM " + Table::name +
                                                  where<Table>(which) + " ORDER BY " + Table::order);
    bind(db, statement.get(), which);
    std::vector<entry<Table>> all;
    while (db.step(statement.get())) {
      if (std::optional<entry<Table>> e = read<Table>(statement.get())) all.push_back(std::move(*e));
      else if (bad != nullptr) ++*bad;
      else ++damaged;
    }
    return all;
  }

  template <class Table>
  std::size_t remove(const store_filter& which) const {
    limit_steps(4);
    const statement_handle statement = db.prepare(std::string("DELETE FROM ") + Table::name + where<Table>(which));
    bind(db, statement.get(), which);
    db.step(statement.get());
    return static_cast<std::size_t>(sqlite3_changes(db.get()));
  }
  template <class Table>
  std::size_t remove_damaged() const {
    limit_steps(4);
    std::vector<std::int64_t> rows;
    {
      const statement_handle statement = db.prepare("SELECT " + column_names<Table>() + ", rowid FROM " + Table::name);
      while (db.step(statement.get()))
        if (!read<Table>(statement.get()))
          rows.push_back(sqlite3_column_int64(statement.get(), sqlite3_column_count(statement.get()) - 1));
    }
    const statement_handle statement = db.prepare(std::string("DELETE FROM ") + Table::name + " WHERE rowid=?1");
    for (const std::int64_t row : rows) {
      const statement_use use(statement.get());
      db.need(sqlite3_bind_int64(statement.get(), 1, row));
      db.step(statement.get());
    }
    return rows.size();
  }

  /// The newer of two stays.
  template <class Table>
  void merge(const std::vector<entry<Table>>& others, store_merge& became) const {
    for (const entry<Table>& e : others) {
      const std::string digest = digest_of(key_bytes<Table>(e.key));
      bool exists = false, newer = true;
      limit_steps();
      {
        sqlite3_stmt* statement = find_statement<Table>();
        const statement_use use(statement);
        db.need(sqlite3_bind_blob64(statement, 1, digest.data(), digest.size(), SQLITE_TRANSIENT));
        if (db.step(statement)) {
          exists = true;
          const std::optional<entry<Table>> ours = read<Table>(statement);
          newer = !ours || e.value.when_s > ours->value.when_s;
        }
      }
      if (newer) insert<Table>(e.key, e.value);
      ++(!exists ? became.added : newer ? became.replaced : became.kept);
    }
  }
  store_merge merge_all(const std::vector<entry<costs_table>>& costs,
                        const std::vector<entry<runs_table>>& runs) const {
    store_merge became;
    must_be_writable();
    transaction writing(db, "BEGIN IMMEDIATE");
    merge<costs_table>(costs, became);
    merge<runs_table>(runs, became);
    writing.commit();
    return became;
  }

  void check_pages(store_report& report) const {
    limit_steps(20);
    const statement_handle statement = db.prepare("PRAGMA integrity_check(10)");
    while (db.step(statement.get())) {
      const unsigned char* said = sqlite3_column_text(statement.get(), 0);
      std::string text = said == nullptr ? "" : as_utf8(reinterpret_cast<const char*>(said));
      std::ranges::replace(text, '\n', ' ');
      if (text != "ok") report.problems.push_back("its pages are damaged: " + text);
    }
  }
};

cost_store::cost_store(const std::string& path, store_mode how) : state_(std::make_unique<state>(path, how)) {}
cost_store::cost_store(cost_store&&) noexcept = default;
cost_store& cost_store::operator=(cost_store&&) noexcept = default;
cost_store::~cost_store() = default;

const std::string& cost_store::path() const noexcept { return state_->path; }
const std::string& cost_store::why_not_writable() const noexcept { return state_->not_writable; }
std::size_t cost_store::damaged() const noexcept { return state_->damaged; }

std::optional<stored_cost> cost_store::find(const stored_key& key) const {
  const std::lock_guard lock(state_->mutex);
  return state_->find(key);
}
std::optional<stored_run> cost_store::find(const stored_run_key& key) const {
  const std::lock_guard lock(state_->mutex);
  return state_->find(key);
}

void cost_store::put(const stored_key& key, const stored_cost& cost) {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  state_->put<costs_table>(key, cost);
}
void cost_store::put(const std::vector<std::pair<stored_key, stored_cost>>& costs) {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  transaction writing(state_->db, "BEGIN IMMEDIATE");
  for (const auto& [key, cost] : costs) state_->put<costs_table>(key, cost);
  writing.commit();
}
void cost_store::put(const stored_run_key& key, const stored_run& run) {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  state_->put<runs_table>(key, run);
}

std::vector<stored_entry> cost_store::list(const store_filter& which) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<stored_entry> all;
  for (entry<costs_table>& e : state_->list<costs_table>(which))
    all.push_back({hex_of(e.digest), std::move(e.key), std::move(e.value)});
  return all;
}
std::vector<stored_run_entry> cost_store::list_runs(const store_filter& which) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<stored_run_entry> all;
  for (entry<runs_table>& e : state_->list<runs_table>(which))
    all.push_back({hex_of(e.digest), std::move(e.key), std::move(e.value)});
  return all;
}

store_count cost_store::remove(const store_filter& which) {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  transaction writing(state_->db, "BEGIN IMMEDIATE");
  const store_count gone{state_->remove<costs_table>(which), state_->remove<runs_table>(which)};
  writing.commit();
  return gone;
}

std::size_t cost_store::remove_damaged() {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  transaction writing(state_->db, "BEGIN IMMEDIATE");
  const std::size_t gone = state_->remove_damaged<costs_table>() + state_->remove_damaged<runs_table>();
  writing.commit();
  return gone;
}

store_merge cost_store::merge_from(const std::string& other) {
  // Read whole before ours is locked: it may be the same file.
  const state from(other, store_mode::read_only);
  std::size_t damaged = 0;
  const auto costs = from.list<costs_table>({}, &damaged);
  const auto runs = from.list<runs_table>({}, &damaged);
  const std::lock_guard lock(state_->mutex);
  store_merge became = state_->merge_all(costs, runs);
  became.damaged = damaged;
  return became;
}

namespace {

constexpr const char* export_format = "collage costs";
constexpr std::uint64_t export_version = 1;
constexpr const char* export_anew = "export the store again";

template <class Table>
json list_to_json(const std::vector<entry<Table>>& all) {
  json list = json::array();
  for (const entry<Table>& e : all) {
    json object = json::object();
    to_json fields{object};
    Table::each_of_key(e.key, fields);
    Table::each_of_value(e.value, fields);
    list.push_back(std::move(object));
  }
  return list;
}

template <class Table>
std::vector<entry<Table>> list_from_json(const json_place& list) {
  std::vector<entry<Table>> all(list.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const json_place object = list[i];
    from_json fields{object};
    Table::each_of_key(all[i].key, fields);
    Table::each_of_value(all[i].value, fields);
  }
  return all;
}

}  // namespace

std::string cost_store::export_json() const {
  const std::lock_guard lock(state_->mutex);
  // One transaction, or another process's merge could show in one list and not in the other.
  transaction reading(state_->db, "BEGIN");
  const json made = {{"format", export_format},
                     {"version", export_version},
                     {"costs", list_to_json(state_->list<costs_table>({}))},
                     {"runs", list_to_json(state_->list<runs_table>({}))}};
  reading.commit();
  return to_text(made);
}

store_merge cost_store::import_json(std::string_view text, const std::string& name) {
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::parse_error& e) {
    throw error(error_kind::invalid_argument, "is not JSON, as byte " + std::to_string(e.byte) + " shows", name,
                export_anew);
  } catch (const json::exception&) {
    throw error(error_kind::invalid_argument, "is not JSON: a number is out of range", name, export_anew);
  }
  if (!parsed.is_object() || !parsed.contains("format") || parsed["format"] != export_format)
    throw error(error_kind::invalid_argument, "is not an export of a store", name,
                "take a file from collage store export");
  const json_place top(parsed, name, export_anew);
  if (const std::uint64_t version = top["version"].natural(0, ~std::uint64_t{0}); version != export_version)
    throw error(error_kind::invalid_argument,
                "has version " + std::to_string(version) + " of the export format, which is not version " +
                    std::to_string(export_version),
                name, export_anew);
  const std::vector<entry<costs_table>> costs = list_from_json<costs_table>(top["costs"]);
  const std::vector<entry<runs_table>> runs = list_from_json<runs_table>(top["runs"]);
  const std::lock_guard lock(state_->mutex);
  return state_->merge_all(costs, runs);
}

store_report cost_store::check() const {
  const std::lock_guard lock(state_->mutex);
  const state& s = *state_;
  store_report report;
  report.notes = s.notes;
  if (!s.not_writable.empty()) report.notes.push_back(s.not_writable);
  report.journal = s.journal;
  const auto trying = [&report](const auto& part) {
    try {
      part();
    } catch (const damaged_store& e) { report.problems.emplace_back(e.what()); }
  };
  trying([&] { s.check_pages(report); });
  trying([&] {
    const auto costs = s.list<costs_table>({}, &report.damaged);
    report.entries.costs = costs.size();
    for (const entry<costs_table>& e : costs) report.refused += e.value.refusal.empty() ? 0U : 1U;
  });
  trying([&] { report.entries.runs = s.list<runs_table>({}, &report.damaged).size(); });
  trying([&] { report.schema = static_cast<int>(s.db.number("PRAGMA user_version")); });
  if (report.damaged != 0)
    report.problems.push_back(std::to_string(report.damaged) + (report.damaged == 1 ? " entry is" : " entries are") +
                              " damaged; collage store prune --damaged removes what is measured again anyway");
  std::error_code ignored;
  for (const char* part : {"", "-wal"})
    if (const fs::path file = s.real + part; fs::exists(file, ignored)) report.bytes += fs::file_size(file, ignored);
  return report;
}

// ---- Who measures -------------------------------------------------------------------------------------------------

measuring_lock::measuring_lock(measuring_lock&& other) noexcept
    : file_(std::exchange(other.file_, -1)), held_(std::exchange(other.held_, false)) {}

measuring_lock& measuring_lock::operator=(measuring_lock&& other) noexcept {
  if (this != &other) {
    release();
    file_ = std::exchange(other.file_, -1);
    held_ = std::exchange(other.held_, false);
  }
  return *this;
}

measuring_lock::~measuring_lock() { release(); }

void measuring_lock::release() noexcept {
  if (file_ >= 0) {
    // The file stays: removing it would let two processes lock two files of one name. A number that stays in it is read
    // by nobody, since nobody waits. Let go before it is closed: a worker that is just being started still shares it.
    if (::ftruncate(file_, 0) != 0 || ::flock(file_, LOCK_UN) != 0) errno = 0;
    ::close(file_);
  }
  file_ = -1;
  held_ = false;
}

measuring_lock cost_store::measuring(const std::function<bool(const measuring_process&)>& go_on) const {
  if (!writable()) return measuring_lock(-1);
  const std::string name = state_->real + "-measuring";
  const auto fail = [&](const char* what, int why) {
    throw error(error_kind::environment, what + sentence_of(why), name,
                "give the store a folder where files can be created and locked");
  };
  // Workers are other programs and must not inherit the lock: it would outlive this process.
  int opened = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  // Another user's can be locked and not written.
  if (opened < 0 && errno == EACCES) opened = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (opened < 0) fail("cannot be opened: ", errno);
  struct closing {
    int file;
    ~closing() {
      if (file >= 0) ::close(file);
    }
  } file{opened};
  const double start = now_s();
  while (::flock(file.file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) fail("cannot be locked: ", errno);
    measuring_process other;
    other.waited_s = now_s() - start;
    char text[24] = {};
    if (::pread(file.file, text, sizeof(text) - 1, 0) > 0) {
      const auto end = std::from_chars(text, text + std::strlen(text), other.pid);
      if (end.ec != std::errc() || other.pid < 0) other.pid = 0;
    }
    if (go_on && !go_on(other)) return {};
    sleep_ms(50);
  }
  // For those who wait, and for people; without it both work all the same.
  const std::string pid = std::to_string(::getpid()) + '\n';
  if (::ftruncate(file.file, 0) == 0 && ::pwrite(file.file, pid.data(), pid.size(), 0) < 0) errno = 0;
  return measuring_lock(std::exchange(file.file, -1));
}

std::string default_store_path() {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    // Relative ones are to be ignored, says the XDG Base Directory Specification.
    return value != nullptr && *value == '/' ? fs::path(value) : fs::path();
  };
  fs::path caches = folder("XDG_CACHE_HOME");
  if (caches.empty()) {
    const fs::path home = folder("HOME");
    if (home.empty())
      throw error(error_kind::environment, "neither XDG_CACHE_HOME nor HOME names a folder", "default store of costs",
                  "set one of them, or name a file for the store");
    caches = home / ".cache";
  }
  return (caches / "collage" / "costs.db").string();
}

}  // namespace collage::inline v0
