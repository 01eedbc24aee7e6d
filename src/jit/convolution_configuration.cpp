#include "convolution_configuration.hpp"

#include "word_reader.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::detail::jit {
namespace {

std::string convolution_version_word() { return "winograd" + std::to_string(convolution_version); }

/// The register tile for so many rows and columns of a product, with rows of at least so many vectors.
configuration tile_for(instruction_set set, std::int64_t rows, std::int64_t columns, int width) {
  configuration c = default_configuration(set);
  const std::int64_t vectors = (columns + c.lanes() - 1) / c.lanes();
  const int room = set == instruction_set::avx512 ? 30 : 14;
  const auto rows_beside = [&](int vectors_of_row) {
    // AVX2 keeps one register for the repeated element.
    return std::min(most_rows, (room + 2 - vectors_of_row - (set == instruction_set::avx2 ? 1 : 0)) / vectors_of_row);
  };
  c.vectors = static_cast<int>(std::min<std::int64_t>(width, vectors));
  // Few tiles: wider rows keep the multiply-adds apart.
  while (c.vectors < std::min<std::int64_t>(vectors, most_vectors) && rows_beside(c.vectors + 1) >= rows) ++c.vectors;
  const std::int64_t most = rows_beside(c.vectors), bands = (rows + most - 1) / most;
  c.rows = static_cast<int>((rows + bands - 1) / bands);
  return c;
}

constexpr std::int64_t least_rows = 28;  ///< of a product: fewer read each weight too often

std::int64_t parts_of(std::int64_t all, std::int64_t size) { return (all + size - 1) / size; }
/// The size of as many parts, of nearly one size.
std::int64_t even_part(std::int64_t all, std::int64_t size) { return parts_of(all, parts_of(all, size)); }

/// So many tiles, or slices of tiles, fit into the second-level cache beside a panel of weights.
std::int64_t fitting_in(const convolution_machine& machine, std::int64_t floats_of_tile) {
  return std::max<std::int64_t>(1, machine.second_level_bytes * 3 / 4 / (4 * floats_of_tile));
}

/// Weights that are transformed in each run, for the algorithm of `c`: one configuration where weights are most of what a run reads,
/// else none. All tiles are one block, so that each weight is transformed once.
std::vector<convolution_configuration> propose_on_the_fly(convolution_configuration c, const convolution_shape& s,
                                                          const convolution_machine& machine) {
  constexpr std::int64_t least_tiles = 8;  // fewer do not repay the transform
  c.block = most_block_tiles;
  const convolution_blocks whole = blocks_of(c, s);
  const std::int64_t images =
      4 * s.batch * (s.channels * s.height * s.width + s.outputs * s.output_height() * s.output_width());
  const std::int64_t kept = weight_bytes(c, s);
  if (s.output_depth() > 1 || whole.tiles < least_tiles || whole.tiles > most_block_tiles ||
      kept < machine.second_level_bytes || kept < 8 * images)
    return {};
  // A panel stays in the second-level cache, beside what it is multiplied with.
  const std::int64_t of_vector = 4 * c.algorithm().products * s.channels * c.product.lanes();
  const std::int64_t width = std::clamp<std::int64_t>(machine.second_level_bytes / 2 / of_vector, 1, 2);
  c.product = tile_for(machine.set, std::max(whole.tiles, least_rows), s.outputs, static_cast<int>(width));  // no wider
  c.block = static_cast<int>(whole.tiles);
  c.partition = machine.threads > 1 ? work_partition::phases : work_partition::tiles;
  c.weights = weight_transform_time::on_the_fly;
  return {c};
}

/// Blocks of several slices of a depth, for the algorithm of `c`.
std::vector<convolution_configuration> propose_in_depth(convolution_configuration c, const convolution_shape& s,
                                                        const convolution_machine& machine) {
  std::vector<convolution_configuration> list;
  c.block = most_block_tiles;
  const convolution_blocks whole = blocks_of(c, s);
  const std::int64_t all = whole.tiles * whole.depth, each = parts_of(all, machine.threads);
  const std::int64_t rows =
      std::max(fitting_in(machine, c.algorithm().products * (whole.input_row + whole.output_row)), least_rows);
  const auto add = [&](std::int64_t wanted, work_partition partition, bool is_deep) {
    wanted = std::clamp<std::int64_t>(wanted, 1, all);
    // A block transforms each input slice once, and its neighbors again. So slices come first, as long as products
    // of tiles keep half a register tile of rows. Products of slices need one tile only.
    constexpr std::int64_t least_tiles = 7;
    const std::int64_t tiles = is_deep ? 1 : std::min(whole.tiles, least_tiles);
    const std::int64_t slices = even_part(whole.depth, std::clamp<std::int64_t>(wanted / tiles, 1, whole.depth));
    const std::int64_t most = std::clamp<std::int64_t>(wanted / slices, 1, whole.tiles);
    c.slices = static_cast<int>(std::min<std::int64_t>(slices, most_block_tiles));
    c.block = static_cast<int>(std::min<std::int64_t>(even_part(whole.tiles, most), most_block_tiles));
    const convolution_blocks made = blocks_of(c, s);
    c.product = tile_for(machine.set, made.rows(), s.outputs, 2);
    if (!made.rows_are_slices)  // whole bands
      c.block = static_cast<int>(
          std::min<std::int64_t>(parts_of(c.block, c.product.rows) * c.product.rows, most_block_tiles));
    c.partition = partition;
    if (std::ranges::find(list, c) == list.end()) list.push_back(c);
  };
  const bool is_deep = whole.depth >= 14;
  add(std::min(each, rows), work_partition::tiles, is_deep);
  if (machine.threads > 1) add(rows * machine.threads, work_partition::phases, is_deep);
  add(std::min(each, 3 * rows), work_partition::tiles, is_deep);
  if (machine.threads > 1) add(all, work_partition::phases, is_deep);
  add(std::min(each, rows), work_partition::tiles, !is_deep);
  return list;
}

}  // namespace

