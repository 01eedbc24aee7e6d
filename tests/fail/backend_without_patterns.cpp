// expect: a backend_set holds library, which is not a backend; list what it runs
// A backend that runs nothing says so: patterns<>.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct library : c::backend<"library"> {};
constexpr std::size_t size = c::backend_set<library>::size;
