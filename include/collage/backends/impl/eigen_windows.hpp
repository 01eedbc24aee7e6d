// Sliding windows as contiguous reads, for convolution and pooling.
//
// A place is one position of the window, which gives one element of the output. A tap is one element of the window. Channels are
// copied with their padding into planes, a band of rows at a time. With a stride of s the input is split into s x s planes, each
// with every s-th row and column. For each tap, neighbouring places then read neighbouring elements. So a tap is one offset into
// the planes, and a whole band of places is one long line.
#pragma once

#include <algorithm>
#include <array>
#include <collage/backends/impl/eigen_tile.hpp>
#include <collage/backends/impl/im2col.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// One spatial dimension. There are always three: depth, rows, columns. Those that a tensor lacks have extent 1.
struct window_axis {
  std::int64_t extent = 1, places = 1, window = 1, stride = 1, dilation = 1, pad = 0;
  /// Where tap k of place 0 reads.
  std::int64_t offset(std::int64_t k) const { return k * dilation - pad; }
};

/// A band: some rows of places, in one slice of the depth.
struct place_band {
  std::int64_t slice = 0, row = 0, rows = 0;
};

/// The arrangement of one channel's planes in scratch memory, and the offsets of the taps in it.
class window_planes {
 public:
  /// At most three spatial dimensions.
  window_planes(const shape& extent, const shape& places, const shape& window, const shape& strides,
                const shape& dilations, const shape& pads) {
    const std::size_t missing = 3 - extent.size();
    for (std::size_t d = missing; d < 3; ++d) {
      const std::size_t from = d - missing;
      axis_[d] = {extent[from], places[from], window[from], strides[from], dilations[from], pads[from]};
    }
    const bool one_line = std::all_of(axis_.begin(), axis_.end(), [](const window_axis& a) {
      return a.window == 1 && a.stride == 1 && a.pad == 0 && a.places == a.extent;
    });
    if (one_line) {  // every place reads its own element: with all places as rows, bands can divide them anywhere
      axis_[1].extent = axis_[1].places = extent.elements();
      axis_[0] = axis_[2] = window_axis{};
    }
    for (std::int64_t k = 0; k < rows().window; ++k) use_phase(row_phases_, k * rows().dilation % rows().stride);
    for (std::int64_t k = 0; k < columns().window; ++k)
      use_phase(column_phases_, k * columns().dilation % columns().stride);
    reach_ = rows().dilation * (rows().window - 1) / rows().stride;
    pitch_ = columns().places + columns().dilation * (columns().window - 1) / columns().stride;
  }

  const window_axis& slices() const { return axis_[0]; }
  const window_axis& rows() const { return axis_[1]; }
  const window_axis& columns() const { return axis_[2]; }
  std::int64_t extent() const { return slices().extent * rows().extent * columns().extent; }
  std::int64_t places() const { return slices().places * rows().places * columns().places; }
  std::int64_t taps() const { return slices().window * rows().window * columns().window; }

  /// The distance in a line from one row of places to the next.
  std::int64_t pitch() const { return pitch_; }
  /// Whether lines hold only places, so that they can be written to the output directly.
  bool dense() const { return pitch_ == columns().places; }
  /// The length of a band's line, including the gaps between its rows of places.
  std::int64_t line(std::int64_t band_rows) const { return (band_rows - 1) * pitch_ + columns().places; }

  /// Sets the largest number of rows of places in a band, and with it the size of the planes.
  void set_band(std::int64_t band_rows) {
    band_ = band_rows;
    plane_ = (band_rows + reach_) * pitch_;
  }
  std::int64_t band() const { return band_; }
  std::int64_t bands() const { return std::max<std::int64_t>(divide_up(rows().places, band_), 1); }
  /// Floats that each row of places adds to a channel's planes.
  std::int64_t row_size() const { return plane_count() * pitch_; }
  /// Floats of one channel's planes.
  std::int64_t channel_size() const { return plane_count() * plane_; }

  /// The taps in depth that read inside the input, for a slice of places: [first, last).
  place_range taps_in_depth(std::int64_t slice) const {
    place_range r{slices().window, 0};
    for (std::int64_t k = 0; k < slices().window; ++k) {
      const std::int64_t at = slice * slices().stride + slices().offset(k);
      if (at < 0 || at >= slices().extent) continue;
      r.first = std::min(r.first, k);
      r.last = k + 1;
    }
    r.first = std::min(r.first, r.last);
    return r;
  }

