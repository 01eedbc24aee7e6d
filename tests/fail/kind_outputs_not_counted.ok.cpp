// The twin of kind_outputs_not_counted.cpp.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr std::uint32_t outputs = c::any_number;
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
  static constexpr std::size_t count_outputs(const attributes&, c::list_view<const c::body_signature>) { return 1; }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
