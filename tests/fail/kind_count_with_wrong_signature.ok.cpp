// The twin of kind_count_with_wrong_signature.cpp.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
  static constexpr c::work count(const attributes&, const c::inference&) { return {1}; }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
