#include "byte_depthwise.hpp"

#include "byte_replica.hpp"
#include "byte_tile.hpp"
#include "even_shares.hpp"
#include "instruction_set.hpp"
#include "word_reader.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

namespace collage::inline v0::detail::jit {
namespace {

constexpr byte_depthwise_configuration replica_only = {.rows = 0, .columns = 0};
constexpr int block_channels = 64;
constexpr std::int64_t most_window = 11, most_stride = 4, most_dilation = 16;  // of generated code
constexpr std::int64_t most_input_rows = (most_byte_rows - 1) * most_stride + (most_window - 1) * most_dilation + 1;

std::string bytes_version() { return "bytes" + std::to_string(byte_depthwise_version); }
std::int64_t parts_of(std::int64_t all, std::int64_t size) { return (all + size - 1) / size; }

/// Pixels of a row that a tile reads are as far apart as the window's taps. So with a dilation of columns, tiles have every n-th
/// output.
byte_tile_form form_of(const byte_depthwise_shape& s, dtype source = dtype::u8, dtype result = dtype::u8) {
  const auto size = static_cast<std::int64_t>(size_of(result));
  return {.window_rows = static_cast<int>(s.window_rows),
          .window_columns = static_cast<int>(s.window_columns),
          .stride_rows = static_cast<int>(s.stride_rows),
          .stride_columns = static_cast<int>(s.stride_columns),
          .dilation_rows = static_cast<int>(s.dilation_rows),
          .pixel_bytes = s.channels * s.dilation_columns,
          .to_pixel_bytes = s.channels * s.dilation_columns * size,
          .to_row_bytes = s.output_width() * s.channels * size,
          .source = source,
          .result = result};
}

/// The vector of the channels that whole blocks leave over.
int rest_bytes(std::int64_t rest) { return rest > 32 ? 64 : rest > 16 ? 32 : 16; }

/// Calls f(first channel, channels, bytes of the vector) for each vector of channels.
template <class F>
void for_each_vector(std::int64_t channels, const F& f) {
  for (std::int64_t first = 0; first < channels; first += block_channels) {
    const std::int64_t count = std::min<std::int64_t>(channels - first, block_channels);
    f(first, static_cast<int>(count), rest_bytes(count));
  }
}

bool is_number_of(dtype type, int number) {
  const int least = type == dtype::i8 ? -128 : 0;
  return number >= least && number <= least + 255;
}

const byte_depthwise_terms& checked(const byte_depthwise_configuration& how, const byte_depthwise_shape& s,
                                    const byte_depthwise_terms& t) {
  const auto refuse = [](error_kind kind, const std::string& why) { throw error(kind, why, "jit"); };
  for (const sentence& why : {fault_of(how), fault_of(s)})
    if (!why.empty()) refuse(error_kind::invalid_argument, std::string(why.text, why.size));
  if ((t.source != dtype::u8 && t.source != dtype::i8) ||
      (t.result != dtype::u8 && t.result != dtype::i8 && t.result != dtype::f32))
    refuse(error_kind::invalid_argument,
           "a depthwise convolution of bytes reads int8 or uint8, and has float32 besides");
  if (!is_number_of(t.source, t.source_zero) || (t.result != dtype::f32 && !is_number_of(t.result, t.zero)))
    refuse(error_kind::invalid_argument, "a zero point is not a number of its type");
  if (std::ssize(t.factor) != s.channels || std::ssize(t.offset) != s.channels)
    refuse(error_kind::invalid_argument, "there must be one factor and one offset for each channel");
  if (!(t.least <= t.most)) refuse(error_kind::invalid_argument, "the bounds of a clip are not in order");
  const auto is_finite = [](float x) { return std::isfinite(x); };
  if (!std::ranges::all_of(t.factor, is_finite) || !std::ranges::all_of(t.offset, is_finite))
    refuse(error_kind::unsupported, "a scale or a bias of a depthwise convolution of bytes is not finite");
  if (!how.is_replica() && !can_generate(how, s))
    refuse(error_kind::unsupported, "a window is too large for the tile '" + to_text(how) + "'");
  return t;
}

/// A bound as a number of the result.
int byte_of(const byte_depthwise_terms& t, float bound) {
  const double least = t.result == dtype::i8 ? -128 : 0;
  const double wanted = std::nearbyint(static_cast<double>(bound)) + t.zero;
  return static_cast<int>(std::clamp(wanted, least, least + 255));
}
std::uint32_t repeated_byte(int number) { return 0x01010101U * static_cast<std::uint8_t>(number); }

}  // namespace

// Configurations --------------------------------------------------------------------------------------------------------

std::string to_text(const byte_depthwise_configuration& c) {
  if (c.is_replica()) return bytes_version() + " replica";
  return bytes_version() + " avx512-vnni tile " + std::to_string(c.rows) + 'x' + std::to_string(c.columns) + " order " +
         (c.order == byte_depthwise_order::channels ? "channels" : "columns");
}

byte_depthwise_configuration parse_byte_depthwise_configuration(std::string_view text) {
  byte_depthwise_configuration c;
  word_reader read(text, to_text(c));
  read.version(bytes_version());
  if (read.take("replica")) {
    read.must_be(to_text(replica_only));
    return replica_only;
  }
  read.literally("avx512-vnni");
  read.literally("tile");
  const std::string_view tile = read.word("the size of a tile");
  const std::size_t at = tile.find('x');
  if (at == std::string_view::npos) read.refuse("the tile '" + std::string(tile) + "' is not as in 3x4");
  c.rows = read.number("the number of rows of a tile", tile.substr(0, at));
  c.columns = read.number("the number of columns of a tile", tile.substr(at + 1));
  read.literally("order");
  const std::string_view order = read.word("the order");
  if (order != "channels" && order != "columns")
    read.refuse("the order is '" + std::string(order) + "', and channels and columns are known");
  c.order = order == "channels" ? byte_depthwise_order::channels : byte_depthwise_order::columns;
  if (const sentence why = fault_of(c); c.rows == 0 || !why.empty())
    read.refuse(c.rows == 0 ? "a tile has at least one row" : std::string(why.text, why.size));
  read.must_be(to_text(c));
  return c;
}

std::string refusal_of_bytes() {
  static const std::string why = [] {
    if ((processor_features() & feature_avx512_vnni) == 0)
      return std::string(
          "this processor lacks avx512bw, avx512vl or avx512vnni, which depthwise kernels of bytes need");
    code_arena probe;
    constexpr std::uint8_t nothing[] = {0xC3};
    probe.add(nothing);
    return probe.seal();
  }();
  return why;
}

bool can_generate(const byte_depthwise_configuration& c, const byte_depthwise_shape& s) {
  // Distances within a tile are 32 bits of an instruction.
  constexpr std::int64_t most_bytes = std::int64_t{1} << 26U;
  if (s.window_rows > most_window || s.window_columns > most_window || s.stride_rows > most_stride ||
      s.stride_columns > most_stride || s.dilation_rows > most_dilation ||
      (s.dilation_columns > 1 && s.stride_columns > 1))
    return false;
  if (s.channels * s.dilation_columns > most_bytes / 64 || s.width * s.channels > most_bytes ||
      s.output_width() * s.channels * 4 > most_bytes)
    return false;
  return byte_tile_registers(form_of(s), c.rows, c.columns) <= 32;
}

std::vector<byte_depthwise_configuration> promising_configurations(const byte_depthwise_shape& s, bool can_run) {
  // A single row suits images with few rows, which threads share. Seven divides the usual widths.
  constexpr std::array<std::pair<int, int>, 6> tiles = {{{3, 4}, {2, 4}, {1, 7}, {1, 4}, {1, 2}, {1, 1}}};
  constexpr std::size_t most_tiles = 3;
  std::vector<byte_depthwise_configuration> list;
  for (const auto& [rows, columns] : tiles) {
    if (!can_run || list.size() == 2 * most_tiles) break;
    for (const byte_depthwise_order order : {byte_depthwise_order::channels, byte_depthwise_order::columns}) {
      const byte_depthwise_configuration c = {rows, columns, order};
      if (can_generate(c, s)) list.push_back(c);
    }
  }
  if (list.empty()) list.push_back(replica_only);
  return list;
}

// Packing ---------------------------------------------------------------------------------------------------------------

std::size_t byte_depthwise::packed_size(const byte_depthwise_configuration& how, const byte_depthwise_shape& shape) {
  if (how.is_replica() || !refusal_of_bytes().empty())
    return static_cast<std::size_t>(shape.taps() * shape.channels) * sizeof(float);
  const byte_tile_form form = form_of(shape);
  std::int64_t size = 0;
  for_each_vector(shape.channels, [&](std::int64_t, int, int bytes) { size += byte_weights_size(form, bytes); });
  return static_cast<std::size_t>(size);
}

std::string byte_depthwise::packing(const byte_depthwise_configuration& how, const byte_depthwise_shape& shape) {
  if (how.is_replica() || !refusal_of_bytes().empty()) return "jit depthwise bytes, as float32";
  return "jit depthwise bytes, groups of four, stride " + std::to_string(shape.stride_columns);
}

void byte_depthwise::pack(const byte_depthwise_configuration& how, const byte_depthwise_shape& shape,
                          const std::int8_t* weights, std::byte* to) {
  if (how.is_replica() || !refusal_of_bytes().empty()) {
    auto* const floats = reinterpret_cast<float*>(to);
    for (std::int64_t c = 0; c < shape.channels; ++c)
      for (std::int64_t tap = 0; tap < shape.taps(); ++tap)
        floats[tap * shape.channels + c] = static_cast<float>(weights[c * shape.taps() + tap]);
    return;
  }
  const byte_tile_form form = form_of(shape);
  for_each_vector(shape.channels, [&](std::int64_t first, int channels, int bytes) {
    pack_byte_weights(form, weights, first, channels, bytes, to);
    to += byte_weights_size(form, bytes);
  });
}

// Generated code --------------------------------------------------------------------------------------------------------

/// A row of outputs in tiles, those with the same code beside each other.
struct byte_run {
  std::int64_t from = 0, to = 0;                    ///< bytes of the first tile's first pixel, from the row's begin
  std::int64_t count = 1;                           ///< tiles
  byte_tile tile;                                   ///< its rows and vectors are not set
  byte_tile_function code[most_byte_rows][2] = {};  ///< for one row and more, and whole and other numbers of channels
};

/// A part of a run: a row of tiles of an image, and some vectors of channels.
struct byte_task {
  std::int64_t image = 0, first_row = 0, rows = 0, first_vector = 0, last_vector = 0;
};

struct byte_depthwise::generated {
  byte_tile_form form;
  std::vector<byte_run> runs;
  std::vector<std::uint8_t> pad_row;
  std::vector<std::byte> terms;
  code_arena arena;
  byte_tile_constants constants;
  int rest_channels = 0, rest_vector = 0;
  std::int64_t whole = 0;  ///< vectors of 64 channels

