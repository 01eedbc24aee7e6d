// Opens a store: its file and the rights to it, its schema and its journal.
#include "parts.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <collage/error.hpp>
#include <collage/io/json.hpp>
#include <collage/measure/store.hpp>

#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace collage::inline v0 {

namespace detail::store_parts {

namespace {

namespace fs = std::filesystem;

constexpr std::int32_t application_id = 0x636C6765;  // "clge"

/// Step i makes schema i + 1 from schema i. A new schema is a new step; old steps never change. A step that adds a column either
/// seals old entries anew, or gives them a value that the table's fields leave out of the seal. If costs under the same key are
/// to be measured differently, a step deletes the old costs.
constexpr std::array<std::array<const char*, 2>, 1> schema_steps{{{costs_sql, runs_sql}}};
constexpr int newest_schema = static_cast<int>(schema_steps.size());

/// Empty if the access is allowed, else why it is not.
std::string why_not(const fs::path& path, int access) {
  return ::faccessat(AT_FDCWD, path.c_str(), access, AT_EACCESS) == 0 ? std::string() : sentence_of(errno);
}

/// Whether other machines may use the file at the same time. Processes on different machines share no memory, and a write-ahead
/// log needs shared memory.
bool is_shared_by_machines(const fs::path& folder) {
  struct statfs found{};
  if (::statfs(folder.c_str(), &found) != 0) return false;
  // NFS, SMB 1 to 3, 9P, Ceph, AFS, Lustre, GPFS, OCFS2
  for (const unsigned long type : {0x6969UL, 0x517BUL, 0xFF534D42UL, 0xFE534D42UL, 0x01021997UL, 0x00C36400UL,
                                   0x5346414FUL, 0x0BD00BD0UL, 0x47504653UL, 0x7461636FUL})
    if ((static_cast<unsigned long>(found.f_type) & 0xFFFFFFFFUL) == type) return true;
  return false;
}

/// SQLite's URI of a file that does not change.
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/' || c == '.' || c == '-' || c == '_' || (byte < 0x80 && std::isalnum(byte) != 0)) uri += c;
    else uri += {'%', detail::hex_digits[byte >> 4U], detail::hex_digits[byte & 15U]};
  }
  return uri + "?immutable=1";
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

opened_store::opened_store(const std::string& given, store_mode how) : path(given) {
  look(how);
  open();
  prepare_journal();
}

void opened_store::refuse(const std::string& what, const std::string& remedy) const {
  throw error(error_kind::invalid_argument, what, path.empty() ? "store ''" : path, remedy);
}

/// Finds the file that the path leads to, and what this process may do with it.
void opened_store::look(store_mode how) {
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
  // SQLite's own limit, less room for the suffixes of its other files' names.
  if (real.size() > 480) refuse("has a path of more than 480 bytes", name_another);

  if (exists) {
    if (const std::string why = why_not(file, R_OK); !why.empty()) refuse("cannot be read: " + why, name_another);
    look_at_header();
  }
  if (how == store_mode::read_only) not_writable = "is opened read-only";
  else if (const std::string own = exists ? why_not(file, W_OK) : ""; !own.empty())
    not_writable = "cannot be written: " + own;
  else if (const std::string around = why_not(folder, W_OK | X_OK); !around.empty())
    not_writable = "cannot be written, because its folder is not writable: " + around;
  if (!exists && !not_writable.empty()) refuse(not_writable, name_another);
}

/// Refuses other programs' files. SQLite takes a file that is shorter than a page for an empty one, and would overwrite it.
void opened_store::look_at_header() const {
  constexpr std::string_view magic("SQLite format 3\0", 16);
  char header[magic.size()] = {};
  std::ifstream file(real, std::ios::binary);
  file.read(header, sizeof(header));
  const auto got = static_cast<std::size_t>(file.gcount());
  std::error_code ignored;
  // If there is a journal, SQLite restores from it a file that a process left half written.
  if (got == 0 || std::string_view(header, got) == magic || fs::exists(real + "-journal", ignored)) return;
  refuse(not_a_store, name_another);
}

bool opened_store::is_default() const {
  try {
    return path == default_store_path();
  } catch (const error&) { return false; }
}

void opened_store::make_folder(const fs::path& folder) const {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw error(error_kind::environment, "cannot be created: " + failed.message(), folder.string(),
                "create the folder, or name another file for the store");
}

void opened_store::open() {
  if (not_writable.empty()) {
    db = connection(path, real, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  } else {
    // A store that was closed in an orderly way has no log. To read a store with a log, SQLite needs a file beside it.
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
    not_writable = "can be written only by a newer SQLite, as its header says";
}

void opened_store::read_as_unchanging() {
  db = connection(path, immutable_uri(real), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  notes.emplace_back("its folder is not writable: the file is read on the assumption that no program changes it");
}

/// Whether the last error says that the store has a write-ahead log, but cannot have one here.
bool opened_store::is_log_impossible() const {
  const int code = db.failed_with();
  const int shared[] = {SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMLOCK, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMSIZE};
  bool is = (code & 0xFF) == SQLITE_CANTOPEN;
  for (const int s : shared) is = is || code == s;
  return is;
}

/// Replaces the write-ahead log with a rollback journal. If the store is not writable, reads it as a file that does not change.
/// SQLite reads the log without shared memory while no other process has the file open.
void opened_store::leave_log() {
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

/// Refuses a file that is no store, makes the tables of a new store and brings an old store up to date.
void opened_store::identify() {
  int schema = 0;
  {
    // In one transaction, because another process may be making the store at the same time.
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
  for (const auto& [name, sql] : {std::pair{costs_table::name, costs_table::sql}, {runs_table::name, runs_table::sql}})
    if (db.text(std::string("SELECT sql FROM sqlite_schema WHERE type='table' AND name='") + name + "'") != sql)
      db.damaged("its table " + std::string(name) + " has another definition than this version creates");
}

/// The number of the file's schema; 0 if the file is empty.
int opened_store::schema_found() const {
  const std::int64_t id = db.number("PRAGMA application_id");
  const std::int64_t version = db.number("PRAGMA user_version");
  const std::int64_t tables = db.number("SELECT count(*) FROM sqlite_schema");
  if (id == 0 && version == 0 && tables == 0) return 0;
  if (id != application_id) refuse("is another program's database", name_another);
  if (version > newest_schema)
    refuse("was written by a newer collage: its schema is " + std::to_string(version) + ", and this one knows " +
               std::to_string(newest_schema),
           "use that version, or name another file for the store");
  if (version < 1) db.damaged("its schema is " + std::to_string(version));
  return static_cast<int>(version);
}

void opened_store::prepare_journal() {
  journal = db.text("PRAGMA journal_mode");
  if (not_writable.empty() && journal != "wal") {
    if (is_shared_by_machines(fs::path(real).parent_path())) {
      notes.emplace_back(
          "its file system is shared between machines: it has no write-ahead log, and processes wait for each other");
    } else {
      // SQLite returns busy without waiting if another process does the same at the same time.
      int code = SQLITE_BUSY;
      for (const double end = now_s() + busy_ms / 1000.0; (code & 0xFF) == SQLITE_BUSY && now_s() < end;) {
        code = sqlite3_exec(db.get(), "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr);
        if ((code & 0xFF) == SQLITE_BUSY) std::this_thread::sleep_for(std::chrono::milliseconds(5));
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
  // With either setting, the end of a process loses nothing. A power cut may lose the last entries of a write-ahead log; without
  // FULL, it could damage a file that has a rollback journal.
  if (not_writable.empty()) db.execute(journal == "wal" ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL");
}

void opened_store::limit_steps(std::int64_t for_a_byte) const {
  std::int64_t bytes = 0;
  std::error_code failed;
  for (const char* part : {"", "-wal"})
    if (const auto size = fs::file_size(real + part, failed); !failed) bytes += static_cast<std::int64_t>(size);
  steps_left_ = least_steps + for_a_byte * bytes;
  constexpr int at_once = 1000;
  sqlite3_progress_handler(
      db.get(), at_once, [](void* left) { return (*static_cast<std::int64_t*>(left) -= at_once) < 0 ? 1 : 0; },
      &steps_left_);
}

void opened_store::must_be_writable() const {
  if (!not_writable.empty()) refuse(not_writable, name_another);
  int moved = 0;
  if (sqlite3_file_control(db.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0) db.moved();
}

}  // namespace detail::store_parts

cost_store::cost_store(const std::string& path, store_mode how) : state_(std::make_unique<state>(path, how)) {}
cost_store::cost_store(cost_store&&) noexcept = default;
cost_store& cost_store::operator=(cost_store&&) noexcept = default;
cost_store::~cost_store() = default;

const std::string& cost_store::path() const noexcept { return state_->path; }
const std::string& cost_store::why_not_writable() const noexcept { return state_->not_writable; }
std::size_t cost_store::damaged() const noexcept { return state_->damaged; }

std::string default_store_path() {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    // The XDG Base Directory Specification requires relative paths to be ignored.
    return value != nullptr && *value == '/' ? std::filesystem::path(value) : std::filesystem::path();
  };
  std::filesystem::path caches = folder("XDG_CACHE_HOME");
  if (caches.empty()) {
    const std::filesystem::path home = folder("HOME");
    if (home.empty())
      throw error(error_kind::environment, "neither XDG_CACHE_HOME nor HOME names a folder", "default store of costs",
                  "set one of them, or name a file for the store");
    caches = home / ".cache";
  }
  return (caches / "collage" / "costs.db").string();
}

}  // namespace collage::inline v0
