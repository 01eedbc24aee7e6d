// expect: backend (library): rule returns another type; declare static constexpr auto rule, a rule for groups of collage/fuse
// A rule that lists nothing.
#include <collage/collage.hpp>
#include <collage/fuse/combine.hpp>

namespace c = collage;
struct library : c::backend<"library"> {
  static constexpr bool rule = true;
  static c::kernel build(const c::node_group&, c::build_context&);
};
constexpr std::size_t size = c::backend_set<library>::size;
