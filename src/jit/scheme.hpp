// The schemes for matrix products that the backend has by itself, and where those of programs are found.
#pragma once

#include <collage/backends/jit_scheme.hpp>

#include <span>
#include <string_view>

namespace collage::inline v0::detail::jit {

/// The backend's own schemes, the classical one first.
std::span<const scheme> schemes();
/// The one of these that computes by the same operations as `s`, or `s` itself: under two names, it would be measured twice.
const scheme& listed_as(const scheme& s);
/// The scheme with a name, among these and those that the program made known; null if there is none.
const scheme* find_scheme(std::string_view name);

}  // namespace collage::inline v0::detail::jit
