// The twin of backend_takes_of_wrong_arguments.cpp.
#include <collage/collage.hpp>
#include <collage/fuse/combine.hpp>

namespace c = collage;
struct library : c::backend<"library"> {
  static constexpr auto rule = c::fuse::by_kind{};
  static bool takes(const c::graph&, std::uint32_t node);
  static c::kernel build(const c::node_group&, c::build_context&);
};
constexpr std::size_t size = c::backend_set<library>::size;
