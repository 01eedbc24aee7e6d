// CUDA: the memory of a device, and copies between it and the host's. Backends whose kernels run there stand on it.
//
// Declarations. The definitions are in collage/backends/impl/cuda.hpp, compiled in exactly one file (by default the target
// collage::cuda), which opens the driver while the program runs.
#pragma once

#include <collage/backend.hpp>
#include <collage/backends/any_match.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/pattern/single.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/space.hpp>
#include <cstddef>

namespace collage::inline v0 {

namespace detail {

void* allocate_cuda(std::size_t bytes);
void release_cuda(void* memory, std::size_t bytes);
void copy_in_cuda(void* to, const void* from, std::size_t bytes);
void copy_to_cuda(void* to, const void* from, std::size_t bytes);
void copy_from_cuda(void* to, const void* from, std::size_t bytes);
void finish_cuda();

}  // namespace detail

/// The memory of the first device that the driver shows (CUDA_VISIBLE_DEVICES chooses). Each thread has a stream of its own,
/// in which it asks for everything. Errors: what the driver says, in one sentence; out of memory with what is free.
inline constexpr memory_space cuda_space{
    .id = 1,
    .name = "cuda",
    .alignment = 256,
    .allocate = detail::allocate_cuda,
    .release = detail::release_cuda,
    .copy = detail::copy_in_cuda,
    .from_host = detail::copy_to_cuda,
    .to_host = detail::copy_from_cuda,
    .finish = detail::finish_cuda,
};

/// Copies between the host and the device: a conversion with a cost like any other, so that placement may mix processor and GPU.
/// Opens the driver that the environment variable COLLAGE_CUDA_DRIVER names, else libcuda.so.1.
struct cuda : backend<"cuda"> {
  using patterns = collage::patterns<single<ops::convert_layout>>;
  static constexpr const memory_space* space = &cuda_space;

  /// To the device, and back.
  static constexpr std::size_t choices(const any_match&) { return 2; }
  static void layouts(const any_match& m, std::size_t choice, value_forms& to);
  static kernel build(const any_match& m, build_context& context);
  static probe_result probe();
};

}  // namespace collage::inline v0
