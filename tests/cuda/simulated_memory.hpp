// What the simulated driver and the simulated cuBLAS share: device addresses that the host cannot touch, and work that is done when
// somebody waits for it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace simulated {

constexpr std::uintptr_t device_bit = std::uintptr_t{1} << 62;  // no address of a process has it

/// Where the bytes of a device address really are.
template <class T>
T* real(const void* device) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(device) ^ device_bit);
}

}  // namespace simulated

/// Asks a stream for some work.
using simulated_ask = void (*)(CUstream, const std::function<void()>&);
/// Whether so many bytes are memory that the driver gave out.
using simulated_is_given = bool (*)(const void*, std::size_t);
