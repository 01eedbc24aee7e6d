// The operator that placing adds to networks. Users' networks do not contain it, and it is not in ops.hpp.
#pragma once

#include <collage/op/elementwise.hpp>

namespace collage::inline v0 {

namespace ops {

/// Returns x itself. A conversion is a kernel that reads x in one layout and writes it in another (`layouts` in
/// backend.hpp). Placing puts conversions between kernels that have no layout in common.
inline constexpr struct convert_layout : elementwise_kind<convert_layout, 1> {
  static constexpr char name[] = "convert_layout";
  static constexpr auto body(auto x) { return x; }
} convert_layout{};

}  // namespace ops

}  // namespace collage::inline v0
