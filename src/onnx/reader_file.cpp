#include "reader_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

namespace collage::inline v0::onnx::detail {

descriptor::~descriptor() {
  if (number_ >= 0) ::close(number_);
}

std::string system_words(int number) { return std::generic_category().message(number); }

std::string quoted(std::string_view text) {
  constexpr std::size_t most = 100;
  std::string shown = "`";
  for (const char c : text.substr(0, most)) shown += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  return shown + (text.size() > most ? "...`" : "`");
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

namespace {

/// Why this cannot be read as a file, or nothing.
std::string irregular(const struct stat& status) {
  if (S_ISREG(status.st_mode)) return {};
  if (S_ISDIR(status.st_mode)) return "is a folder";
  if (S_ISLNK(status.st_mode)) return "is a link";
  return "is not a regular file";
}

bool is_link(int folder, const char* name) {
  struct stat status = {};
  return ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

/// The path of a file without links; empty if it does not exist.
std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real != nullptr ? real.get() : "";
}

}  // namespace

input_file input_file::open_at(int folder, const char* name, int flags, std::string& why) {
  input_file file;
  struct stat status = {};
  // Checked before opening, because opening a device may have an effect, and again after it, because the file may have changed.
  if (::fstatat(folder, name, &status, (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0) != 0) {
    why = errno == ENOENT || errno == ENOTDIR ? "does not exist" : "cannot be read: " + system_words(errno);
    return file;
  }
  why = irregular(status);
  if (!why.empty()) return file;
  descriptor opened(::openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags));
  if (!opened || ::fstat(opened.number(), &status) != 0) {
    why = "cannot be read: " + system_words(errno);
    return file;
  }
  why = irregular(status);
  if (!why.empty()) return file;
  file.descriptor_ = std::move(opened);
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

input_file input_file::open(const std::string& path, std::string& why) {
  return open_at(AT_FDCWD, path.c_str(), 0, why);
}

input_file input_file::in_memory(std::span<const std::byte> contents) {
  input_file file;
  file.memory_ = contents.data();
  file.is_in_memory_ = true;
  file.size_ = contents.size();
  return file;
}

input_file input_file::open_beside(const std::string& model, const std::string& location, std::string& why) {
  bool meets_link = false;
  const std::string folder = folder_of(model);
  if (input_file file = open_within(folder, location, meets_link, why); file || !meets_link) return file;
  const std::string whole = folder + "/" + location;
  if (real_path(whole).empty()) {
    why = "is a link to a file that does not exist";
    return {};
  }
  // The paths are real: they contain no link unless another process changes them meanwhile. So no link is followed from here on.
  const std::string found = real_path(whole), of_model = real_path(folder), beside = folder_of(real_path(model));
  const auto rest_in = [&found](std::string base) {
    if (!base.ends_with('/')) base += '/';
    return found.starts_with(base) ? found.substr(base.size()) : std::string();
  };
  if (const std::string rest = rest_in(of_model); !of_model.empty() && !rest.empty())
    return open_within(of_model, rest, meets_link, why);
  if (const std::string rest = rest_in(beside); !rest.empty() && rest.find('/') == std::string::npos)
    return open_within(beside, rest, meets_link, why);
  why = "is a link, or lies behind one, and leads out of the model's folder; copy the data into that folder";
  return {};
}

input_file input_file::open_within(const std::string& folder, const std::string& location, bool& meets_link,
                                   std::string& why) {
  if (location.empty() || location.find('\0') != std::string::npos) {
    why = "is not a file name";
    return {};
  }
  if (location.front() == '/') {
    why = "is an absolute path, which external data may not have";
    return {};
  }
  descriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at) {
    why = "cannot be read: " + system_words(errno);
    return {};
  }
  std::size_t from = 0;
  while (true) {
    const std::size_t to = std::min(location.find('/', from), location.size());
    const std::string part = location.substr(from, to - from);
    if (part == "..") {
      why = "contains '..', which external data may not";
      return {};
    }
    if (to == location.size()) {
      // A name that ends in '/' or '/.' means a folder.
      const char* const name = part.empty() ? "." : part.c_str();
      meets_link = is_link(at.number(), name);
      return open_at(at.number(), name, O_NOFOLLOW, why);
    }
    from = to + 1;
    if (part.empty() || part == ".") continue;

    if (is_link(at.number(), part.c_str())) {
      meets_link = true;
      why = "leads through the link " + quoted(part) + ", which external data may not";
      return {};
    }
    descriptor next(::openat(at.number(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) {
      why = errno == ENOENT || errno == ENOTDIR ? "does not exist" : "cannot be read: " + system_words(errno);
      return {};
    }
    at = std::move(next);
  }
}

std::string input_file::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  if (is_in_memory_) {
    if (offset > size_ || bytes > size_ - offset) return "became shorter while it was read";
    if (bytes != 0) std::memcpy(to, memory_ + offset, bytes);
    return {};
  }
  constexpr std::size_t most = std::size_t{1} << 30;  // one call reads no more than 2 GiB
  for (std::size_t got = 0; got < bytes;) {
    const ssize_t n = ::pread(descriptor_.number(), static_cast<std::byte*>(to) + got, std::min(most, bytes - got),
                              static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return "cannot be read: " + system_words(errno);
    if (n == 0) return "became shorter while it was read";
    got += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace collage::inline v0::onnx::detail
