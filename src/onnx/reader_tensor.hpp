// Tensors of a file: from their message and the data that was left in the file to memory.
#pragma once

#include <collage/dtype.hpp>
#include <collage/io/onnx/model.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader_wire.hpp"

namespace onnx {
class SparseTensorProto;
class TensorProto;
}  // namespace onnx

namespace collage::inline v0::onnx::detail {

class tensor_reader {
 public:
  tensor_reader(const std::string& path, const input_file& file, const stripped_file& parts, std::size_t most_bytes)
      : path_(&path), file_(&file), parts_(&parts), wire_(file), bytes_left_(most_bytes) {}

  /// `called` is the tensor in a message: "the initializer `w`".
  model_tensor read(const ::onnx::TensorProto& from, const std::string& called);
  /// The same for a sparse tensor. It becomes dense: the elements that it does not list are 0.
  model_tensor read(const ::onnx::SparseTensorProto& from, const std::string& called);

 private:
  struct wanted {
    const std::string& called;
    tensor_type type;
    std::size_t elements, bytes;
  };
  std::shared_ptr<const std::byte> inside(const wanted& w, std::size_t entry);
  std::shared_ptr<const std::byte> beside(const wanted& w, const ::onnx::TensorProto& from);
  std::shared_ptr<std::byte> decoded(const wanted& w, const data_chunk* first, const data_chunk* last);
  std::shared_ptr<std::byte> memory_for(const wanted& w);
  /// The number of elements. Refuses extents that are negative or too large.
  std::size_t elements_of(const std::vector<std::int64_t>& extents, const std::string& called) const;
  void take_bytes(const std::string& called, std::size_t bytes);
  [[noreturn]] void refuse(const std::string& called, const std::string& what) const;

  const std::string* path_;
  const input_file* file_;
  const stripped_file* parts_;
  wire_reader wire_;
  std::size_t bytes_left_;
  // The external file opened last: a model has few, and many tensors in each.
  std::string location_;
  input_file external_;
};

}  // namespace collage::inline v0::onnx::detail
