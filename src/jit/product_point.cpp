#include "product_point.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace collage::inline v0::detail::jit {
namespace {

constexpr const char* first_word = "product1";
static_assert(product_version == 1);

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
  if (made.algorithm == nullptr)
    return {
        {},
        "it names an algorithm that this program does not have: jit_with adds one, and placing again finds another"};
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

namespace {

/// Which tiles fit an instruction set and a kind of epilogue.
struct tile_limits {
  instruction_set set = instruction_set::avx2;
  bool is_long = false;  ///< the epilogue

  /// The loop needs registers beside the accumulators, and a long epilogue needs more.
  int most_rows_with(int vectors) const {
    const int kept = std::max(vectors + (set == instruction_set::avx2 ? 1 : 0), spare_registers(is_long));
    return (registers_of(set) - kept) / vectors;
  }
};

/// The tiles that are worth measuring for a product of these extents, the most promising first.
std::vector<configuration> promising_tiles(std::int64_t m, std::int64_t n, std::int64_t k, const tile_limits& limits) {
  const instruction_set set = limits.set;
  const int lanes = lanes_of(set);
  std::vector<configuration> list;
  for (const int vectors : {2, 3, 4, 1}) {
    const int most = limits.most_rows_with(vectors);
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
      const configuration how = {set, rows, vectors, 4, prefetch, broadcast_of(set)};
      if (fault_of(how).empty()) list.push_back(how);
    }
  }
  return list;
}

/// The time of products by a scheme over that by the definition, estimated. A float that is moved costs as much as
/// `moved` multiplications, and a further weight as much as `loaded`. Both fit the table of docs/cpu-backends.md.
double expected_ratio(const scheme& s, std::int64_t m, std::span<const std::int64_t> widths, std::int64_t k) {
  constexpr double moved = 2.5, loaded = 1;
  const auto rows = static_cast<double>(s.rows), inner = static_cast<double>(s.inner);
  const auto columns = static_cast<double>(s.columns), rank = static_cast<double>(s.rank);
  std::size_t outputs = 0;
  for (std::size_t block = 0; block < s.rows * s.columns; ++block)
    for (std::size_t p = 0; p < s.rank; ++p) outputs += s.output(block, p) != 0 ? 1 : 0;
  // Blocks at the edge are filled up.
  const auto filled = [](std::int64_t extent, double parts) {
    return std::ceil(static_cast<double>(extent) / parts) * parts;
  };
  const auto times = [&](std::int64_t extent, double parts) {
    return filled(extent, parts) / static_cast<double>(extent);
  };
  double all = 0, all_filled = 0;
  for (const std::int64_t n : widths) {
    all += static_cast<double>(n);
    all_filled += filled(n, columns);
  }
  const double multiplied = rank / (rows * inner * columns) * times(m, rows) * all_filled / all * times(k, inner);
  const double summed = 3 * static_cast<double>(s.left.count().additions) / (rows * inner) / all;
  const double added = 2 * (static_cast<double>(outputs) / (rows * columns) - 1) / static_cast<double>(k);
  const double more_weights = (rank / (inner * columns) - 1) / static_cast<double>(m);
  return multiplied + moved * (summed + added) + loaded * more_weights;
}

/// The schemes that may save time, the most promising first.
std::vector<const scheme*> promising_schemes(std::int64_t m, std::span<const std::int64_t> widths, std::int64_t k) {
  constexpr std::size_t most = 3;
  if (m <= 0 || std::ranges::max(widths) <= 0 || k <= 0) return {};
  std::vector<std::pair<double, const scheme*>> list;
  for (const scheme& s : schemes()) {
    if (s.is_classical()) continue;
    if (const double ratio = expected_ratio(s, m, widths, k); ratio < 1) list.emplace_back(ratio, &s);
  }
  std::ranges::stable_sort(list, {}, [](const auto& known) { return known.first; });
  std::vector<const scheme*> chosen;
  for (std::size_t i = 0; i < std::min(list.size(), most); ++i) chosen.push_back(list[i].second);
  return chosen;
}

tile_limits limits_for(bool is_long, unsigned features) {
  const bool is_wide = refusal_of(instruction_set::avx512, features).empty();
  return {is_wide ? instruction_set::avx512 : instruction_set::avx2, is_long};
}

/// Adds the two most promising tiles for the blocks of a scheme.
void add_points(const scheme& s, std::int64_t m, std::int64_t widest, std::int64_t k, const tile_limits& limits,
                std::vector<product_point>& to) {
  constexpr std::size_t most = 2;
  const auto divided = [](std::int64_t extent, std::size_t parts) {
    return (extent + static_cast<std::int64_t>(parts) - 1) / static_cast<std::int64_t>(parts);
  };
  const auto tiles = promising_tiles(divided(m, s.rows), divided(widest, s.columns), divided(k, s.inner), limits);
  for (std::size_t i = 0; i < std::min(tiles.size(), most); ++i) to.push_back({&s, tiles[i]});
}

}  // namespace

std::vector<product_point> promising_points(std::int64_t m, std::span<const std::int64_t> columns, std::int64_t k,
                                            bool is_long, unsigned features) {
  const tile_limits limits = limits_for(is_long, features);
  const std::int64_t widest = std::ranges::max(columns);  // a tile is within one result
  std::vector<product_point> list;
  for (const configuration& how : promising_tiles(m, widest, k, limits)) list.push_back({schemes().data(), how});
  for (const scheme* s : promising_schemes(m, columns, k)) add_points(*s, m, widest, k, limits, list);
  return list;
}

std::vector<product_point> points_with(const scheme& s, std::int64_t m, std::span<const std::int64_t> columns,
                                       std::int64_t k, bool is_long, unsigned features) {
  std::vector<product_point> list;
  const auto has = [](std::int64_t extent, std::size_t blocks) { return extent >= static_cast<std::int64_t>(blocks); };
  if (has(m, s.rows) && has(k, s.inner) && has(std::ranges::min(columns), s.columns))
    add_points(s, m, std::ranges::max(columns), k, limits_for(is_long, features), list);
  return list;
}

std::vector<product_point> promising_points(std::int64_t m, std::int64_t n, std::int64_t k, bool is_long,
                                            unsigned features) {
  return promising_points(m, {&n, 1}, k, is_long, features);
}

}  // namespace collage::inline v0::detail::jit
