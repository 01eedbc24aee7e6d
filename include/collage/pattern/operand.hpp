// Operands of a kernel, with their element type: made when a kernel is built, used in each call.
#pragma once

#include <collage/detail/sentence.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/fwd.hpp>
#include <collage/graph/view.hpp>
#include <collage/pattern/match_record.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// An argument of a kernel: `left(call)` is where its elements lie. Made by `m.in<"left", float>()`; as small as a number.
template <class T>
class kernel_input {
 public:
  /// No argument: null in every call.
  constexpr kernel_input() = default;
  /// Argument `index` of the kernel.
  constexpr explicit kernel_input(std::uint32_t index) : index_(index) {}

  /// Null where the operand is absent, and where the kernel said that it does not read it and nothing is given to it.
  template <std::same_as<kernel_call> Call>
  const T* operator()(const Call& call) const {
    return index_ == match_record::nothing ? nullptr : static_cast<const T*>(call.in[index_]);
  }
  /// Which argument it is, for `kernel::does_not_read` and `kernel::may_write_over`.
  constexpr std::size_t index() const { return index_; }
  /// Whether the kernel has such an argument.
  constexpr bool present() const { return index_ != match_record::nothing; }

 private:
  std::uint32_t index_ = match_record::nothing;
};

/// An output of a kernel: `y(call)` is where its elements go. Made by `m.out<float>()`.
template <class T>
class kernel_output {
 public:
  /// No output: null in every call.
  constexpr kernel_output() = default;
  /// Output `index` of the kernel, an index into kernel_call::out.
  constexpr explicit kernel_output(std::uint32_t index) : index_(index) {}

  /// Null where nothing reads this output of several.
  template <std::same_as<kernel_call> Call>
  T* operator()(const Call& call) const {
    return index_ == match_record::nothing ? nullptr : static_cast<T*>(call.out[index_]);
  }
  /// Which output it is, an index into kernel_call::out.
  constexpr std::size_t index() const { return index_; }

 private:
  std::uint32_t index_ = match_record::nothing;
};

namespace detail {

/// Errors: `unsupported` where a value has another element type than a kernel takes it for. Any bytes can be read as bytes.
template <class T>
constexpr void expect_element(const char* pattern, const char* what, dtype type) {
  if constexpr (!std::same_as<T, std::byte>) {
    if (type == dtype_of<T>) return;
    sentence text;
    text << what << " is " << name_of(type) << ", but the kernel reads it as " << name_of(dtype_of<T>);
    throw error(error_kind::unsupported, text.text, pattern, "check the element type in `accepts`");
  }
}

template <class T>
constexpr kernel_input<T> input_of(const char* pattern, const char* what, const graph_view& graph,
                                   const match_record& record, std::uint32_t value) {
  if (value == match_record::nothing) return {};
  expect_element<T>(pattern, what, graph.values[value].type.type);
  return kernel_input<T>(record.index_of(value));
}

/// Where an output of a match stands in kernel_call::out: those of the root's operator stand there all, read or not.
constexpr std::uint32_t place_of_output(const graph_view& graph, const match_record& record, std::uint32_t value) {
  const std::int32_t root = graph.values[record.output[0]].producer;
  const node_record& node = graph.nodes[static_cast<std::size_t>(root)];
  if (graph.values[value].producer == root) return value - node.first_output;
  std::uint32_t place = node.outputs;
  for (const std::uint32_t v : record.output_list()) {
    if (v == value) return place;
    if (graph.values[v].producer != root) ++place;
  }
  return match_record::nothing;
}
template <class T>
constexpr kernel_output<T> output_of(const char* pattern, const graph_view& graph, const match_record& record,
                                     std::uint32_t value) {
  if (value == match_record::nothing) return {};
  expect_element<T>(pattern, "its output", graph.values[value].type.type);
  return kernel_output<T>(place_of_output(graph, record, value));
}

}  // namespace detail
}  // namespace collage::inline v0
