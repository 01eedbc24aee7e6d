// expect: reference of an operator kind must be declared as: static void reference(const attributes&,
// A kind has no objects that its functions could be called on.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
  void reference(const attributes&, const c::reference_call& call) const {
    call.out[0].real[0] = 2 * call.in[0].real[0];
  }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
