// The twin of backend_regions_without_build.cpp.
#include <collage/collage.hpp>

namespace c = collage;
struct library : c::backend<"library"> {
  static constexpr bool takes_regions = true;
  static c::kernel build(const c::node_group&, c::build_context&);
};
constexpr std::size_t size = c::backend_set<library>::size;
