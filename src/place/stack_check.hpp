// Checks that the calling thread has enough stack for placing.
#pragma once

#include <pthread.h>

#include <collage/error.hpp>
#include <cstddef>
#include <string>

namespace collage::inline v0 {

namespace detail {
namespace {

/// Throws if little stack is left: placing would end the process. On a stack that the thread did not get from the system, such as
/// that of a coroutine, nothing is known.
inline void check_stack() {
  constexpr std::size_t least = std::size_t{112} * 1024;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low = nullptr;
  std::size_t size = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &low, &size) == 0;
  const auto* const here = reinterpret_cast<const std::byte*>(&attributes);
  const auto* const end = static_cast<const std::byte*>(low);
  pthread_attr_destroy(&attributes);
  if (!is_known || here < end || here >= end + size || static_cast<std::size_t>(here - end) >= least) return;
  throw error(error_kind::invalid_argument,
              "the calling thread has " + std::to_string((here - end) / 1024) +
                  " KiB of stack left, and placing needs " + std::to_string(least / 1024),
              "place", "call it in a thread with a stack of at least 128 KiB");
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
