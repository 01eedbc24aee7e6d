// Files and folders of tests.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace collage_test {

/// All bytes of a file.
inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Where a file system is in memory, if there is such a place. For tests of the death of processes, which memory outlives: a
/// busy disk would have thousands of small transactions wait for it.
inline std::filesystem::path folder_in_memory() {
  return ::access("/dev/shm", W_OK | X_OK) == 0 ? std::filesystem::path("/dev/shm")
                                                : std::filesystem::temp_directory_path();
}

/// A new folder of the test's own, gone with it. Every user may read it: some tests give up their rights for a while.
class temporary_folder {
 public:
  explicit temporary_folder(const std::filesystem::path& where = std::filesystem::temp_directory_path()) {
    std::string name = (where / "collage_test_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + " cannot be made");
    folder_ = name;
    std::filesystem::permissions(folder_, std::filesystem::perms{0755});
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(folder_, ignored);
  }

  const std::filesystem::path& folder() const { return folder_; }
  std::string path(const std::string& name = {}) const { return (folder_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(const std::string& bytes, const std::string& name) const {
    write_file(path(name), bytes);
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace collage_test
