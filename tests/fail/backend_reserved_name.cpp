// expect: a backend is called (alias), which is a reserved name in plans; rename it
// Plans write "alias" where a node is a view of another's value.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct library : c::backend<"alias"> {
  using patterns = c::patterns<c::single<op::relu>>;
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
constexpr std::size_t size = c::backend_set<library>::size;
