// The operator of placing's own. Networks do not contain it, and it is not in ops.hpp.
#pragma once

#include <collage/op/elementwise.hpp>

namespace collage::inline v0 {

namespace ops {

/// The value itself. A kernel that reads it in one layout and writes it in another (backend.hpp, `layouts`) is a conversion,
/// which placing puts between kernels that agree on no layout.
inline constexpr struct convert_layout : elementwise_kind<convert_layout, 1> {
  static constexpr char name[] = "convert_layout";
  static constexpr auto body(auto x) { return x; }
} convert_layout{};

}  // namespace ops

}  // namespace collage::inline v0
