// expect: backend (library): rule returns another type; declare static constexpr auto rule, a rule for groups of collage/fuse, and no takes_regions beside it
// Groups by a rule and regions at once: nobody could say which of them a plan means.
#include <collage/collage.hpp>
#include <collage/fuse/combine.hpp>

namespace c = collage;
struct library : c::backend<"library"> {
  static constexpr bool takes_regions = true;
  static constexpr auto rule = c::fuse::by_kind{};
  static c::kernel build(const c::node_group&, c::build_context&);
};
constexpr std::size_t size = c::backend_set<library>::size;
