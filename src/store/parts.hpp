// Shared by the sources of the store: its tables, the connection to SQLite, and an open store. Private to collage::store.
//
// - connection.cpp calls SQLite.
// - open.cpp opens files and makes tables.
// - bytes.cpp has texts, hashes and seals.
// - entries.cpp reads and writes entries.
// - exchange.cpp exports, imports, merges and checks.
// - turns.cpp has the lock for measuring.
//
// SQLite notices damage to the structure of its file, but not to a byte of a value. So each entry has a seal over everything in
// it, and is returned only if the seal is right.
#pragma once

#include <sqlite3.h>

#include <collage/error.hpp>
#include <collage/measure/store.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail::store_parts {

// ---- The contents of the file -------------------------------------------------------------------------------------

/// `choice` is an integer for backends that number their variants, and a text for other configurations. SQLite keeps such a text
/// as it is in a column of integers, because it begins with a letter. So older stores stay as they are.
inline constexpr const char* costs_sql =
    "CREATE TABLE costs (digest BLOB PRIMARY KEY NOT NULL, machine TEXT NOT NULL, threads INTEGER NOT NULL, "
    "waiting TEXT NOT NULL, precision TEXT NOT NULL, backend TEXT NOT NULL, library TEXT NOT NULL, "
    "pattern TEXT NOT NULL, choice INTEGER NOT NULL, computes BLOB NOT NULL, label TEXT NOT NULL, "
    "kernel TEXT NOT NULL, refusal TEXT NOT NULL, median_ms REAL NOT NULL, low_ms REAL NOT NULL, "
    "high_ms REAL NOT NULL, sure_low_ms REAL NOT NULL, sure_high_ms REAL NOT NULL, samples INTEGER NOT NULL, "
    "how TEXT NOT NULL, when_s INTEGER NOT NULL, seal INTEGER NOT NULL)";
inline constexpr const char* runs_sql =
    "CREATE TABLE runs (digest BLOB PRIMARY KEY NOT NULL, network TEXT NOT NULL, placement TEXT NOT NULL, "
    "machine TEXT NOT NULL, threads INTEGER NOT NULL, waiting TEXT NOT NULL, precision TEXT NOT NULL, "
    "libraries TEXT NOT NULL, label TEXT NOT NULL, name TEXT NOT NULL, median_ms REAL NOT NULL, "
    "low_ms REAL NOT NULL, high_ms REAL NOT NULL, runs INTEGER NOT NULL, against TEXT NOT NULL, "
    "ratio REAL NOT NULL, ratio_low REAL NOT NULL, ratio_high REAL NOT NULL, plan TEXT NOT NULL, "
    "when_s INTEGER NOT NULL, seal INTEGER NOT NULL)";
inline constexpr std::size_t most_bytes = std::size_t{16} << 20;  // of an entry

/// Each table by its fields, in the order of its columns. `fields` is a visitor. fields.hpp has the visitors for rows, and
/// exchange.cpp those for JSON.
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
    fields.configured("choice", k.choice);
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

/// Whether a text is UTF-8 without zero bytes. SQL would cut it at a zero byte.
bool is_utf8(std::string_view text);
/// The text with a question mark in place of each byte that is not UTF-8.
std::string as_utf8(std::string_view text);

std::string hex_of(std::string_view bytes);
/// The word that 16 hexadecimal digits stand for, or nothing if the text is not that.
std::optional<std::uint64_t> word_of(std::string_view hex);
/// A word as bytes, in the file's order of bytes.
void append_word(std::string& bytes, std::uint64_t word);
std::uint64_t word_at(std::string_view bytes);

/// The digest of a key, by which an entry is found.
std::string digest_of(std::string_view key_bytes);
/// A hash over everything in an entry.
std::int64_t seal_of(std::string_view key_bytes, std::string_view value_bytes);

// ---- The connection -----------------------------------------------------------------------------------------------

/// An error of its own type, because `check` reports damage where other members throw.
struct damaged_store : error {
  using error::error;
};

