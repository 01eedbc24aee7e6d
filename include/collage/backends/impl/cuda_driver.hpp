// The CUDA driver, opened at run time, so that a program with this backend also starts on machines without the driver.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <collage/error.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace collage::inline v0::detail::host {
namespace {

/// The functions that this adapter calls, the first device's context, and the driver's description of itself. Types are those of
/// cuda.h. Each function is looked up by the versioned name that cuda.h gives it, such as cuMemAlloc_v2.
struct cuda_driver {
  decltype(&cuMemAlloc) allocate = nullptr;
  decltype(&cuMemFree) release = nullptr;
  decltype(&cuMemGetInfo) memory_info = nullptr;
  decltype(&cuMemcpyHtoDAsync) copy_to_device = nullptr;
  decltype(&cuMemcpyDtoHAsync) copy_to_host = nullptr;
  decltype(&cuMemcpyDtoDAsync) copy_in_device = nullptr;
  decltype(&cuPointerGetAttribute) attribute_of = nullptr;
  decltype(&cuStreamCreate) create_stream = nullptr;
  decltype(&cuStreamDestroy) destroy_stream = nullptr;
  decltype(&cuStreamSynchronize) finish_stream = nullptr;
  decltype(&cuCtxPushCurrent) push_context = nullptr;
  decltype(&cuCtxPopCurrent) pop_context = nullptr;
  decltype(&cuGetErrorName) error_name = nullptr;
  decltype(&cuGetErrorString) error_text = nullptr;

  CUcontext context = nullptr;  ///< the device's primary context, which the CUDA runtime API uses as well
  int capability = 0;           ///< compute capability: 90 for 9.0
  int cuda = 0;                 ///< the version of CUDA that the driver is for: 12040 for 12.4
  std::string version, details;
  std::string reason;  ///< why the driver is not available; empty if it is
};

inline std::string text_of(const cuda_driver& driver, CUresult code) {
  const char *name = nullptr, *text = nullptr;
  if (driver.error_name == nullptr || driver.error_name(code, &name) != CUDA_SUCCESS || name == nullptr)
    return "error " + std::to_string(static_cast<int>(code));
  if (driver.error_text == nullptr || driver.error_text(code, &text) != CUDA_SUCCESS || text == nullptr) return name;
  return std::string(name) + ", " + text;
}

/// "12.4" from 12040.
inline std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

inline cuda_driver open_cuda_driver() {
  cuda_driver driver;
  const char* const asked = std::getenv("COLLAGE_CUDA_DRIVER");
  const std::string file = asked != nullptr && *asked != '\0' ? asked : "libcuda.so.1";
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    driver.reason = "NVIDIA's driver could not be opened as " + file +
                    ": install it, or set COLLAGE_CUDA_DRIVER to the file of its libcuda.so.1";
    return driver;
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr && driver.reason.empty())
      driver.reason = file + " has no " + name + ": update NVIDIA's driver to one for CUDA 12 or newer";
  };
  decltype(&cuInit) initialise = nullptr;
  decltype(&cuDriverGetVersion) get_version = nullptr;
  decltype(&cuDeviceGetCount) count_devices = nullptr;
  decltype(&cuDeviceGet) get_device = nullptr;
  decltype(&cuDeviceGetName) get_name = nullptr;
  decltype(&cuDeviceGetAttribute) get_attribute = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain_context = nullptr;
  find("cuInit", initialise);
  find("cuDriverGetVersion", get_version);
  find("cuDeviceGetCount", count_devices);
  find("cuDeviceGet", get_device);
  find("cuDeviceGetName", get_name);
  find("cuDeviceGetAttribute", get_attribute);
  find("cuDevicePrimaryCtxRetain", retain_context);
  find("cuMemAlloc_v2", driver.allocate);
  find("cuMemFree_v2", driver.release);
  find("cuMemGetInfo_v2", driver.memory_info);
  find("cuMemcpyHtoDAsync_v2", driver.copy_to_device);
  find("cuMemcpyDtoHAsync_v2", driver.copy_to_host);
  find("cuMemcpyDtoDAsync_v2", driver.copy_in_device);
  find("cuPointerGetAttribute", driver.attribute_of);
  find("cuStreamCreate", driver.create_stream);
  find("cuStreamDestroy_v2", driver.destroy_stream);
  find("cuStreamSynchronize", driver.finish_stream);
  find("cuCtxPushCurrent_v2", driver.push_context);
  find("cuCtxPopCurrent_v2", driver.pop_context);
  find("cuGetErrorName", driver.error_name);
  find("cuGetErrorString", driver.error_text);
  if (!driver.reason.empty()) return driver;

  const auto works = [&](CUresult code, const char* what) {
    if (code != CUDA_SUCCESS && driver.reason.empty())
      driver.reason = std::string("NVIDIA's driver ") + what + " (" + text_of(driver, code) +
                      "): check whether this user can run nvidia-smi";
    return code == CUDA_SUCCESS;
  };
  int version = 0, count = 0;
  if (!works(get_version(&version), "does not report its version")) return driver;
  constexpr int least = 12000;
  if (version < least) {
    driver.reason = "NVIDIA's driver is for CUDA " + cuda_version(version) + ", and " + cuda_version(least) +
                    " is needed: update it";
    return driver;
  }
  const CUresult began = initialise(0);
  if (began == CUDA_ERROR_NO_DEVICE || (began == CUDA_SUCCESS && count_devices(&count) == CUDA_SUCCESS && count == 0)) {
    driver.reason = "the driver sees no CUDA device: there is none, or CUDA_VISIBLE_DEVICES hides it";
    return driver;
  }
  CUdevice device = 0;
  int major = 0, minor = 0;
  char name[256] = {};
  if (works(began, "does not start") && works(get_device(&device, 0), "does not open the first device") &&
      works(get_name(name, sizeof name, device), "does not name the device") &&
      works(get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
            "does not describe the device") &&
      works(get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
            "does not describe the device") &&
      works(retain_context(&driver.context, device), "makes no context on the device")) {
    driver.version = cuda_version(version);
    driver.cuda = version;
    driver.capability = 10 * major + minor;
    driver.details = std::string(name) + ", compute capability " + std::to_string(major) + "." + std::to_string(minor);
  }
  return driver;
}

