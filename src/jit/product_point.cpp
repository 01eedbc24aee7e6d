#include "product_point.hpp"

#include <collage/error.hpp>

#include <algorithm>

namespace collage::inline v0::detail::jit {
namespace {

constexpr const char* first_word = "product1";
static_assert(product_version == 1);

/// AVX-512 repeats an element of A within the multiply-add, for which AVX2 needs a register.
constexpr broadcast_from broadcast_of(instruction_set set) {
  return set == instruction_set::avx512 ? broadcast_from::memory : broadcast_from::vector_register;
}

}  // namespace

std::string product_point::text() const {
  return std::string(first_word) + ' ' + algorithm->name + ' ' + name_of(how.set) + " tile " +
         std::to_string(how.rows) + 'x' + std::to_string(how.vectors) + " unroll " + std::to_string(how.unroll) +
         " prefetch " + std::to_string(how.prefetch);
}

product_point::reading product_point::read(std::string_view text) {
  const std::size_t version_end = text.find(' ');
  if (text.substr(0, version_end) != first_word || version_end == std::string_view::npos)
    return {{}, "it does not begin with product1, the version of this generator"};
  const std::string_view rest = text.substr(version_end + 1);
  const std::size_t name_end = rest.find(' ');
  product_point made;
  made.algorithm = find_scheme(rest.substr(0, name_end));
  if (made.algorithm == nullptr) return {{}, "it names an algorithm that the backend does not have"};
  const std::string tile(name_end == std::string_view::npos ? std::string_view() : rest.substr(name_end + 1));
  const bool is_wide = tile.starts_with(name_of(instruction_set::avx512));
  try {
    made.how = parse_configuration("jit" + std::to_string(generator_version) + ' ' + tile + " broadcast " +
                                   (is_wide ? "memory" : "register"));
  } catch (const error&) {
    return {{},
            "it is not of the form: product1 ALGORITHM avx512 tile 14x2 unroll 4 prefetch 0, or has a tile that "
            "does not fit the registers"};
  }
  if (made.text() != text) return {{}, "it is not written in its canonical form"};
  return {made, ""};
}

std::vector<product_point> promising_points(std::int64_t m, std::int64_t n, std::int64_t k, bool is_long,
                                            unsigned features) {
  const instruction_set set =
      refusal_of(instruction_set::avx512, features).empty() ? instruction_set::avx512 : instruction_set::avx2;
  const int lanes = lanes_of(set);
  // The loop needs registers beside the accumulators, and a long epilogue needs more.
  const auto most_rows_with = [&](int vectors) {
    const int kept = std::max(vectors + (set == instruction_set::avx2 ? 1 : 0), is_long ? 6 : 2);
    return (registers_of(set) - kept) / vectors;
  };
  std::vector<product_point> list;
  for (const int vectors : {2, 3, 4, 1}) {
    const int most = most_rows_with(vectors);
    if (most < 1) continue;
    // Few columns need no wide tile, and one vector is enough for those alone.
    if ((vectors - 1) * lanes >= std::max<std::int64_t>(n, 1)) continue;
    if (vectors == 1 && n > lanes && m > 1) continue;
    if (vectors > 2 && set == instruction_set::avx2 && m >= 4) {
      if (vectors == 4) continue;  // two rows: more loads than multiply-adds
    }
    // All bands of rows have about the same number.
    const std::int64_t bands = std::max<std::int64_t>((m + most - 1) / most, 1);
    const auto rows = static_cast<int>(std::max<std::int64_t>((m + bands - 1) / bands, 1));
    for (const int prefetch : {0, 16}) {
      // A panel that fits the first-level cache is there already.
      if (prefetch > 0 && k * vectors * lanes * 4 <= 24 * 1024) continue;
      product_point p;
      p.algorithm = schemes().data();
      p.how = {set, rows, vectors, 4, prefetch, broadcast_of(set)};
      if (fault_of(p.how).empty()) list.push_back(p);
    }
  }
  return list;
}

}  // namespace collage::inline v0::detail::jit
