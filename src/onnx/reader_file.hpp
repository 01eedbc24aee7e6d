// Input files of the reader, and files whose contents are in memory already. Opening a file does not block and has no effect, whatever its path names. Reading is by position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace collage::inline v0::onnx::detail {

/// A file descriptor. The destructor closes it.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor();

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// A regular file, open for reading, or its contents in memory. Errors are the ends of sentences: "is a folder".
class input_file {
 public:
  /// Opens a file by its path, through links. If that fails, `why` is the error.
  static input_file open(const std::string& path, std::string& why);
  /// Opens the file at a location relative to a model's folder. Once all links are followed, it must lie in that folder, below it,
  /// or directly beside the model itself. Caches of models are laid out so: model and data are links to files in one folder. A model
  /// cannot make its reader read other files.
  static input_file open_beside(const std::string& model, const std::string& location, std::string& why);
  /// The contents of a file, which another object owns.
  static input_file in_memory(std::span<const std::byte> contents);

  explicit operator bool() const { return is_in_memory_ || static_cast<bool>(descriptor_); }
  bool is_in_memory() const { return is_in_memory_; }
  std::uint64_t size() const { return size_; }
  /// Reads exactly `bytes` bytes. Returns the error, or an empty text.
  std::string read(std::uint64_t offset, void* to, std::size_t bytes) const;

 private:
  /// Opens the file at a location relative to a folder, and follows no link.
  static input_file open_within(const std::string& folder, const std::string& location, bool& meets_link,
                                std::string& why);
  static input_file open_at(int folder, const char* name, int flags, std::string& why);

  descriptor descriptor_;
  const std::byte* memory_ = nullptr;
  bool is_in_memory_ = false;
  std::uint64_t size_ = 0;
};

/// The folder that a file lies in.
std::string folder_of(const std::string& path);

/// Text of a file as a message shows it: on one line, in quotes, cut if it is long.
std::string quoted(std::string_view text);

/// The system's text for an error number, such as "out of memory".
std::string system_words(int number);

}  // namespace collage::inline v0::onnx::detail
