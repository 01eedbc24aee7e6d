// Tensors: typed views of memory.
#pragma once

#include <collage/run/form.hpp>
#include <collage/run/space.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <span>

namespace collage::inline v0 {

/// A tensor in memory that it does not own. The type is the network's; the form says how the elements are stored.
struct tensor_view {
  void* data = nullptr;
  tensor_type type;
  form stored = {};
};

/// The same, to read only.
struct const_tensor_view {
  const void* data = nullptr;
  tensor_type type;
  form stored = {};

  const_tensor_view() = default;
  const_tensor_view(const void* memory, const tensor_type& t) : data(memory), type(t) {}
  const_tensor_view(const tensor_view& t) : data(t.data), type(t.type), stored(t.stored) {}

  /// The elements as T, which must be the tensor's element type.
  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data), static_cast<std::size_t>(type.dims.elements())};
  }
};

/// A tensor with memory of its own, dense and zeroed on the host.
class tensor {
 public:
  tensor() = default;
  explicit tensor(const tensor_type& type) : memory_(type.bytes()), type_(type) {
    if (memory_.data() != nullptr) std::memset(memory_.data(), 0, memory_.size());
  }
  const tensor_type& type() const { return type_; }
  std::byte* data() const { return memory_.data(); }
  std::size_t bytes() const { return memory_.size(); }
  operator tensor_view() const { return {memory_.data(), type_}; }
  operator const_tensor_view() const { return {memory_.data(), type_}; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(memory_.data()), static_cast<std::size_t>(type_.dims.elements())};
  }

 private:
  buffer memory_;
  tensor_type type_;
};

}  // namespace collage::inline v0
