// Samples: inputs of a network on which something is measured.
#pragma once

#include <collage/run/tensor.hpp>
#include <cstddef>
#include <functional>
#include <span>

namespace collage::inline v0 {

/// Writes sample `which` into memory for the network's inputs, in its order, and returns true. Returns false if there are no more.
/// The same number always means the same contents.
using sample_source = std::function<bool(std::size_t which, std::span<const tensor_view> inputs)>;

}  // namespace collage::inline v0