inline constexpr int busy_ms = 10'000;
inline constexpr std::int64_t least_steps = 1'000'000;
inline constexpr const char* not_a_store = "is not a store of costs, and not a file of SQLite";
inline constexpr const char* left_open = "was left open by a process that ended early, and may not be written to here";
inline constexpr const char* open_once = "open it once with write permission, as collage store check does";
inline constexpr const char* name_another = "name another file for the store";

/// The system's text for an error number.
std::string sentence_of(int system_error);
/// Whether the error means that no room is left.
bool is_full(int system_error);

struct close_database {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct end_statement {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using database_handle = std::unique_ptr<sqlite3, close_database>;
using statement_handle = std::unique_ptr<sqlite3_stmt, end_statement>;

/// Resets a prepared statement after use, because it would keep its lock otherwise.
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
  /// `name` is the name of the file in errors.
  connection(std::string name, const std::string& file, int flags);

  sqlite3* get() const { return db_.get(); }

  /// The code of the last failure.
  int failed_with() const { return failed_with_; }

  /// Throws the error for a code of SQLite's.
  [[noreturn]] void fail(int code) const;
  [[noreturn]] void damaged(const std::string& why) const;
  [[noreturn]] void full() const;
  [[noreturn]] void moved() const;
  void need(int code) const {
    if (code != SQLITE_OK) fail(code);
  }

  void execute(const char* sql) const;
  statement_handle prepare(const std::string& sql) const;
  /// Runs the statement up to its next row. Returns whether there is one.
  bool step(sqlite3_stmt* statement) const;
  /// The first column of the first row.
  std::string text(const std::string& sql) const;
  std::int64_t number(const std::string& sql) const;

 private:
  std::string name_;
  database_handle db_;
  mutable int failed_with_ = SQLITE_OK;
};

/// A transaction: all changes within it or, without `commit`, none.
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
// ---- A store that is open -----------------------------------------------------------------------------------------

class opened_store {
 public:
  /// Throws the errors of cost_store.
  opened_store(const std::string& given, store_mode how);

  std::string path;          // as given
  std::string real;          // without links; locks are named after it
  std::string not_writable;  // why it is not writable, or empty
  connection db;
  std::string journal;
  std::vector<std::string> notes;
  mutable std::mutex mutex;
  mutable std::atomic<std::size_t> damaged = 0;
  mutable statement_handle find_cost, find_run, put_cost, put_run;  // prepared when first needed

  [[noreturn]] void refuse(const std::string& what, const std::string& remedy) const;
  void must_be_writable() const;

  /// Limits the steps that SQLite may take, because a damaged file can lead through the same pages again and again. Reading an
  /// entry takes less than a step for each of its bytes, and checking it takes a few.
  void limit_steps(std::int64_t for_a_byte) const;
  /// For one entry.
  void limit_steps() const { steps_left_ = least_steps; }

 private:
  void look(store_mode how);
  void look_at_header() const;
  bool is_default() const;
  void make_folder(const std::filesystem::path& folder) const;
  void open();
  void read_as_unchanging();
  bool is_log_impossible() const;
  void leave_log();
  void identify();
  int schema_found() const;
  void prepare_journal();

  mutable std::int64_t steps_left_ = 0;
};

// ---- Entries ------------------------------------------------------------------------------------------------------

/// The entries of a table that a filter selects, in the order for display. Damaged entries are left out. They are counted in
/// `bad` or, if it is null, in the store.
template <class Table>
std::vector<entry<Table>> list_entries(const opened_store& s, const store_filter& which, std::size_t* bad = nullptr);

/// Adds entries, all or none. If the store has an entry with the same key, the newer entry stays.
store_merge merge_entries(const opened_store& s, const std::vector<entry<costs_table>>& costs,
                          const std::vector<entry<runs_table>>& runs);

}  // namespace detail::store_parts

struct cost_store::state : detail::store_parts::opened_store {
  using opened_store::opened_store;
};

}  // namespace collage::inline v0
