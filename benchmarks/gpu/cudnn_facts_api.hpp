// For cudnn_facts: cuDNN's backend API, whose functions are found while the program runs, and its descriptors.
#pragma once

#include "device.hpp"

#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace facts {

/// The calls of cuDNN that the program uses; empty before `open`.
struct cudnn_library {
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetErrorString) error_text = nullptr;
  decltype(&cudnnGetLastErrorString) last_error = nullptr;
  decltype(&cudnnCreate) make_handle = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) make = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendSetAttribute) set = nullptr;
  decltype(&cudnnBackendGetAttribute) get = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;

  /// Opens the library in `folder`, or the one that the loader finds. Errors: std::runtime_error.
  void open(const std::string& folder) {
    std::string name = "libcudnn.so.9";
    if (!folder.empty()) {
      preload_all(folder);
      name = (std::filesystem::path(folder) / name).string();
    }
    const gpu::library& file = file_.emplace(std::vector{name}, "install cuDNN 9, or name its folder with --cudnn");
    file.find("cudnnGetVersion", version);
    file.find("cudnnGetErrorString", error_text);
    file.find("cudnnGetLastErrorString", last_error);
    file.find("cudnnCreate", make_handle);
    file.find("cudnnSetStream", set_stream);
    file.find("cudnnBackendCreateDescriptor", make);
    file.find("cudnnBackendDestroyDescriptor", destroy);
    file.find("cudnnBackendFinalize", finalize);
    file.find("cudnnBackendSetAttribute", set);
    file.find("cudnnBackendGetAttribute", get);
    file.find("cudnnBackendExecute", execute);
  }

  void check(cudnnStatus_t status, const char* what) const {
    if (status == CUDNN_STATUS_SUCCESS) return;
    std::array<char, 2048> detail{};
    last_error(detail.data(), detail.size() - 1);
    throw std::runtime_error(std::string(what) + ": " + error_text(status) + ": " + detail.data());
  }

 private:
  /// Opens what starts with `name` in `folder` for all; what cannot be opened here is left to cuDNN.
  static void preload(const std::filesystem::path& folder, const std::string& name) {
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator(folder, ignored))
      if (file.path().filename().string().starts_with(name + ".so."))
        if (dlopen(file.path().c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) std::printf("# preload: %s\n", dlerror());
  }
  /// cuDNN's parts, and what they need of CUDA, in the folders of a toolkit and of wheels for Python.
  static void preload_all(const std::filesystem::path& in) {
    for (const auto& near : {in, in / "../../cu13/lib", in / "../../cublas/lib", in / "../../cuda_nvrtc/lib"})
      for (const char* name : {"libnvrtc-builtins", "libnvrtc", "libcublasLt", "libcublas"}) preload(near, name);
    for (const char* name : {"libcudnn_graph", "libcudnn_ops", "libcudnn_engines_runtime_compiled",
                             "libcudnn_engines_precompiled", "libcudnn_heuristic", "libcudnn_cnn", "libcudnn_adv"})
      preload(in, name);
  }

  std::optional<gpu::library> file_;
};
inline cudnn_library dnn;

// The type of an attribute follows from the type of its value.
template <typename T>
constexpr cudnnBackendAttributeType_t type_of = T::has_no_attribute_type;
#define FACTS_TYPE(cpp, name) \
  template <>                 \
  inline constexpr cudnnBackendAttributeType_t type_of<cpp> = name;
