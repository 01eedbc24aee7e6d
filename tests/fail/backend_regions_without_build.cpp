// expect: backend (library): build is missing or private; declare static kernel build(const node_group&, build_context&) beside the rule, or takes_regions
// A backend that is given regions, which nobody builds.
#include <collage/collage.hpp>

namespace c = collage;
struct library : c::backend<"library"> {
  static constexpr bool takes_regions = true;
};
constexpr std::size_t size = c::backend_set<library>::size;
