// expect: backend (library): takes takes other arguments; declare static bool takes(const graph&, std::uint32_t node)
// An operator check that is not given the network.
#include <collage/collage.hpp>
#include <collage/fuse/combine.hpp>

namespace c = collage;
struct library : c::backend<"library"> {
  static constexpr auto rule = c::fuse::by_kind{};
  static bool takes(std::uint32_t node);
  static c::kernel build(const c::node_group&, c::build_context&);
};
constexpr std::size_t size = c::backend_set<library>::size;
