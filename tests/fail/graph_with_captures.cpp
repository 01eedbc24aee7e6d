// expect: collage::define takes a lambda without captures, [](auto& g) {...}: what it needs must be constants
// What a definition needs must be known to the compiler.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;

constexpr auto of(std::int64_t channels) {
  auto write = [channels](auto& g) { g.output(g(op::relu, g.input("x", {1, channels}))); };
  return c::define(write);
}