/// Opened at the first call and never closed: a program may release device memory as the last thing that it does.
inline const cuda_driver& the_cuda_driver() {
  static const cuda_driver& driver = *new cuda_driver(open_cuda_driver());
  return driver;
}

/// The driver, for callers that cannot do without it. Errors: `environment`, with the reason why it is not available.
inline const cuda_driver& use_cuda() {
  const cuda_driver& driver = the_cuda_driver();
  if (!driver.reason.empty()) throw error(error_kind::environment, driver.reason, "cuda");
  return driver;
}

/// Throws if the driver reports an error. A kernel's error may show in a later call, so the message names earlier work too.
inline void check_cuda(const cuda_driver& driver, CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  throw error(error_kind::failure,
              std::string(what) + " failed (" + text_of(driver, code) + "), or an earlier asynchronous operation did",
              "cuda", "if the device itself failed, restart the program");
}

/// Makes the device's context the current one of this thread, until the scope ends. The caller's context stays below it.
class cuda_scope {
 public:
  explicit cuda_scope(const cuda_driver& driver) : driver_(driver) {
    check_cuda(driver, driver.push_context(driver.context), "using the device");
  }
  cuda_scope(const cuda_scope&) = delete;
  cuda_scope& operator=(const cuda_scope&) = delete;
  ~cuda_scope() {
    CUcontext old = nullptr;
    (void)driver_.pop_context(&old);
  }

 private:
  const cuda_driver& driver_;
};

/// Releases something on the device, for destructors. Does nothing if the driver has shut down already.
template <class Release>
void release_on_device(const cuda_driver& driver, Release release) {
  if (driver.push_context(driver.context) != CUDA_SUCCESS) return;
  release();
  CUcontext old = nullptr;
  (void)driver.pop_context(&old);
}

/// A stream of one thread. It does not wait for the default stream, which other code may use.
class cuda_stream {
 public:
  explicit cuda_stream(const cuda_driver& driver) : driver_(driver) {
    const cuda_scope scope(driver);
    check_cuda(driver, driver.create_stream(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
  }
  cuda_stream(const cuda_stream&) = delete;
  cuda_stream& operator=(const cuda_stream&) = delete;
  ~cuda_stream() {
    release_on_device(driver_, [this] { (void)driver_.destroy_stream(stream_); });
  }
  CUstream get() const { return stream_; }

 private:
  const cuda_driver& driver_;
  CUstream stream_ = nullptr;
};

}  // namespace
}  // namespace collage::inline v0::detail::host

namespace collage::inline v0::detail {

/// The stream that takes all work of the calling thread, made at the thread's first call. All adapters of CUDA share it, whichever
/// files they are compiled in (backends/impl/cuda.hpp).
CUstream stream_of_this_thread();

}  // namespace collage::inline v0::detail
