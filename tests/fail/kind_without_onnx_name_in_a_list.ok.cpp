// The twin of kind_without_onnx_name_in_a_list.cpp.
#include <collage/io/onnx.hpp>

namespace c = collage;
inline constexpr struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr c::onnx_name onnx{"com.example", "Twice"};
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
} twice{};
constexpr auto list = c::onnx::kinds<twice>;
