// The twin of backend_without_patterns.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct library : c::backend<"library"> {
  using patterns = c::patterns<>;
};
constexpr std::size_t size = c::backend_set<library>::size;
