// Shared by both files of run-time graphs.
#pragma once

#include <collage/dtype.hpp>
#include <cstddef>

namespace collage::inline v0::detail {

/// Stores a number as one element of a type. Returns false if the type cannot hold it, or has no plain C++ counterpart.
bool store_number(std::byte* to, dtype type, double number);

}  // namespace collage::inline v0::detail
