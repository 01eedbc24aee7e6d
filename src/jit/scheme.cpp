#include "scheme.hpp"

#include <collage/bilinear/matmul_schemes.hpp>

#include <algorithm>

namespace collage::inline v0::detail::jit {
namespace {

constexpr scheme list[] = {
    scheme_of<bilinear::classical<1, 1, 1>>("classical"),
    scheme_of<bilinear::strassen>("strassen"),
    scheme_of<bilinear::winograd>("winograd"),
    scheme_of<bilinear::two_strassen>("two-strassen"),
    scheme_of<bilinear::nested<bilinear::winograd, bilinear::winograd>>("two-winograd"),
    scheme_of<bilinear::strassen_2_2_3>("strassen-2-2-3"),
    scheme_of<bilinear::strassen_4_2_2>("strassen-4-2-2"),
    scheme_of<bilinear::hopcroft_kerr>("hopcroft-kerr"),
    scheme_of<bilinear::laderman>("laderman"),
};

}  // namespace

std::span<const scheme> schemes() { return list; }

const scheme* find_scheme(std::string_view name) {
  const auto* const found = std::ranges::find(list, name, [](const scheme& s) { return std::string_view(s.name); });
  return found == std::end(list) ? nullptr : found;
}

}  // namespace collage::inline v0::detail::jit
