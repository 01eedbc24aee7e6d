// The twin of kind_reference_of_an_object.cpp.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
  static void reference(const attributes&, const c::reference_call& call) {
    call.out[0].real[0] = 2 * call.in[0].real[0];
  }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
