// expect: an operator kind needs a shape rule: static constexpr verdict infer(const attributes&, inference&)
// Nobody could say what shape it gives.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