  generated(const byte_depthwise_configuration& how, const byte_depthwise_shape& s, const byte_depthwise_terms& t,
            const std::int8_t* weights, int threads);

  void add_runs(const byte_depthwise_configuration& how, const byte_depthwise_shape& s);
  void add_terms(const byte_depthwise_shape& s, const byte_depthwise_terms& t, const std::int8_t* weights);
  void make_code(const byte_depthwise_configuration& how, const byte_depthwise_shape& s, int threads);
  void run_task(const byte_depthwise_configuration& how, const byte_depthwise_shape& s, const byte_depthwise_call& c,
                const byte_task& task) const;
  byte_tile tile_of(const byte_run& run, std::int64_t rows, bool is_rest) const {
    byte_tile tile = run.tile;
    tile.rows = static_cast<int>(rows);
    tile.bytes = is_rest ? rest_vector : block_channels;
    tile.channels = is_rest ? rest_channels : block_channels;
    return tile;
  }
};

byte_depthwise::generated::generated(const byte_depthwise_configuration& how, const byte_depthwise_shape& s,
                                     const byte_depthwise_terms& t, const std::int8_t* weights, int threads)
    : form(form_of(s, t.source, t.result)),
      pad_row(static_cast<std::size_t>(s.width * s.channels) + block_channels,
              static_cast<std::uint8_t>(t.source_zero)),
      rest_channels(static_cast<int>(s.channels % block_channels)),
      rest_vector(rest_bytes(rest_channels)),
      whole(s.channels / block_channels) {
  form.adds_zero = t.zero != 0;
  const int least = t.result == dtype::i8 ? -128 : 0;
  if (t.result == dtype::f32) {
    form.has_least = !std::isinf(t.least);
    form.has_most = !std::isinf(t.most);
  } else {
    const int low = byte_of(t, t.least), high = byte_of(t, t.most);
    form.has_least = low != least;
    form.has_most = high != least + 255;
    constants.least_byte = repeated_byte(low);
    constants.most_byte = repeated_byte(high);
  }
  constants.least = t.least;
  constants.most = t.most;
  constants.zero = 0x00010001U * static_cast<std::uint16_t>(t.zero);
  add_terms(s, t, weights);
  add_runs(how, s);
  make_code(how, s, threads);
}

void byte_depthwise::generated::add_terms(const byte_depthwise_shape& s, const byte_depthwise_terms& t,
                                          const std::int8_t* weights) {
  // Code multiplies numbers without signs, which are larger by 128 than those of int8.
  const std::int32_t zero = t.source_zero + (t.source == dtype::i8 ? 128 : 0);
  std::vector<std::int32_t> starts;
  form.may_overflow = false;
  for (std::int64_t c = 0; c < s.channels; ++c) {
    std::int32_t sum = 0, magnitude = 0;
    for (const std::int8_t* w = weights + c * s.taps(); w != weights + (c + 1) * s.taps(); ++w) {
      sum += *w;
      magnitude += std::abs(int{*w});
    }
    starts.push_back(-zero * sum);
    const auto at = static_cast<std::size_t>(c);
    const double most = 255.0 * magnitude * std::abs(static_cast<double>(t.factor[at]));
    form.may_overflow = form.may_overflow || most + std::abs(static_cast<double>(t.offset[at])) > 0x1p29;
  }
  for_each_vector(s.channels, [&](std::int64_t first, int channels, int bytes) {
    const std::size_t before = terms.size();
    terms.resize(before + static_cast<std::size_t>(byte_terms_size(bytes)));
    pack_byte_terms(starts.data() + first, t.factor.data() + first, t.offset.data() + first, channels, bytes,
                    terms.data() + before);
  });
}

void byte_depthwise::generated::add_runs(const byte_depthwise_configuration& how, const byte_depthwise_shape& s) {
  for (std::int64_t phase = 0; phase < std::min(s.dilation_columns, s.output_width()); ++phase) {
    const std::int64_t outputs = parts_of(s.output_width() - phase, s.dilation_columns);
    for (std::int64_t x = 0; x < outputs; x += how.columns) {
      byte_run run;
      run.tile.columns = static_cast<int>(std::min<std::int64_t>(how.columns, outputs - x));
      const std::int64_t columns = form.input_columns(run.tile.columns);
      const std::int64_t begin = phase + x * s.stride_columns * s.dilation_columns - s.pad_left;
      const auto is_inside = [&](std::int64_t j) {
        const std::int64_t column = begin + j * s.dilation_columns;
        return column >= 0 && column < s.width;
      };
      while (run.tile.first < columns && !is_inside(run.tile.first)) ++run.tile.first;
      run.tile.last = run.tile.first;
      while (run.tile.last < columns && is_inside(run.tile.last)) ++run.tile.last;
      run.from = begin * s.channels;
      run.to = (phase + x * s.dilation_columns) * s.channels * static_cast<std::int64_t>(size_of(form.result));
      if (x > 0 && runs.back().tile == run.tile) ++runs.back().count;
      else runs.push_back(run);
    }
  }
}

void byte_depthwise::generated::make_code(const byte_depthwise_configuration& how, const byte_depthwise_shape& s,
                                          int threads) {
  // Where several threads share the rows of an image, any number of them may be left over.
  const std::int64_t height = s.output_height(), most = std::min<std::int64_t>(how.rows, height);
  std::map<byte_tile, std::size_t> tickets;
  const auto for_each_code = [&](const auto& f) {
    for (byte_run& run : runs)
      for (std::int64_t rows = 1; rows <= most; ++rows)
        for (const bool is_rest : {false, true})
          if ((threads > 1 || rows == most || rows == height % how.rows) && (is_rest ? rest_channels != 0 : whole != 0))
            f(tile_of(run, rows, is_rest), run.code[rows - 1][is_rest ? 1 : 0]);
  };
  for_each_code([&](const byte_tile& tile, byte_tile_function&) {
    if (!tickets.contains(tile)) tickets[tile] = arena.add(generate_byte_tile(form, tile));
  });
  if (const std::string why = arena.seal(); !why.empty()) throw error(error_kind::failure, why, "jit");
  for_each_code([&](const byte_tile& tile, byte_tile_function& code) {
    code = arena.function<byte_tile_function>(tickets.at(tile));
  });
}

void byte_depthwise::generated::run_task(const byte_depthwise_configuration& how, const byte_depthwise_shape& s,
                                         const byte_depthwise_call& c, const byte_task& task) const {
  const std::uint8_t* rows[most_input_rows];
  const auto* const image = static_cast<const std::uint8_t*>(c.from) + task.image * s.height * s.width * s.channels;
  const std::int64_t first = task.first_row * s.stride_rows - s.pad_top;
  for (int i = 0; i < form.input_rows(static_cast<int>(task.rows)); ++i) {
    const bool is_inside = first + i >= 0 && first + i < s.height;
    rows[i] = is_inside ? image + (first + i) * s.width * s.channels : pad_row.data();
  }
  byte_tile_call call;
  call.rows = rows;
  call.pad = pad_row.data();
  call.constants = constants;
  auto* const to =
      static_cast<std::byte*>(c.to) + (task.image * s.output_height() + task.first_row) * form.to_row_bytes;
  const auto size = static_cast<std::int64_t>(size_of(form.result));
  const auto is_rest = [&](std::int64_t vector) { return vector >= whole; };
  const auto run_vectors = [&](const byte_run& run, std::int64_t tile, std::int64_t vector, std::int64_t count) {
    call.offset = run.from + tile * run.tile.columns * form.stride_columns * form.pixel_bytes + vector * block_channels;
    call.to = to + run.to + tile * run.tile.columns * form.to_pixel_bytes + vector * block_channels * size;
    call.weights = c.weights + vector * byte_weights_size(form, block_channels);
    call.terms = terms.data() + vector * byte_terms_size(block_channels);
    call.count = count;
    run.code[task.rows - 1][is_rest(vector) ? 1 : 0](&call);
  };
  if (how.order == byte_depthwise_order::columns) {
    for (std::int64_t v = task.first_vector; v < task.last_vector; ++v)
      for (const byte_run& run : runs) {
        call.offset_step = run.tile.columns * form.stride_columns * form.pixel_bytes;
        call.to_step = run.tile.columns * form.to_pixel_bytes;
        run_vectors(run, 0, v, run.count);
      }
    return;
  }
  call.offset_step = block_channels;
  call.weights_step = byte_weights_size(form, block_channels);
  call.terms_step = byte_terms_size(block_channels);
  call.to_step = block_channels * size;
  const std::int64_t last_whole = std::min(task.last_vector, whole);
  for (const byte_run& run : runs)
    for (std::int64_t tile = 0; tile < run.count; ++tile) {
      if (task.first_vector < last_whole) run_vectors(run, tile, task.first_vector, last_whole - task.first_vector);
      if (is_rest(task.last_vector - 1)) run_vectors(run, tile, whole, 1);
    }
}

// The kernel ------------------------------------------------------------------------------------------------------------

byte_depthwise::byte_depthwise(const byte_depthwise_configuration& how, const byte_depthwise_shape& shape,
                               const byte_depthwise_terms& terms, const std::int8_t* weights, int threads)
    : how_(how), shape_(shape), terms_(checked(how, shape, terms)), threads_(std::max(threads, 1)) {
  refusal_ = how.is_replica() ? "its configuration is for the replica" : refusal_of_bytes();
  if (refusal_.empty()) generated_ = std::make_unique<const generated>(how, shape, terms_, weights, threads_);
}
byte_depthwise::~byte_depthwise() = default;

void byte_depthwise::run(const byte_depthwise_call& call) const {
  const std::int64_t height = shape_.output_height();
  // Measured, about: as many lanes of float32 would take as long.
  const double row_cost = 0.4 * static_cast<double>(shape_.output_width() * shape_.channels *
                                                    (shape_.taps() + 4 * shape_.stride_columns - 2));
  if (generated_ == nullptr) {
    const byte_replica_function run_row = byte_replica(terms_.source);
    even_shares(threads_, shape_.batch * height, 5 * row_cost, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row)
        run_row({shape_, terms_,
                 static_cast<const std::uint8_t*>(call.from) +
                     row / height * shape_.height * shape_.width * shape_.channels,
                 reinterpret_cast<const float*>(call.weights),
                 static_cast<std::byte*>(call.to) +
                     row * shape_.output_width() * shape_.channels * static_cast<std::int64_t>(size_of(terms_.result)),
                 row % height});
    });
    return;
  }
  const std::int64_t vectors = parts_of(shape_.channels, block_channels), rows = shape_.batch * height;
  // Neighbouring lines of a cache are best left to one thread. Channels are divided only if there is not a row for each.
  const std::int64_t parts = std::min(parts_of(threads_, rows), vectors);
  even_shares(threads_, parts * rows, row_cost / static_cast<double>(parts), [&](std::int64_t i, std::int64_t end) {
    while (i < end) {
      const std::int64_t part = i / rows, row = i % rows, y = row % height;
      const std::int64_t count = std::min({std::int64_t{how_.rows}, height - y, end - i});
      generated_->run_task(how_, shape_, call,
                           {row / height, y, count, vectors * part / parts, vectors * (part + 1) / parts});
      i += count;
    }
  });
}

}  // namespace collage::inline v0::detail::jit
