// Reads and writes whole files. Every error is one sentence that names the file.
#pragma once

#include <unistd.h>

#include <collage/error.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

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
      if (::access(name.c_str(), W_OK) != 0) throw unwritable(name, std::strerror(errno));
      in_place = !std::filesystem::is_regular_file(status);
      const std::filesystem::path real = std::filesystem::canonical(path, failed);
      if (!failed) path = real;
    } else if (name.empty() || !path.has_filename()) {
      throw unwritable(name.empty() ? "''" : name, "it has no file name");
    }
  }
  /// The name of a file beside the target. Renaming that file replaces the target in one step.
  std::string temporary() const { return path.string() + '.' + std::to_string(::getpid()) + ".tmp"; }
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
  const detail::write_target target(path);
  if (target.in_place) return;
  const std::string beside = target.temporary();
  if (const detail::file_handle file(std::fopen(beside.c_str(), "wx")); file == nullptr)
    throw detail::unwritable(path, std::strerror(errno));
  std::remove(beside.c_str());
}

/// Writes a file in one step: a reader sees the old contents or the new ones, and a failure leaves the old ones.
inline void write_file(const std::string& path, std::string_view text) {
  const detail::write_target target(path);
  const std::string to = target.in_place ? path : target.temporary();
  detail::file_handle file(std::fopen(to.c_str(), target.in_place ? "wb" : "wbx"));
  if (file == nullptr) throw detail::unwritable(path, std::strerror(errno));
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() && std::fflush(file.get()) == 0;
  const int why = errno;
  file.reset();
  if (target.in_place) {
    if (!written) throw detail::unwritable(path, std::strerror(why));
    return;
  }
  std::error_code failed;
  if (written) {
    if (target.exists) {
      std::error_code ignored;
      std::filesystem::permissions(to, std::filesystem::status(target.path, ignored).permissions(), ignored);
    }
    std::filesystem::rename(to, target.path, failed);
  }
  if (!written || failed) {
    std::remove(to.c_str());
    throw detail::unwritable(path, written ? failed.message() : std::strerror(why));
  }
}

}  // namespace collage::inline v0