std::string to_text(const convolution_configuration& c) {
  return convolution_version_word() + ' ' + c.algorithm().name + ' ' + words_of(c.product) + " block " +
         std::to_string(c.block) + (c.slices == 1 ? "" : " slices " + std::to_string(c.slices)) + " threads " +
         (c.partition == work_partition::tiles ? "tiles" : "phases") +
         (c.weights == weight_transform_time::once ? "" : " weights on-the-fly");
}

convolution_configuration parse_convolution_configuration(std::string_view text) {
  convolution_configuration c;
  c.family = 1;
  word_reader read(text, to_text(c));
  read.version(convolution_version_word());
  // One name may be the beginning of another.
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(convolution_family_count); ++i) order.push_back(i);
  const auto name = [](int i) { return std::string_view(convolution_families[static_cast<std::size_t>(i)].name); };
  std::ranges::sort(order, std::greater(), [&](int i) { return name(i).size(); });
  const auto found = std::ranges::find_if(order, [&](int i) { return read.take(name(i)); });
  if (found == order.end()) read.refuse("there is no algorithm '" + std::string(read.word("the algorithm")) + "'");
  c.family = *found;
  c.product = read_words(read);
  read.literally("block");
  c.block = read.number("the number of tiles of a block");
  if (read.take("slices")) c.slices = read.number("the number of slices of a block");
  read.literally("threads");
  const std::string_view share = read.word("what threads share");
  if (share != "tiles" && share != "phases")
    read.refuse("threads share '" + std::string(share) + "', and tiles and phases are known");
  c.partition = share == "tiles" ? work_partition::tiles : work_partition::phases;
  if (read.take("weights")) {
    read.literally("on-the-fly");
    c.weights = weight_transform_time::on_the_fly;
  }
  if (const sentence why = fault_of(c); !why.empty()) read.refuse(std::string(why.text, why.size));
  read.must_be(to_text(c));
  return c;
}

std::vector<convolution_configuration> propose_configurations(const convolution_shape& s,
                                                              const convolution_machine& machine) {
  std::vector<std::vector<convolution_configuration>> found;  // of each family
  for (int family = 0; family < static_cast<int>(convolution_family_count); ++family) {
    convolution_configuration c;
    c.family = family;
    c.product = default_configuration(machine.set);
    if (!fault_of(c, s).empty()) continue;
    std::vector<convolution_configuration>& list = found.emplace_back();
    if (s.output_depth() > 1) {
      list = propose_in_depth(c, s, machine);
      continue;
    }
    c.block = most_block_tiles;
    const convolution_blocks whole = blocks_of(c, s);
    const std::int64_t fitting =
        fitting_in(machine, c.algorithm().products * (whole.input_slices * whole.input_row + whole.output_row));
    const std::int64_t each = (whole.tiles + machine.threads - 1) / machine.threads;
    const auto add = [&](std::int64_t tiles, work_partition partition, int width = 2) {
      tiles = std::clamp<std::int64_t>(tiles, 1, std::min<std::int64_t>(whole.tiles, most_block_tiles));
      c.product = tile_for(machine.set, tiles, s.outputs, width);
      // Whole bands, and blocks of nearly one size.
      const std::int64_t blocks = (whole.tiles + tiles - 1) / tiles, even = (whole.tiles + blocks - 1) / blocks;
      c.block = static_cast<int>(
          std::min<std::int64_t>((even + c.product.rows - 1) / c.product.rows * c.product.rows, most_block_tiles));
      c.partition = partition;
      if (std::ranges::find(list, c) == list.end()) list.push_back(c);
    };
    constexpr std::int64_t least = least_rows;
    add(std::min(each, std::max(fitting, least)), work_partition::tiles);
    if (machine.threads > 1) add(std::max(fitting, least) * machine.threads, work_partition::phases);
    add(std::min(each, 3 * std::max(fitting, least)), work_partition::tiles);
    if (machine.threads > 1) add(whole.tiles, work_partition::phases);
    // A smaller block where there are several anyway; else another tile of registers.
    if (fitting >= 2 * least || whole.tiles > 8 * least)
      add(std::min(each, std::max(fitting, least) / 2), work_partition::tiles);
    else add(std::min(each, std::max(fitting, least)), work_partition::tiles, 3);
    const std::vector<convolution_configuration> on_the_fly = propose_on_the_fly(c, s, machine);
    list.insert(list.begin() + std::min<std::ptrdiff_t>(1, std::ssize(list)), on_the_fly.begin(), on_the_fly.end());
  }
  std::vector<convolution_configuration> chosen;
  for (std::size_t turn = 0; chosen.size() < most_proposals; ++turn) {
    const std::size_t before = chosen.size();
    for (const auto& list : found)
      if (turn < list.size() && chosen.size() < most_proposals) chosen.push_back(list[turn]);
    if (chosen.size() == before) break;
  }
  return chosen;
}

}  // namespace collage::inline v0::detail::jit
