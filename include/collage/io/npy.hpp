// Tensors as .npy files, numpy's format for one array. Versions 1.0 and 2.0 are read, 1.0 is written.
//
// Every element type is supported. numpy has no bfloat16, so its elements are stored as two raw bytes ('<V2'), as by the
// package ml_dtypes. Elements of small types are stored as one raw byte ('|V1'), and the reader must know their type. Every error is one sentence that names the file.
#pragma once

#include <cerrno>
#include <collage/error.hpp>
#include <collage/io/detail/npy_header.hpp>
#include <collage/io/file.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

namespace collage::inline v0 {

namespace detail {

struct file_closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using open_file = std::unique_ptr<std::FILE, file_closer>;

inline std::string errno_text(int number) { return std::generic_category().message(number); }

/// A type as in messages: "shape 1x3 float32".
inline std::string npy_words(const tensor_type& type) {
  return "shape " + (type.dims.empty() ? "()" : to_string(type.dims)) + " " + name_of(type.type);
}

/// An .npy file that is open and read up to its elements.
struct opened_npy {
  open_file from;
  tensor_type type;
};

/// Opens a file and checks its header, and its length against the header. Memory for the elements is allocated later, so a
/// wrong header cannot claim any. Raw bytes are elements of the type `expected`.
inline opened_npy open_npy(const std::string& path, dtype expected = dtype::f32) {
  const auto refuse = [&path](const std::string& what, const std::string& remedy = {}) -> void {
    throw error(error_kind::invalid_argument, what, path, remedy);
  };
  std::error_code failed;
  const std::filesystem::file_status status = std::filesystem::status(path, failed);
  if (status.type() == std::filesystem::file_type::not_found) refuse("there is no such file");
  if (failed) refuse("cannot be read: " + failed.message());
  if (status.type() == std::filesystem::file_type::directory) refuse("is a folder, not an .npy file");
  if (status.type() != std::filesystem::file_type::regular) refuse("is not a regular file");

  open_file from(std::fopen(path.c_str(), "rb"));
  if (from == nullptr) refuse("cannot be read: " + errno_text(errno));
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed) refuse("cannot be read: " + failed.message());

  unsigned char start[12] = {};
  const std::size_t read = std::fread(start, 1, sizeof start, from.get());
  if (read < 10 || std::memcmp(start, "\x93NUMPY", 6) != 0) refuse("is not an .npy file", "write one with numpy.save");
  const int version = start[6];
  if ((version != 1 && version != 2) || start[7] != 0)
    refuse("is an .npy file of version " + std::to_string(version) + "." + std::to_string(start[7]) +
           ", but only versions 1.0 and 2.0 can be read");
  std::size_t length = static_cast<std::size_t>(start[8]) + (static_cast<std::size_t>(start[9]) << 8);
  const std::size_t offset = version == 1 ? 10 : 12;
  if (version == 2) length += (static_cast<std::size_t>(start[10]) << 16) + (static_cast<std::size_t>(start[11]) << 24);
  if (read < offset || length > size - offset) refuse("is cut short within its header");
  if (length > 65535) refuse("its header claims " + std::to_string(length) + " bytes, which no shape needs");

  std::string header(length, '\0');
  if (std::fseek(from.get(), static_cast<long>(offset), SEEK_SET) != 0 ||
      std::fread(header.data(), 1, length, from.get()) != length)
    refuse("cannot be read: " + errno_text(errno));
  const tensor_type type = npy_dictionary_parser(header, path, expected).parse();

  const std::uintmax_t there = size - offset - length;
  const std::string takes = npy_words(type) + " takes " + std::to_string(type.bytes()) + " bytes, and " +
                            std::to_string(there) + " follow its header";
  if (there < type.bytes()) refuse("is cut short: " + takes);
  if (there > type.bytes()) refuse("is too long: " + takes);
  return {std::move(from), type};
}

inline tensor read_npy(opened_npy opened, const std::string& path) {
  tensor result(opened.type);
  if (result.bytes() != 0 && std::fread(result.data(), 1, result.bytes(), opened.from.get()) != result.bytes())
    throw error(error_kind::invalid_argument, "cannot be read: " + errno_text(errno), path);
  return result;
}

}  // namespace detail

/// Reads an array. A file of raw single bytes is refused, because it does not say of which small type they are.
inline tensor load_npy(const std::string& path) { return detail::read_npy(detail::open_npy(path), path); }

/// Reads an array. Throws if it does not have the type `expected`, in which unknown extents match any extent. `name` is the
/// network's input in the message.
inline tensor load_npy(const std::string& path, const tensor_type& expected, const std::string& name) {
  detail::opened_npy opened = detail::open_npy(path, expected.type);
  const tensor_type& found = opened.type;
  bool fits = found.dims.size() == expected.dims.size();
  for (std::size_t i = 0; fits && i < found.dims.size(); ++i)
    fits = expected.dims[i] < 0 || expected.dims[i] == found.dims[i];
  if (fits && found.type == expected.type) return detail::read_npy(std::move(opened), path);

  std::string remedy;
  if (fits) remedy = std::string("save it with array.astype('") + name_of(expected.type) + "')";
  else if (found.type == expected.type && found.dims.elements() == expected.dims.elements())
    remedy = "save it with array.reshape(" + detail::npy_shape(expected.dims) + ")";
  throw error(error_kind::invalid_argument,
              "has " + detail::npy_words(found) + ", but the network's input `" + name + "` needs " +
                  detail::npy_words(expected),
              path, remedy);
}

/// Writes an array that lies in plain layout in the host's memory. The file appears whole or not at all, as by `write_file`.
inline void save_npy(const std::string& path, const const_tensor_view& array) {
  if (array.stored != form())
    throw error(error_kind::invalid_argument, "cannot be written from the form " + to_text(array.stored), path);

  std::string header = detail::npy_dictionary(array.type);
  header.append(63 - (10 + header.size()) % 64, ' ');  // the elements start at a multiple of 64
  header += '\n';
  const char start[10] = {'\x93',
                          'N',
                          'U',
                          'M',
                          'P',
                          'Y',
                          1,
                          0,
                          static_cast<char>(header.size() & 0xFF),
                          static_cast<char>(header.size() >> 8)};

  detail::unfinished_file to(path);
  to.write(start, sizeof start);
  to.write(header);
  to.write(array.data, array.type.bytes());
  to.finish();
}

}  // namespace collage::inline v0