FACTS_TYPE(cudnnHandle_t, CUDNN_TYPE_HANDLE)
FACTS_TYPE(cudnnDataType_t, CUDNN_TYPE_DATA_TYPE)
FACTS_TYPE(bool, CUDNN_TYPE_BOOLEAN)
FACTS_TYPE(std::int64_t, CUDNN_TYPE_INT64)
FACTS_TYPE(std::int32_t, CUDNN_TYPE_INT32)
FACTS_TYPE(float, CUDNN_TYPE_FLOAT)
FACTS_TYPE(double, CUDNN_TYPE_DOUBLE)
FACTS_TYPE(char, CUDNN_TYPE_CHAR)
FACTS_TYPE(void*, CUDNN_TYPE_VOID_PTR)
FACTS_TYPE(cudnnConvolutionMode_t, CUDNN_TYPE_CONVOLUTION_MODE)
FACTS_TYPE(cudnnBackendHeurMode_t, CUDNN_TYPE_HEUR_MODE)
FACTS_TYPE(cudnnBackendKnobType_t, CUDNN_TYPE_KNOB_TYPE)
FACTS_TYPE(cudnnNanPropagation_t, CUDNN_TYPE_NAN_PROPOGATION)
FACTS_TYPE(cudnnBackendNumericalNote_t, CUDNN_TYPE_NUMERICAL_NOTE)
FACTS_TYPE(cudnnBackendBehaviorNote_t, CUDNN_TYPE_BEHAVIOR_NOTE)
FACTS_TYPE(cudnnPointwiseMode_t, CUDNN_TYPE_POINTWISE_MODE)
FACTS_TYPE(cudnnReduceTensorOp_t, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE)
FACTS_TYPE(cudnnResampleMode_t, CUDNN_TYPE_RESAMPLE_MODE)
FACTS_TYPE(cudnnPaddingMode_t, CUDNN_TYPE_PADDING_MODE)
FACTS_TYPE(cudnnFraction_t, CUDNN_TYPE_FRACTION)
FACTS_TYPE(cudnnBackendNormMode_t, CUDNN_TYPE_NORM_MODE)
FACTS_TYPE(cudnnBackendNormFwdPhase_t, CUDNN_TYPE_NORM_FWD_PHASE)

/// One descriptor of the backend API, destroyed with the object.
class descriptor {
 public:
  explicit descriptor(cudnnBackendDescriptorType_t kind) { dnn.check(dnn.make(kind, &raw_), "create a descriptor"); }
  descriptor(descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~descriptor() {
    if (raw_ != nullptr) dnn.destroy(raw_);
  }

  template <typename T>
  descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    put(name, type_of<T>, 1, &value);
    return *this;
  }
  template <typename T>
  descriptor& set(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    put(name, type_of<T>, values.size(), values.data());
    return *this;
  }
  descriptor& set(cudnnBackendAttributeName_t name, const descriptor& value) {
    put(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
    return *this;
  }
  descriptor& set(cudnnBackendAttributeName_t name, const std::vector<descriptor>& values) {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const descriptor& value : values) raw.push_back(value.raw_);
    put(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
    return *this;
  }
  descriptor& finalize(const char* what) {
    dnn.check(dnn.finalize(raw_), what);
    return *this;
  }

  std::int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    std::int64_t found = 0;
    dnn.check(dnn.get(raw_, name, type, 0, &found, nullptr), "count an attribute");
    return found;
  }
  template <typename T>
  std::vector<T> get(cudnnBackendAttributeName_t name, std::size_t most) const {
    std::vector<T> values(most);
    std::int64_t found = 0;
    const auto asked = static_cast<std::int64_t>(most);
    dnn.check(dnn.get(raw_, name, type_of<T>, asked, &found, values.data()), "get an attribute");
    values.resize(std::min(most, static_cast<std::size_t>(std::max<std::int64_t>(found, 0))));
    return values;
  }
  /// cuDNN fills descriptors made beforehand.
  std::vector<descriptor> get(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t kind,
                              std::int64_t most) const {
    std::vector<descriptor> made;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (std::int64_t i = 0; i < most; ++i) raw.push_back(made.emplace_back(kind).raw_);
    std::int64_t found = 0;
    dnn.check(dnn.get(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &found, raw.data()), "get descriptors");
    while (static_cast<std::int64_t>(made.size()) > found) made.pop_back();
    return made;
  }
  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  void put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t n, const void* values) {
    const cudnnStatus_t status = dnn.set(raw_, name, type, static_cast<std::int64_t>(n), values);
    if (status != CUDNN_STATUS_SUCCESS) dnn.check(status, ("set attribute " + std::to_string(name)).c_str());
  }

  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace facts
