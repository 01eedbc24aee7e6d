// The connection to SQLite, and the meaning of SQLite's errors.
#include "parts.hpp"

#include <sqlite3.h>

#include <collage/error.hpp>

#include <cerrno>
#include <cstdint>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace collage::inline v0 {

namespace detail::store_parts {

namespace {

constexpr const char* measure_anew = "remove the file, with its -wal and -shm, and measure again";

}  // namespace

std::string sentence_of(int system_error) { return std::generic_category().message(system_error); }

bool is_full(int system_error) { return system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG; }

connection::connection(std::string name, const std::string& file, int flags) : name_(std::move(name)) {
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
  // No memory map: if another process cut the file short, this process would end.
  execute("PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY");
}

void connection::fail(int code) const {
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
      // SQLite's codes for a file that ends in the middle of a page.
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
    case SQLITE_INTERRUPT: damaged("its pages form a cycle");
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:  // our statements are right if the tables are ours
    case SQLITE_TOOBIG:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA: damaged(said);
    default: throw error(error_kind::failure, "SQLite fails: " + said, name_, "please report it");
  }
}

void connection::damaged(const std::string& why) const {
  throw damaged_store(error_kind::environment, "is damaged (" + why + ")", name_, measure_anew);
}

void connection::full() const {
  throw error(error_kind::environment, "cannot be written: its disk is full, or the user's disk quota is used up",
              name_, "free some disk space and run the program again; the results stored so far are kept");
}

void connection::moved() const {
  throw error(error_kind::environment, "was moved, removed or replaced while it was in use", name_,
              "run the program again, and leave the file where it is until the program ends");
}

void connection::execute(const char* sql) const {
  errno = 0;
  need(sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr));
}

statement_handle connection::prepare(const std::string& sql) const {
  sqlite3_stmt* made = nullptr;
  errno = 0;
  need(sqlite3_prepare_v2(db_.get(), sql.c_str(), static_cast<int>(sql.size()), &made, nullptr));
  return statement_handle(made);
}

bool connection::step(sqlite3_stmt* statement) const {
  errno = 0;
  const int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(code);
  return false;
}

std::string connection::text(const std::string& sql) const {
  const statement_handle statement = prepare(sql);
  if (!step(statement.get())) return {};
  const unsigned char* read = sqlite3_column_text(statement.get(), 0);
  return read == nullptr ? std::string() : reinterpret_cast<const char*>(read);
}

std::int64_t connection::number(const std::string& sql) const {
  const statement_handle statement = prepare(sql);
  return step(statement.get()) ? sqlite3_column_int64(statement.get(), 0) : 0;
}

}  // namespace detail::store_parts

}  // namespace collage::inline v0
