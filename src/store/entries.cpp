// Entries of the store: their rows, and how they are found, put, listed and removed.
#include "fields.hpp"
#include "parts.hpp"

#include <sqlite3.h>

#include <collage/io/json.hpp>
#include <collage/measure/store.hpp>

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail::store_parts {

namespace {

// ---- Rows ---------------------------------------------------------------------------------------------------------

template <class Table>
sqlite3_stmt* find_statement(const opened_store& s) {
  statement_handle& kept = std::same_as<Table, costs_table> ? s.find_cost : s.find_run;
  if (kept == nullptr)
    kept = s.db.prepare("SELECT " + column_names<Table>() + " FROM " + Table::name + " WHERE digest=?1");
  return kept.get();
}

template <class Table>
sqlite3_stmt* put_statement(const opened_store& s) {
  statement_handle& kept = std::same_as<Table, costs_table> ? s.put_cost : s.put_run;
  if (kept == nullptr) {
    const std::string& names = column_names<Table>();
    std::string marks = "?";
    for (const char c : names)
      if (c == ',') marks += ", ?";
    kept =
        s.db.prepare(std::string("INSERT OR REPLACE INTO ") + Table::name + " (" + names + ") VALUES (" + marks + ")");
  }
  return kept.get();
}

template <class Table>
std::optional<entry<Table>> read(sqlite3_stmt* statement) {
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

template <class Table>
void must_be_valid(const opened_store& s, const typename Table::key_type& key) {
  to_valid fields;
  Table::each_of_key(key, fields);
  if (!fields.wrong.empty()) s.refuse("cannot hold this key: " + fields.wrong, "give complete keys to find and put");
}

template <class Key>
std::optional<typename table_of<Key>::value_type> find(const opened_store& s, const Key& key) {
  using table = table_of<Key>;
  must_be_valid<table>(s, key);
  const std::string bytes = key_bytes<table>(key);
  const std::string digest = digest_of(bytes);
  s.limit_steps();
  sqlite3_stmt* statement = find_statement<table>(s);
  const statement_use use(statement);
  s.db.need(sqlite3_bind_blob64(statement, 1, digest.data(), digest.size(), SQLITE_TRANSIENT));
  if (!s.db.step(statement)) return std::nullopt;
  std::optional<entry<table>> found = read<table>(statement);
  if (!found) ++s.damaged;
  if (!found || found->key != key) return std::nullopt;
  return std::move(found->value);
}

/// Inserts an entry whose key and value have been checked.
template <class Table>
void insert(const opened_store& s, const typename Table::key_type& key, const typename Table::value_type& value) {
  const std::string key_part = key_bytes<Table>(key), value_part = value_bytes<Table>(value);
  if (key_part.size() + value_part.size() > most_bytes)
    s.refuse("cannot hold an entry of " + std::to_string(key_part.size() + value_part.size()) + " bytes",
             "shorten its texts: " + std::to_string(most_bytes) + " is the most");
  s.limit_steps();
  sqlite3_stmt* statement = put_statement<Table>(s);
  const statement_use use(statement);
  to_statement row{statement, 1};
  row.bytes(digest_of(key_part));
  Table::each_of_key(key, row);
  Table::each_of_value(value, row);
  row.whole("seal", seal_of(key_part, value_part), 0, 0);
  s.db.need(row.code);
  s.db.step(statement);
}

template <class Table>
void put(const opened_store& s, const typename Table::key_type& key, typename Table::value_type value) {
  must_be_valid<Table>(s, key);
  if (value.when_s == 0) value.when_s = static_cast<std::int64_t>(std::time(nullptr));
  to_valid fields;
  Table::each_of_value(value, fields);
  if (!fields.wrong.empty()) s.refuse("cannot hold this result: " + fields.wrong, "measure again");
  insert<Table>(s, key, value);
}

/// The conditions of a filter in SQL, with numbered parameters.
template <class Table>
std::string where(const store_filter& which) {
  std::string sql = " WHERE 1";
  constexpr bool are_costs = std::same_as<Table, costs_table>;
  if (!are_costs && (!which.backend.empty() || which.refused)) return " WHERE 0";
  if (!which.backend.empty()) sql += " AND backend=?1";
  if (!which.machine.empty()) sql += " AND machine=?2";
  if (!which.other_than_machine.empty()) sql += " AND machine<>?3 AND machine<>''";  // an error belongs to none
  if (!which.text.empty()) {
    sql += " AND (substr(lower(hex(digest)), 1, length(?4))=lower(?4)";
    for (const char* column : Table::texts) sql += std::string(" OR instr(") + column + ", ?4)>0";
    sql += ")";
  }
  if (which.refused) sql += " AND refusal<>''";
  if (which.before_s != 0) sql += " AND when_s<?5";
  return sql;
}

void bind(const connection& db, sqlite3_stmt* statement, const store_filter& which) {
  const std::string* texts[] = {&which.backend, &which.machine, &which.other_than_machine, &which.text};
  const int parameters = sqlite3_bind_parameter_count(statement);
  for (int i = 0; i < 4 && i < parameters; ++i)
    db.need(sqlite3_bind_text64(statement, i + 1, texts[i]->data(), texts[i]->size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  if (parameters >= 5) db.need(sqlite3_bind_int64(statement, 5, which.before_s));
}

}  // namespace

template <class Table>
std::vector<entry<Table>> list_entries(const opened_store& s, const store_filter& which, std::size_t* bad) {
  s.limit_steps(4);
  const statement_handle statement = s.db.prepare("SELECT " + column_names<Table>() + " FROM " + Table::name +
                                                  where<Table>(which) + " ORDER BY " + Table::order);
  bind(s.db, statement.get(), which);
  std::vector<entry<Table>> all;
  while (s.db.step(statement.get())) {
    if (std::optional<entry<Table>> e = read<Table>(statement.get())) all.push_back(std::move(*e));
    else if (bad != nullptr) ++*bad;
    else ++s.damaged;
  }
  return all;
}
template std::vector<entry<costs_table>> list_entries<costs_table>(const opened_store&, const store_filter&,
                                                                   std::size_t*);
template std::vector<entry<runs_table>> list_entries<runs_table>(const opened_store&, const store_filter&,
                                                                 std::size_t*);

namespace {

/// The entries as callers get them, with ids.
template <class Entry, class Table>
std::vector<Entry> listed(const opened_store& s, const store_filter& which) {
  const std::lock_guard lock(s.mutex);
  std::vector<Entry> all;
  for (entry<Table>& e : list_entries<Table>(s, which))
    all.push_back({hex_of(e.digest), std::move(e.key), std::move(e.value)});
  return all;
}

template <class Table>
std::size_t remove(const opened_store& s, const store_filter& which) {
  s.limit_steps(4);
  const statement_handle statement = s.db.prepare(std::string("DELETE FROM ") + Table::name + where<Table>(which));
  bind(s.db, statement.get(), which);
  s.db.step(statement.get());
  return static_cast<std::size_t>(sqlite3_changes(s.db.get()));
}

template <class Key>
std::size_t forget(const opened_store& s, const std::vector<Key>& keys) {
  using table = table_of<Key>;
  const statement_handle statement = s.db.prepare(std::string("DELETE FROM ") + table::name + " WHERE digest=?1");
  std::size_t gone = 0;
  for (const Key& key : keys) {
    must_be_valid<table>(s, key);
    const std::string digest = digest_of(key_bytes<table>(key));
    s.limit_steps();
    const statement_use use(statement.get());
    s.db.need(sqlite3_bind_blob64(statement.get(), 1, digest.data(), digest.size(), SQLITE_TRANSIENT));
    s.db.step(statement.get());
    gone += static_cast<std::size_t>(sqlite3_changes(s.db.get()));
  }
  return gone;
}

template <class Table>
std::size_t remove_damaged(const opened_store& s) {
  s.limit_steps(4);
  std::vector<std::int64_t> rows;
  {
    const statement_handle statement = s.db.prepare("SELECT " + column_names<Table>() + ", rowid FROM " + Table::name);
    while (s.db.step(statement.get()))
      if (!read<Table>(statement.get()))
        rows.push_back(sqlite3_column_int64(statement.get(), sqlite3_column_count(statement.get()) - 1));
  }
  const statement_handle statement = s.db.prepare(std::string("DELETE FROM ") + Table::name + " WHERE rowid=?1");
  for (const std::int64_t row : rows) {
    const statement_use use(statement.get());
    s.db.need(sqlite3_bind_int64(statement.get(), 1, row));
    s.db.step(statement.get());
  }
  return rows.size();
}

/// Adds entries. If the store has an entry with the same key, the newer entry stays.
template <class Table>
void merge(const opened_store& s, const std::vector<entry<Table>>& others, store_merge& became) {
  for (const entry<Table>& e : others) {
    const std::string digest = digest_of(key_bytes<Table>(e.key));
    bool exists = false, newer = true;
    s.limit_steps();
    {
      sqlite3_stmt* statement = find_statement<Table>(s);
      const statement_use use(statement);
      s.db.need(sqlite3_bind_blob64(statement, 1, digest.data(), digest.size(), SQLITE_TRANSIENT));
      if (s.db.step(statement)) {
        exists = true;
        const std::optional<entry<Table>> ours = read<Table>(statement);
        newer = !ours || e.value.when_s > ours->value.when_s;
      }
    }
    if (newer) insert<Table>(s, e.key, e.value);
    ++(!exists ? became.added : newer ? became.replaced : became.kept);
  }
}

}  // namespace

store_merge merge_entries(const opened_store& s, const std::vector<entry<costs_table>>& costs,
                          const std::vector<entry<runs_table>>& runs) {
  store_merge became;
  s.must_be_writable();
  transaction writing(s.db, "BEGIN IMMEDIATE");
  merge<costs_table>(s, costs, became);
  merge<runs_table>(s, runs, became);
  writing.commit();
  return became;
}

}  // namespace detail::store_parts

namespace parts = detail::store_parts;

std::optional<stored_cost> cost_store::find(const stored_key& key) const {
  const std::lock_guard lock(state_->mutex);
  return parts::find(*state_, key);
}
std::optional<stored_run> cost_store::find(const stored_run_key& key) const {
  const std::lock_guard lock(state_->mutex);
  return parts::find(*state_, key);
}

void cost_store::put(const stored_key& key, const stored_cost& cost) {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  parts::put<parts::costs_table>(*state_, key, cost);
}
void cost_store::put(const std::vector<std::pair<stored_key, stored_cost>>& costs) {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  parts::transaction writing(state_->db, "BEGIN IMMEDIATE");
  for (const auto& [key, cost] : costs) parts::put<parts::costs_table>(*state_, key, cost);
  writing.commit();
}
void cost_store::put(const stored_run_key& key, const stored_run& run) {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  parts::put<parts::runs_table>(*state_, key, run);
}

std::vector<stored_entry> cost_store::list(const store_filter& which) const {
  return parts::listed<stored_entry, parts::costs_table>(*state_, which);
}
std::vector<stored_run_entry> cost_store::list_runs(const store_filter& which) const {
  return parts::listed<stored_run_entry, parts::runs_table>(*state_, which);
}

store_count cost_store::remove(const store_filter& which) {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  parts::transaction writing(state_->db, "BEGIN IMMEDIATE");
  const store_count gone{parts::remove<parts::costs_table>(*state_, which),
                         parts::remove<parts::runs_table>(*state_, which)};
  writing.commit();
  return gone;
}

std::size_t cost_store::forget(const std::vector<stored_key>& keys) {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  parts::transaction writing(state_->db, "BEGIN IMMEDIATE");
  const std::size_t gone = parts::forget(*state_, keys);
  writing.commit();
  return gone;
}

std::size_t cost_store::remove_damaged() {
  const std::lock_guard lock(state_->mutex);
  state_->must_be_writable();
  parts::transaction writing(state_->db, "BEGIN IMMEDIATE");
  const std::size_t gone =
      parts::remove_damaged<parts::costs_table>(*state_) + parts::remove_damaged<parts::runs_table>(*state_);
  writing.commit();
  return gone;
}

}  // namespace collage::inline v0
