// expect: backend (library): build is missing or private; declare static kernel build(const node_group&, build_context&) beside the rule
// A rule whose groups nobody builds.
#include <collage/collage.hpp>
#include <collage/fuse/combine.hpp>

namespace c = collage;
struct library : c::backend<"library"> {
  static constexpr auto rule = c::fuse::by_kind{};
};
constexpr std::size_t size = c::backend_set<library>::size;
