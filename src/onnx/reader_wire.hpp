// The first look at a file: protobuf's wire format, walked to part the tensors' data from the rest.
//
// protobuf would hold every weight in a string beside the memory it must end in. So the walk makes a copy of the message
// without them, which protobuf parses, and notes where in the file each tensor's data lies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader_file.hpp"

namespace collage::inline v0::onnx::detail {

/// Why a file cannot be a message, with the place in it.
struct damage {
  std::string what;
  bool inside_graph = false;  ///< false: nothing so far says that it is an ONNX file at all
};

/// A file's bytes in order, through a small window. Every read is bounded by `end`, where the message being read ends;
/// beyond it is damage.
class wire_reader {
 public:
  static constexpr std::size_t window_size = std::size_t{1} << 16;

  explicit wire_reader(const input_file& file) : file_(&file), window_(new unsigned char[window_size]) {}

  std::uint64_t at() const { return start_ + next_; }
  void move_to(std::uint64_t position) {
    if (position >= start_ && position <= start_ + filled_) {
      next_ = static_cast<std::size_t>(position - start_);
    } else {
      start_ = position;
      next_ = filled_ = 0;
    }
  }
  std::uint64_t varint(std::uint64_t end) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint64_t byte = take(end);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    throw damage{"the number before byte " + std::to_string(at()) + " does not end"};
  }
  /// The next `width` bytes, lowest first; at most 8.
  std::uint64_t fixed(std::size_t width, std::uint64_t end) {
    std::uint64_t value = 0;
    if (filled_ - next_ >= width && end - at() >= width) {
      std::memcpy(&value, window_.get() + next_, width);
      next_ += width;
    } else {
      for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{take(end)} << (8 * i);
    }
    return value;
  }
  void copy(std::uint64_t bytes, std::string& to) {
    while (bytes != 0) {
      if (next_ == filled_) fill();
      const std::size_t part = std::min<std::uint64_t>(bytes, filled_ - next_);
      to.append(reinterpret_cast<const char*>(window_.get()) + next_, part);
      next_ += part;
      bytes -= part;
    }
  }

 private:
  unsigned char take(std::uint64_t end) {
    if (at() >= end) throw damage{"it ends within a value at byte " + std::to_string(end)};
    if (next_ == filled_) fill();
    return window_[next_++];
  }
  void fill();

  const input_file* file_;
  std::unique_ptr<unsigned char[]> window_;
  std::uint64_t start_ = 0;  // the window's place in the file
  std::size_t next_ = 0, filled_ = 0;
};

/// The fields of TensorProto that hold data.
enum data_field : std::uint32_t {
  float_data = 4,
  int32_data = 5,
  string_data = 6,
  int64_data = 7,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
};
/// Bytes of one element of a data field; 0 if their number depends on the element.
constexpr std::size_t element_width(std::uint32_t field) {
  return field == float_data ? 4 : field == double_data ? 8 : 0;
}

/// A piece of a tensor's data: one field, or several of single elements in a row.
struct data_chunk {
  std::uint64_t offset = 0, length = 0;
  std::uint32_t field = 0;  ///< of TensorProto
  bool tagged = false;      ///< every element follows a tag of its own
};

/// The messages of the format that hold tensors, however deep.
enum class message_kind : std::uint8_t { model, function, graph, node, attribute, sparse_tensor, tensor };

/// A file without its tensors' data. A tensor that has data in the file has in its stead a raw_data of 8 bytes: the
/// number of its entry in `data`.
struct stripped_file {
  std::string message;
  std::vector<data_chunk> chunks;
  std::vector<std::pair<std::size_t, std::size_t>> data;  ///< first chunk, and the one past the last
};

/// Walks a file that holds one message. Throws `damage`. `most_fields` bounds what protobuf makes of small ones.
stripped_file strip(const input_file& file, message_kind kind, std::size_t most_fields);

}  // namespace collage::inline v0::onnx::detail
