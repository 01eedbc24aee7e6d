// A driver of CUDA for machines without a device: as much of libcuda.so.1 as collage::cuda calls. Work is done when somebody
// waits for it, device memory has addresses that the host cannot touch, and calls without a context fail.
//
// The environment variable COLLAGE_SIMULATED_CUDA makes it "no device", an "old driver", a "driver of 12.4" or an "old device".
#include "simulated_memory.hpp"

#include <cuda.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// As cuda.h declares them.
#define COLLAGE_SIMULATED extern "C" __attribute__((visibility("default"))) CUresult

namespace {

constexpr std::size_t capacity = std::size_t{256} << 20;

bool is(const char* mode) {
  const char* const said = std::getenv("COLLAGE_SIMULATED_CUDA");
  return said != nullptr && std::string(said) == mode;
}

struct stream {
  std::vector<std::function<void()>> asked;
  void finish() {
    for (const auto& work : std::exchange(asked, {})) work();
  }
};
stream& of(CUstream s) { return *reinterpret_cast<stream*>(s); }

std::mutex mutex;
std::map<std::uintptr_t, std::size_t>& given() {
  static std::map<std::uintptr_t, std::size_t> list;
  return list;
}
std::size_t used = 0;
int the_context = 0;
thread_local int depth = 0;  // of contexts on this thread's stack

bool is_given(std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  auto at = given().upper_bound(address);
  if (at == given().begin()) return false;
  --at;
  return address >= at->first && address + bytes <= at->first + at->second;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void collage_simulated_ask(CUstream s,
                                                                             const std::function<void()>& work) {
  of(s).asked.push_back(work);
}
extern "C" __attribute__((visibility("default"))) bool collage_simulated_is_given(const void* memory,
                                                                                  std::size_t bytes) {
  return is_given(reinterpret_cast<std::uintptr_t>(memory), bytes);
}

COLLAGE_SIMULATED cuInit(unsigned int) { return is("no device") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS; }
COLLAGE_SIMULATED cuDriverGetVersion(int* version) {
  *version = is("old driver") ? 11040 : is("driver of 12.4") ? 12040 : 13000;
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuDeviceGet(CUdevice* device, int) {
  *device = 0;
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "a simulated device", static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = is("old device") ? 6 : 9;
  else if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) *value = 0;
  else return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&the_context);
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuCtxPushCurrent(CUcontext context) {
  if (context != reinterpret_cast<CUcontext>(&the_context)) return CUDA_ERROR_INVALID_CONTEXT;
  ++depth;
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuCtxPopCurrent(CUcontext* context) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --depth;
  *context = reinterpret_cast<CUcontext>(&the_context);
  return CUDA_SUCCESS;
}

COLLAGE_SIMULATED cuMemAlloc(CUdeviceptr* memory, std::size_t bytes) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(mutex);
  if (bytes > capacity - used) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const real = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (real == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(real, 0xEE, bytes);
  used += bytes;
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(real) ^ simulated::device_bit;
  given().emplace(address, bytes);
  *memory = address;
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuMemFree(CUdeviceptr memory) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(mutex);
  const auto known = given().find(memory);
  if (known == given().end()) return CUDA_ERROR_INVALID_VALUE;
  used -= known->second;
  given().erase(known);
  std::free(simulated::real<void>(reinterpret_cast<void*>(memory)));
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuMemGetInfo(std::size_t* free, std::size_t* all) {
  const std::lock_guard lock(mutex);
  *free = capacity - used;
  *all = capacity;
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuPointerGetAttribute(void*, CUpointer_attribute, CUdeviceptr) {
  return CUDA_ERROR_INVALID_VALUE;  // as of memory that the driver does not know
}

// As of pageable memory: what is copied to the device has been read when the call returns, and what is copied from it is there
// when the stream has been waited for.
COLLAGE_SIMULATED cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream s) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (!is_given(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto* const first = static_cast<const std::byte*>(from);
  of(s).asked.push_back([to, staged = std::vector<std::byte>(first, first + bytes)] {
    std::memcpy(simulated::real<void>(reinterpret_cast<void*>(to)), staged.data(), staged.size());
  });
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream s) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (!is_given(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  of(s).asked.push_back([=] { std::memcpy(to, simulated::real<void>(reinterpret_cast<void*>(from)), bytes); });
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream s) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (!is_given(to, bytes) || !is_given(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  of(s).asked.push_back([=] {
    std::memcpy(simulated::real<void>(reinterpret_cast<void*>(to)),
                simulated::real<void>(reinterpret_cast<void*>(from)), bytes);
  });
  return CUDA_SUCCESS;
}

COLLAGE_SIMULATED cuStreamCreate(CUstream* s, unsigned int) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *s = reinterpret_cast<CUstream>(new stream);
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuStreamDestroy(CUstream s) {
  of(s).finish();
  delete &of(s);
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuStreamSynchronize(CUstream s) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  of(s).finish();
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuGetErrorName(CUresult code, const char** name) {
  *name = code == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR";
  return CUDA_SUCCESS;
}
COLLAGE_SIMULATED cuGetErrorString(CUresult, const char** text) {
  *text = "simulated";
  return CUDA_SUCCESS;
}
