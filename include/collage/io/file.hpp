// Reads and writes whole files. Every error is one sentence that names the file.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <collage/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {

struct close_file {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using file_handle = std::unique_ptr<std::FILE, close_file>;

inline error unreadable(const std::string& path, const std::string& why) {
  return {error_kind::invalid_argument, "cannot be read: " + why, path, "check the path"};
}
inline error unwritable(const std::string& path, const std::string& why) {
  return {error_kind::invalid_argument, "cannot be written: " + why, path,
          "choose a file in an existing folder in which you may create files"};
}
/// The same by the number of a system error. A full or faulty device is no mistake of the user.
inline error unwritable(const std::string& path, int number) {
  const std::string what = "cannot be written: " + std::string(std::strerror(number));
  switch (number) {
    case ENOSPC:
    case EDQUOT:
      return {error_kind::environment, what, path, "free some space, or name a file on a device that has more"};
    case EFBIG: return {error_kind::environment, what, path, "raise the limit of file sizes (ulimit -f)"};
    case EMFILE:
    case ENFILE: return {error_kind::environment, what, path, "close other files, or raise their limit (ulimit -n)"};
    case EIO:
    case ESTALE:
    case ETIMEDOUT: return {error_kind::environment, what, path, "check the device, or name a file on another one"};
    case ENOMEM: return {error_kind::environment, what, path, "end other programs"};
    default: return unwritable(path, std::string(std::strerror(number)));
  }
}

/// The file that a path leads to, through links. Replacing this file leaves the links in place.
struct write_target {
  std::filesystem::path path;
  bool exists = false;
  bool in_place = false;  ///< a device or pipe, which can be written to but not replaced

  explicit write_target(const std::string& name) : path(name) {
    std::error_code failed;
    std::filesystem::file_status status = std::filesystem::status(path, failed);
    exists = std::filesystem::exists(status);
    if (exists) {
      if (std::filesystem::is_directory(status)) throw unwritable(name, "it is a folder");
      if (::access(name.c_str(), W_OK) != 0) throw unwritable(name, errno);
      in_place = !std::filesystem::is_regular_file(status);
      const std::filesystem::path real = std::filesystem::canonical(path, failed);
      if (!failed) path = real;
    } else if (name.empty() || !path.has_filename()) {
      throw unwritable(name.empty() ? "''" : name, "it has no file name");
    }
  }
};

/// The names of files beside targets: "NAME.collage-RANDOM.tmp". A long NAME is cut.
class temporary_name {
 public:
  explicit temporary_name(const std::filesystem::path& target) : stem_(target.filename().string()) {
    constexpr std::size_t most = 255;  // of a file's name
    stem_.resize(std::min(stem_.size(), most - mark.size() - letters - end.size()));
    stem_ += mark;
  }
  /// Another name each time.
  std::string fresh() const {
    std::uint64_t number = 0;
    if (::getentropy(&number, sizeof number) != 0) {
      static std::atomic<std::uint64_t> calls{0};
      timespec now{};
      clock_gettime(CLOCK_MONOTONIC, &now);
      number = static_cast<std::uint64_t>(now.tv_nsec) * 0x9E3779B97F4A7C15U +
               static_cast<std::uint64_t>(::getpid()) * 0xBF58476D1CE4E5B9U + calls.fetch_add(1);
    }
    std::string name = stem_;
    for (std::size_t i = 0; i < letters; ++i, number /= alphabet.size()) name += alphabet[number % alphabet.size()];
    return name.append(end);
  }
  /// Whether a name is one of these.
  bool is_one(std::string_view name) const {
    return name.size() == stem_.size() + letters + end.size() && name.starts_with(stem_) && name.ends_with(end) &&
           name.substr(stem_.size(), letters).find_first_not_of(alphabet) == std::string_view::npos;
  }

 private:
  static constexpr std::string_view mark = ".collage-", end = ".tmp", alphabet = "0123456789abcdefghijklmnopqrstuv";
  static constexpr std::size_t letters = 12;

  std::string stem_;
};

/// The paths of files that are being written, for `remove_unfinished_files`.
class unfinished_paths {
 public:
  /// Registers a path. Returns whether there was a free slot.
  static bool add(const char* path) {
    for (std::atomic<const char*>& slot : slots_) {
      const char* none = nullptr;
      if (slot.compare_exchange_strong(none, path)) return true;
    }
    return false;
  }
  /// Returns whether the path was registered. Otherwise a signal handler may be reading it.
  static bool remove(const char* path) {
    for (std::atomic<const char*>& slot : slots_) {
      const char* known = path;
      if (slot.compare_exchange_strong(known, nullptr)) return true;
    }
    return false;
  }
  static void unlink_all() noexcept {
    for (std::atomic<const char*>& slot : slots_)
      if (const char* const path = slot.exchange(nullptr); path != nullptr) ::unlink(path);
  }

 private:
  static_assert(std::atomic<const char*>::is_always_lock_free);
  static inline std::array<std::atomic<const char*>, 64> slots_{};
};

/// A file that takes the place of its target when it is finished; until then it has a name beside the target. It is removed if it
/// is not finished. Devices and pipes are written to directly.
class unfinished_file {
 public:
  /// Opens the file. Removes files beside the target that processes left there that were killed while they wrote.
  explicit unfinished_file(const std::string& name) : name_(name), target_(name) {
    if (target_.in_place) {
      file_ = ::open(name.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
      if (file_ < 0) throw unwritable(name_, errno);
      return;
    }
    remove_left_overs();
    create();
  }
  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;
  ~unfinished_file() {
    if (file_ >= 0) ::close(file_);
    if (part_ == nullptr) return;
    ::unlink(part_->c_str());
    forget_part();
  }

  void write(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    while (bytes != 0) {
      const ssize_t done = ::write(file_, at, bytes);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) throw unwritable(name_, done < 0 ? errno : ENOSPC);
      at += done;
      bytes -= static_cast<std::size_t>(done);
    }
  }
  void write(std::string_view text) { write(text.data(), text.size()); }

