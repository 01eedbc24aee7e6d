// expect: onnx of an operator kind must be declared as: static constexpr onnx_name onnx{domain, operator}
// The domain is missing.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr char onnx[] = "Twice";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
