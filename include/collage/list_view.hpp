// Views of lists: a pointer and a count.
#pragma once

#include <cstddef>

namespace collage::inline v0 {

/// A replacement for std::span in the headers of the umbrella. Including <span> costs more than all these headers together.
/// An access to a span takes about ten steps of clang's limit on constant evaluation (docs/compile-time.md). A list_view is
/// made from an array, or from anything with data() and size(): a vector, a span. A std::span can be made from it.
template <class T>
class list_view {
 public:
  constexpr list_view() = default;
  constexpr list_view(T* data, std::size_t size) : data_(data), size_(size) {}
  template <std::size_t N>
  constexpr list_view(T (&array)[N]) : data_(array), size_(N) {}
  template <class List>
    requires requires(List& list) {
      static_cast<T*>(list.data());
      static_cast<std::size_t>(list.size());
    }
  constexpr list_view(List&& list) : data_(list.data()), size_(list.size()) {}

  constexpr T& operator[](std::size_t i) const { return data_[i]; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() const { return data_; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }

  constexpr T& front() const { return data_[0]; }
  constexpr T& back() const { return data_[size_ - 1]; }

  constexpr list_view first(std::size_t count) const { return {data_, count}; }
  /// The elements from `start` to the last.
  constexpr list_view subspan(std::size_t start) const { return {data_ + start, size_ - start}; }
  constexpr list_view subspan(std::size_t start, std::size_t count) const { return {data_ + start, count}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace collage::inline v0
