// Networks from ONNX models.
#include "networks.hpp"
#include "states.hpp"

#include <collage/error.hpp>

#if COLLAGE_HAS_ONNX
#include <collage/io/onnx.hpp>
#include <collage/run/tensor.hpp>
#include <collage/shape.hpp>

#include <cstring>
#endif

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace c_interface {

namespace c = collage;

namespace {

/// `text` with each `from` replaced.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

void refuse_model(const std::string& name) {
  throw c::error(c::error_kind::unsupported, "this library was built without ONNX", name,
                 "install libonnx-dev and libprotobuf-dev and build it again");
}

std::string our_words(std::string text) {
  text = replaced(replaced(std::move(text), "--shape ", "shapes "), "--bind ", "values ");
  return replaced(std::move(text), "with --bind", "by values");
}

namespace {

#if COLLAGE_HAS_ONNX

/// Throws if an input is in a list already.
template <class List>
void check_new(const call& here, const List& list, const std::string& input) {
  for (const auto& before : list)
    if (before.input == input) here.misuse("input " + input + " is given twice", "give it once");
}

/// A copy. It is aligned even if the caller's memory is not.
c::tensor tensor_of(const call& here, const collage_input_value& from) {
  if (collage_dtype_size(from.dtype) == 0)
    here.misuse("the value of input " + std::string(from.input) + " has the element type " +
                    std::to_string(from.dtype) + ", which does not exist",
                "set dtype to a constant of collage_dtype, such as COLLAGE_DTYPE_F32");
  const c::tensor_type type{static_cast<c::dtype>(from.dtype),
                            shape_of(here, "input " + std::string(from.input), from.extents, from.rank)};
  if (const std::size_t expected = checked_bytes(type); from.bytes != expected)
    here.misuse("the value of input " + std::string(from.input) + " has " + std::to_string(from.bytes) +
                    " bytes, but its elements are " + std::to_string(expected),
                "make extents, dtype and bytes agree");
  here.check_list(from.data, from.bytes, "data");
  c::tensor copy(type);
  if (from.bytes != 0) std::memcpy(copy.data(), from.data, from.bytes);
  return copy;
}

}  // namespace

model_inputs model_inputs_of(const call& here, const collage_network_options& given) {
  here.check_list(given.shapes, given.shape_count, "shapes");
  here.check_list(given.values, given.value_count, "values");
  model_inputs made;
  for (std::size_t i = 0; i < given.shape_count; ++i) {
    const collage_input_shape& s = given.shapes[i];
    const std::string input = here.text(s.input, "the name of an input");
    check_new(here, made.how.shapes, input);
    made.how.shapes.push_back({input, shape_of(here, "input " + input, s.extents, s.rank)});
  }
  made.contents.reserve(given.value_count);
  for (std::size_t i = 0; i < given.value_count; ++i) {
    const std::string input = here.text(given.values[i].input, "the name of an input");
    check_new(here, made.how.values, input);
    made.contents.push_back(tensor_of(here, given.values[i]));
    made.how.values.push_back({input, made.contents.back()});
  }
  return made;
}

namespace {

/// Loads a model under the name that the user knows it by. `read` reads it.
template <class Read>
collage_network* load(const call& here, const std::string& name, const collage_network_options& given, Read read) {
  const model_inputs inputs = model_inputs_of(here, given);
  c::onnx::load_report report;
  c::graph loaded = in_our_words([&] { return read(inputs.how, report); });
  return new_network(std::move(loaded), name, {report.opset, report.producer, report.metadata, report.notes},
                     given.requantise != 0);
}

/// Loads a file.
collage_network* load(const call& here, const std::string& path, const collage_network_options& given) {
  return load(here, path, given, [&](const c::onnx::load_options& how, c::onnx::load_report& report) {
    return c::onnx::load(path, how, &report);
  });
}

/// Loads the contents of a file.
collage_network* load_bytes(const call& here, const void* model, std::size_t bytes,
                            const collage_network_options& given) {
  const std::string name = "model in memory";
  return load(here, name, given, [&](const c::onnx::load_options& how, c::onnx::load_report& report) {
    return c::onnx::load({static_cast<const std::byte*>(model), bytes}, name, how, &report);
  });
}

#else

collage_network* load(const call&, const std::string& name, const collage_network_options&) { refuse_model(name); }
collage_network* load_bytes(const call&, const void*, std::size_t, const collage_network_options&) {
  refuse_model("model in memory");
}

#endif

}  // namespace
}  // namespace c_interface

using c_interface::call;
using c_interface::guarded;

collage_status collage_network_from_file(const char* path, const collage_network_options* options,
                                         collage_network** network) noexcept {
  return guarded(__func__, [&](const call& here) {
    collage_network*& to = here.target(network, "network");
    const std::string file = here.text(path, "path");
    const auto given = here.options(options, "collage_network_options", c_interface::oldest_network_options);
    to = c_interface::load(here, file, given);
  });
}

collage_status collage_network_from_memory(const void* model, std::size_t bytes, const collage_network_options* options,
                                           collage_network** network) noexcept {
  return guarded(__func__, [&](const call& here) {
    collage_network*& to = here.target(network, "network");
    if (model == nullptr) here.misuse("model is NULL", "give the bytes of an ONNX file");
    const auto given = here.options(options, "collage_network_options", c_interface::oldest_network_options);
    to = c_interface::load_bytes(here, model, bytes, given);
  });
}