  /// Puts the file in its place, after its contents have reached the device. So a crash of the machine, too, leaves the old file
  /// or the new one.
  void finish() {
    if (part_ != nullptr && ::fsync(file_) != 0 && errno != EINVAL && errno != ENOTSUP) throw unwritable(name_, errno);
    if (::close(std::exchange(file_, -1)) != 0 && errno != EINTR) throw unwritable(name_, errno);
    if (part_ == nullptr) return;
    if (::rename(part_->c_str(), target_.path.c_str()) != 0) throw unwritable(name_, errno);
    forget_part();
    if (const int folder = ::open(folder_of(target_.path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
      (void)::fsync(folder);  // some file systems cannot
      ::close(folder);
    }
  }

 private:
  static std::filesystem::path folder_of(const std::filesystem::path& file) {
    return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  }

  void create() {
    struct stat old{};
    const bool replaces = target_.exists && ::stat(target_.path.c_str(), &old) == 0;
    const temporary_name names(target_.path);
    part_ = std::make_unique<std::string>();
    for (int attempt = 0; attempt < 100 && file_ < 0; ++attempt) {
      *part_ = (folder_of(target_.path) / names.fresh()).string();
      // A file that is replaced keeps its permissions, and its contents are never open to more readers.
      file_ = ::open(part_->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, replaces ? 0600 : 0666);
      if (file_ < 0 && errno != EEXIST) break;
    }
    if (const int why = errno; file_ < 0) {
      part_.reset();
      throw unwritable(name_, why);
    }
    is_registered_ = unfinished_paths::add(part_->c_str());
    if (replaces && ::fchmod(file_, old.st_mode & 07777) != 0) errno = 0;  // the file keeps 0600
  }
  void forget_part() {
    if (is_registered_ && !unfinished_paths::remove(part_->c_str())) {
      // A signal handler may be reading it, and the process ends. So it stays, reachable for leak checkers.
      static std::mutex mutex;
      static auto* const read_by_handlers = new std::vector<std::unique_ptr<std::string>>;
      const std::lock_guard lock(mutex);
      read_by_handlers->push_back(std::move(part_));
    }
    part_.reset();
  }

  void remove_left_overs() const noexcept try {
    const temporary_name names(target_.path);
    const auto oldest = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    std::error_code failed;
    std::filesystem::directory_iterator at(folder_of(target_.path), failed);
    for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
      std::error_code gone;
      if (!names.is_one(at->path().filename().string()) || !at->is_regular_file(gone) || at->is_symlink(gone)) continue;
      if (const auto written = at->last_write_time(gone); !gone && written < oldest)
        std::filesystem::remove(at->path(), gone);
    }
  } catch (...) {
    // Nothing depends on it.
  }

  std::string name_;
  write_target target_;
  std::unique_ptr<std::string>
      part_;  // the path beside the target; null for devices, and once the file is in its place
  bool is_registered_ = false;
  int file_ = -1;
};

}  // namespace detail

/// Returns the contents of a file. Throws if it has more than `most` bytes.
inline std::string read_file(const std::string& path, std::size_t most = std::size_t{1} << 28) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) throw detail::unreadable(path, "it is a folder");
  const detail::file_handle file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) throw detail::unreadable(path, std::strerror(errno));
  std::string text;
  char block[1 << 16];
  for (std::size_t got = 0; (got = std::fread(block, 1, sizeof(block), file.get())) != 0;) {
    text.append(block, got);
    if (text.size() > most) throw detail::unreadable(path, "it has more than " + std::to_string(most) + " bytes");
  }
  if (std::ferror(file.get()) != 0) throw detail::unreadable(path, std::strerror(errno));
  return text;
}

/// Throws the errors that `write_file` would throw for this path, if they can be known in advance. Leaves no file behind. For
/// programs that work for minutes before they write.
inline void check_writable(const std::string& path) {
  if (!detail::write_target(path).in_place) detail::unfinished_file{path};
}

/// Throws if `path` leads to the file that `kept` leads to, by links or by another name: writing it would replace what is read.
/// Devices and pipes count as different, and so do files that do not exist. `what` names what is kept, such as "the network".
inline void check_replaces_no_input(const std::string& path, const std::string& kept, const char* what) {
  struct stat out{}, in{};
  if (::stat(path.c_str(), &out) != 0 || ::stat(kept.c_str(), &in) != 0) return;
  if (!S_ISREG(out.st_mode) || out.st_dev != in.st_dev || out.st_ino != in.st_ino) return;
  throw error(error_kind::invalid_argument, std::string("this is the file of ") + what + ", which would be replaced",
              path, "name another file to write");
}

/// Writes a file in one step: a reader sees the old contents or the new ones, and a failure leaves the old ones. Any number of
/// threads and processes may write to one path at the same time; the last to finish wins.
inline void write_file(const std::string& path, std::string_view text) {
  detail::unfinished_file file(path);
  file.write(text);
  file.finish();
}

/// Removes the files that `write_file` and `save_npy` have begun and not finished. For a handler of a signal that ends the
/// process: it may be called there (async-signal-safe).
inline void remove_unfinished_files() noexcept { detail::unfinished_paths::unlink_all(); }

}  // namespace collage::inline v0
