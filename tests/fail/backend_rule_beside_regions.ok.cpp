// The twin of backend_rule_beside_regions.cpp.
#include <collage/collage.hpp>
#include <collage/fuse/combine.hpp>

namespace c = collage;
struct library : c::backend<"library"> {
  static constexpr auto rule = c::fuse::by_kind{};
  static c::kernel build(const c::node_group&, c::build_context&);
};
constexpr std::size_t size = c::backend_set<library>::size;