  /// Appends the offsets of one channel's taps, in the order of the window, without taps outside of `depth`. `tap.w` counts all
  /// taps of the window.
  void append_taps(place_range depth, std::int64_t x_offset, std::int64_t w_offset, std::vector<tap>& to) const {
    for (std::int64_t d = depth.first; d < depth.last; ++d)
      for (std::int64_t r = 0; r < rows().window; ++r)
        for (std::int64_t c = 0; c < columns().window; ++c) {
          const std::int64_t row = r * rows().dilation;
          const std::int64_t column = c * columns().dilation;
          const std::int64_t phase = phase_index(row_phases_, row % rows().stride) * count(column_phases_) +
                                     phase_index(column_phases_, column % columns().stride);
          const std::int64_t plane = d * count(row_phases_) * count(column_phases_) + phase;
          const std::int64_t x = plane * plane_ + row / rows().stride * pitch_ + column / columns().stride;
          const std::int64_t w = (d * rows().window + r) * columns().window + c;
          to.push_back({static_cast<std::int32_t>(x_offset + x), static_cast<std::int32_t>(w_offset + w)});
        }
  }

  /// Copies the elements of one channel that a band reads. The channel begins at `from`. Elements outside of the input become
  /// `padding`.
  void fill(const float* from, const place_band& band, float padding, float* to) const {
    const place_range depth = taps_in_depth(band.slice);
    for (std::int64_t d = depth.first; d < depth.last; ++d) {
      const std::int64_t slice = band.slice * slices().stride + slices().offset(d);
      const float* const image = from + slice * rows().extent * columns().extent;
      for (std::int64_t r = 0; r < count(row_phases_); ++r)
        for (std::int64_t c = 0; c < count(column_phases_); ++c) {
          float* const plane = to + ((d * count(row_phases_) + r) * count(column_phases_) + c) * plane_;
          fill_plane(image, band, row_phases_[static_cast<std::size_t>(r)], column_phases_[static_cast<std::size_t>(c)],
                     padding, plane);
        }
    }
  }

 private:
  using phases = std::vector<std::int64_t>;

  static std::int64_t count(const phases& list) { return static_cast<std::int64_t>(list.size()); }
  static void use_phase(phases& list, std::int64_t phase) {
    if (std::find(list.begin(), list.end(), phase) == list.end()) list.push_back(phase);
  }
  static std::int64_t phase_index(const phases& list, std::int64_t phase) {
    return std::find(list.begin(), list.end(), phase) - list.begin();
  }
  std::int64_t plane_count() const { return slices().window * count(row_phases_) * count(column_phases_); }

  void fill_plane(const float* image, const place_band& band, std::int64_t row_phase, std::int64_t column_phase,
                  float padding, float* to) const {
    const window_axis& r = rows();
    const window_axis& c = columns();
    const std::int64_t lines = band.rows + reach_;
    const std::int64_t first_row = band.row * r.stride + row_phase - r.pad;
    const place_range inside = places_inside(lines, r.stride, first_row, r.extent);
    const std::int64_t first_column = column_phase - c.pad;
    const place_range columns_inside = places_inside(pitch_, c.stride, first_column, c.extent);
    const bool small = lines * pitch_ <= 1024;  // one fill costs less than finding the padding
    if (small) {
      std::fill_n(to, lines * pitch_, padding);
    } else {
      std::fill_n(to, inside.first * pitch_, padding);
      std::fill(to + inside.last * pitch_, to + lines * pitch_, padding);
    }
    if (inside.first == inside.last) return;
    if (r.stride == 1 && c.stride == 1 && pitch_ == c.extent && c.pad == 0) {  // input rows are contiguous
      std::copy_n(image + (first_row + inside.first) * c.extent, (inside.last - inside.first) * pitch_,
                  to + inside.first * pitch_);
      return;
    }
    const std::int64_t count = columns_inside.last - columns_inside.first;
    for (std::int64_t line = inside.first; line < inside.last; ++line) {
      const float* const row = image + (first_row + line * r.stride) * c.extent;
      float* const out = to + line * pitch_;
      if (count > 0)
        copy_run(row + first_column + columns_inside.first * c.stride, c.stride, count, out + columns_inside.first);
      if (small) continue;
      std::fill_n(out, columns_inside.first, padding);
      std::fill(out + columns_inside.last, out + pitch_, padding);
    }
  }

  std::array<window_axis, 3> axis_{};
  phases row_phases_, column_phases_;
  std::int64_t reach_ = 0;  ///< rows of a plane beyond the rows of places
  std::int64_t pitch_ = 1;
  std::int64_t band_ = 1, plane_ = 1;
};

/// Copies the rows of places out of a line, without the gaps.
inline void copy_line(const window_planes& planes, const float* line, std::int64_t rows, float* to) {
  for (std::int64_t r = 0; r < rows; ++r)
    copy_run(line + r * planes.pitch(), planes.columns().places, to + r * planes.columns().places);
}

}  // namespace
}  // namespace collage::inline v0::detail::host
