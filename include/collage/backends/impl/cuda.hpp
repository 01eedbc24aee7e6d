// The definitions of collage/backends/cuda.hpp. Included by exactly one file of a program: src/cuda.cpp, which is the target
// collage::cuda, or one of the user's own. Needs the headers of CUDA, and links only the dynamic loader.
#pragma once

#include <collage/backends/cuda.hpp>
#include <collage/backends/impl/cuda_driver.hpp>
#include <collage/error.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/space.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace collage::inline v0::detail::host {
namespace {

inline CUdeviceptr device_pointer(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

inline std::string megabytes(std::size_t bytes) { return std::to_string((bytes + (1U << 20) - 1) >> 20) + " MB"; }

/// Whether the device reads the host's memory there by itself, later: the copy has not been made when the call returns.
inline bool is_pinned(const cuda_driver& driver, const void* memory) {
  unsigned int type = 0;
  return driver.attribute_of(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_pointer(memory)) == CUDA_SUCCESS &&
         type != 0;
}

struct cuda_copy {
  std::size_t bytes = 0;
  bool to_device = true;

  void operator()(const kernel_call& call) const {
    if (to_device) copy_to_cuda(call.out[0], call.in[0], bytes);
    else copy_from_cuda(call.out[0], call.in[0], bytes);
  }
};

}  // namespace
}  // namespace collage::inline v0::detail::host

namespace collage::inline v0 {

namespace detail {

CUstream stream_of_this_thread() {
  thread_local const host::cuda_stream stream(host::use_cuda());
  return stream.get();
}

void* allocate_cuda(std::size_t bytes) {
  const host::cuda_driver& driver = host::use_cuda();
  const host::cuda_scope scope(driver);
  CUdeviceptr memory = 0;
  const CUresult code = driver.allocate(&memory, bytes);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free = 0, all = 0;
    (void)driver.memory_info(&free, &all);
    throw error(error_kind::environment,
                "out of memory: " + host::megabytes(bytes) + " are needed in one block; " + host::megabytes(free) +
                    " of the device's " + host::megabytes(all) + " are free",
                "memory space cuda", "end other programs on the device, or place a smaller network");
  }
  host::check_cuda(driver, code, "allocating memory");
  return reinterpret_cast<void*>(memory);
}

void release_cuda(void* memory, std::size_t) {
  if (memory == nullptr) return;
  const host::cuda_driver& driver = host::the_cuda_driver();
  host::release_on_device(driver, [&] { (void)driver.release(host::device_pointer(memory)); });
}

void copy_in_cuda(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const host::cuda_driver& driver = host::use_cuda();
  const host::cuda_scope scope(driver);
  host::check_cuda(
      driver,
      driver.copy_in_device(host::device_pointer(to), host::device_pointer(from), bytes, stream_of_this_thread()),
      "copying on the device");
}

void copy_to_cuda(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const host::cuda_driver& driver = host::use_cuda();
  const host::cuda_scope scope(driver);
  host::check_cuda(driver, driver.copy_to_device(host::device_pointer(to), from, bytes, stream_of_this_thread()),
                   "copying to the device");
  if (host::is_pinned(driver, from)) finish_cuda();
}

void copy_from_cuda(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const host::cuda_driver& driver = host::use_cuda();
  const host::cuda_scope scope(driver);
  host::check_cuda(driver, driver.copy_to_host(to, host::device_pointer(from), bytes, stream_of_this_thread()),
                   "copying from the device");
  host::check_cuda(driver, driver.finish_stream(stream_of_this_thread()), "copying from the device");
}

void finish_cuda() {
  const host::cuda_driver& driver = host::use_cuda();
  const host::cuda_scope scope(driver);
  host::check_cuda(driver, driver.finish_stream(stream_of_this_thread()), "waiting for the device");
}

}  // namespace detail

void cuda::layouts(const any_match& m, std::size_t choice, value_forms& to) {
  to.set(choice == 0 ? m.output() : m.arguments()[0], form(plain, cuda_space));
}

kernel cuda::build(const any_match& m, build_context& context) {
  (void)detail::host::use_cuda();
  const bool to_device = context.choice() == 0;
  return {to_device ? "copy to the device" : "copy to the host",
          detail::host::cuda_copy{m.type_of(m.output()).bytes(), to_device}};
}

probe_result cuda::probe() {
  const detail::host::cuda_driver& driver = detail::host::the_cuda_driver();
  return {.available = driver.reason.empty(),
          .version = driver.version.c_str(),
          .details = driver.details.c_str(),
          .reason = driver.reason.c_str()};
}

}  // namespace collage::inline v0
