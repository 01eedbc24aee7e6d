// Convolution with Eigen's packets.
#pragma once

#include <algorithm>
#include <collage/backends/impl/conv_shape.hpp>
#include <collage/backends/impl/eigen_tile.hpp>
#include <collage/backends/impl/eigen_windows.hpp>
#include <collage/backends/impl/elementwise_run.hpp>
#include <collage/backends/impl/im2col.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/error.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// The positions of a convolution's operands among the kernel's arguments.
struct conv_arguments {
  std::size_t x = 0, w = 1, bias = match_record::nothing;
};

/// A convolution with up to three spatial dimensions and any number of groups. A task computes a band of places of one image, for
/// several groups or for some filters of one group.
class eigen_conv {
 public:
  eigen_conv(const conv_shape& s, const conv_arguments& arguments, int threads, elementwise_program program)
      : s_(s),
        arguments_(arguments),
        then_(std::move(program)),
        threads_(threads),
        planes_(s.extent, s.places, s.window, s.strides, s.dilations, s.pads) {
    divide();
    constexpr std::int64_t limit = 0x7FFFFFFF;
    if (planes_size() > limit || s_.depth() * max_outputs > limit)
      throw error(error_kind::unsupported, "a window reads more than 2^31 elements", "eigen conv");
    if (in_place_) add_taps_in_place();
    else
      for (std::int64_t slice = 0; slice < planes_.slices().places; ++slice) add_taps(planes_.taps_in_depth(slice));
  }

  kernel make() && {
    const auto workspace = static_cast<std::size_t>(scratch() * threads_) * sizeof(float);
    const std::string name = s_.pointwise()        ? "pointwise tiles"
                             : s_.in_channels == 1 ? "depthwise tiles"
                                                   : "direct tiles";
    return kernel(name, std::move(*this), workspace);
  }

  void operator()(const kernel_call& call) const {
    if (s_.out_channels == 0 || planes_.places() == 0) return;
    parallel(threads_, tasks(), [&](std::int64_t index, int thread) {
      run(call, index, static_cast<float*>(call.workspace) + thread * scratch());
    });
  }

 private:
  std::int64_t tasks() const {
    return s_.images * group_pieces_ * planes_.slices().places * planes_.bands() * filter_pieces_;
  }
  /// Scratch floats of the planes, padded so that tiles can read whole packets.
  std::int64_t planes_size() const {
    return in_place_ ? s_.in_channels * lanes : round_up(s_.in_channels * planes_.channel_size() + lanes, 16);
  }
  std::int64_t line_size() const { return round_up(planes_.line(planes_.band()), 16); }
  std::int64_t scratch() const { return planes_size() + (planes_.dense() ? 0 : max_outputs * line_size()); }

  void divide() {
    if (s_.work() < 3e5) threads_ = 1;  // about 6 microseconds: too little to divide
    // Lines of a pointwise convolution are contiguous in the input and need no copy. Channels a multiple of 2 KiB apart are
    // copied all the same: they would fall into the same few sets of the cache.
    in_place_ = s_.pointwise() && planes_.extent() % 512 != 0;
    // The planes of a band fit into the second-level cache, where they stay while all filters pass over them.
    constexpr std::int64_t most = 131072;
    const std::int64_t room = most / std::max<std::int64_t>(s_.in_channels * planes_.row_size(), 1);
    const std::int64_t reach = planes_.rows().dilation * (planes_.rows().window - 1) / planes_.rows().stride;
    const std::int64_t rows = std::max<std::int64_t>(planes_.rows().places, 1);
    if (in_place_ && s_.in_channels * planes_.extent() > 0x7FFFFFFF) in_place_ = false;
    std::int64_t bands = divide_up(rows, std::clamp<std::int64_t>(room - reach, 1, rows));
    // Each thread gets two tasks, so that one delayed task does not delay the run. Bands of less than two tiles waste columns.
    const std::int64_t wanted = threads_ <= 1 ? 1 : 2 * threads_;
    const std::int64_t others = std::max<std::int64_t>(s_.images * s_.groups * planes_.slices().places, 1);
    const std::int64_t least_rows = divide_up(2 * max_packets * lanes, std::max<std::int64_t>(planes_.pitch(), 1));
    if (others * bands < wanted)
      bands = std::clamp(divide_up(wanted, others), bands, std::max(bands, rows / least_rows));
    const std::int64_t band = divide_up(rows, bands);
    planes_.set_band(in_place_ && bands > 1 ? round_up(band, lanes) : band);

    const std::int64_t all = others * planes_.bands();
    if (all < wanted) {
      filters_ = round_up(divide_up(std::max<std::int64_t>(s_.out_channels, 1), divide_up(wanted, all)), max_outputs);
      filter_pieces_ = std::max<std::int64_t>(divide_up(s_.out_channels, filters_), 1);
    } else {
      filters_ = s_.out_channels;
    }
    // Small groups share a task.
    const double group_work = s_.work() / static_cast<double>(std::max<std::int64_t>(all, 1));
    const auto together = static_cast<std::int64_t>(1e5 / (group_work + 1));
    groups_ = std::clamp<std::int64_t>(std::min(together, all / wanted), 1, std::max<std::int64_t>(s_.groups, 1));
    group_pieces_ = divide_up(s_.groups, groups_);
    together_ = groups_ > 1 && planes_.bands() == 1 && planes_.slices().places == 1 && filter_pieces_ == 1;
  }

  /// Adds the list of taps of a slice. Slices that see the same part of the window share a list.
  void add_taps(place_range depth) {
    const auto same = [&](const place_range& r) { return r.first == depth.first && r.last == depth.last; };
    const auto found = std::find_if(depths_.begin(), depths_.end(), same);
    list_of_slice_.push_back(static_cast<std::size_t>(found - depths_.begin()));
    if (found != depths_.end()) return;
    depths_.push_back(depth);
    std::vector<tap>& list = lists_.emplace_back();
    for (std::int64_t c = 0; c < s_.in_channels; ++c)
      planes_.append_taps(depth, c * planes_.channel_size(), c * planes_.taps(), list);
  }

  /// Adds two lists: for lines in the input, and for the rest of a line after its last whole packet. The rest is copied, because
  /// a whole packet of the last channel would reach beyond the input.
  void add_taps_in_place() {
    list_of_slice_ = {0};
    lists_.resize(2);
    for (std::int64_t c = 0; c < s_.in_channels; ++c) {
      lists_[0].push_back({static_cast<std::int32_t>(c * planes_.extent()), static_cast<std::int32_t>(c)});
      lists_[1].push_back({static_cast<std::int32_t>(c * lanes), static_cast<std::int32_t>(c)});
    }
  }

  void run(const kernel_call& call, std::int64_t index, float* memory) const {
    const std::int64_t piece = index % filter_pieces_;
    index /= filter_pieces_;
    place_band band;
    band.row = index % planes_.bands() * planes_.band();
    band.rows = std::min(planes_.band(), planes_.rows().places - band.row);
    index /= planes_.bands();
    band.slice = index % planes_.slices().places;
    index /= planes_.slices().places;
    const std::int64_t image = index / group_pieces_;
    const std::int64_t first = index % group_pieces_ * groups_;
    const std::int64_t last = std::min(first + groups_, s_.groups);
    for (std::int64_t group = first; group < last; ++group)
      run_group(call, image * s_.groups + group, group, band, piece * filters_, memory);
    if (together_) {
      const std::int64_t group_size = s_.out_channels * planes_.places();
      const std::int64_t start = (image * s_.groups + first) * group_size;
      run_program<eigen_math>(then_, call.in, static_cast<float*>(call.out[0]), start,
                              start + (last - first) * group_size);
    }
  }

  /// `source` counts the groups of all images.
  void run_group(const kernel_call& call, std::int64_t source, std::int64_t group, const place_band& band,
                 std::int64_t filter, float* memory) const {
    const float* const x =
        static_cast<const float*>(call.in[arguments_.x]) + source * s_.in_channels * planes_.extent();
    const std::int64_t whole = in_place_ ? band.rows / lanes * lanes : 0;  // columns that are read in the input
    if (in_place_)
      for (std::int64_t c = 0; c < s_.in_channels; ++c)
        copy_run(x + c * planes_.extent() + band.row + whole, band.rows - whole, memory + c * lanes);
    else
      for (std::int64_t c = 0; c < s_.in_channels; ++c)
        planes_.fill(x + c * planes_.extent(), band, 0.0F, memory + c * planes_.channel_size());
    float* const out = static_cast<float*>(call.out[0]);
    const std::int64_t places = planes_.places();
    const std::int64_t row_places = planes_.columns().places;
    const std::int64_t position = (band.slice * planes_.rows().places + band.row) * row_places;
    const std::vector<tap>& taps = in_place_ ? lists_[1] : lists_[list_of_slice_[static_cast<std::size_t>(band.slice)]];
    const std::int64_t filters = std::min(filters_, s_.out_channels - filter);
    const std::int64_t channel = group * s_.out_channels + filter;
    tile t;
    t.x = memory;
    t.taps = taps.data();
    t.depth = static_cast<std::int64_t>(taps.size());
    t.w_row = s_.depth();
    t.columns = planes_.line(band.rows) - whole;
    float* const line = memory + planes_size();
    for (std::int64_t f = 0; f < filters; f += max_outputs) {
      const std::int64_t here = std::min<std::int64_t>(max_outputs, filters - f);
      const std::int64_t start = (source * s_.out_channels + filter + f) * places + position;
      t.w = static_cast<const float*>(call.in[arguments_.w]) + (channel + f) * s_.depth();
      if (arguments_.bias != match_record::nothing)
        t.bias = static_cast<const float*>(call.in[arguments_.bias]) + channel + f;
      t.out = planes_.dense() ? out + start + whole : line;
      t.out_row = planes_.dense() ? places : line_size();
      if (whole != 0) {
        tile first = t;
        first.x = x + band.row;
        first.taps = lists_[0].data();
        first.out = out + start;
        first.columns = whole;
        run_tiles(first, here);
      }
      if (t.columns != 0) run_tiles(t, here);
      if (!planes_.dense())
        for (std::int64_t o = 0; o < here; ++o)
          copy_line(planes_, line + o * line_size(), band.rows, out + start + o * places);
      if (!together_) run_program<eigen_math>(then_, call.in, out, start, here, band.rows * row_places, places);
    }
  }

  conv_shape s_;
  conv_arguments arguments_;
  elementwise_program then_;
  int threads_;
  window_planes planes_;
  bool in_place_ = false;
  std::int64_t groups_ = 1, group_pieces_ = 1;    ///< groups of a task, and into how many tasks they are divided
  std::int64_t filters_ = 1, filter_pieces_ = 1;  ///< filters of a task, and into how many tasks they are divided
  bool together_ = false;  ///< a task's output is contiguous, and the fused operators run over it once
  std::vector<place_range> depths_;
  std::vector<std::vector<tap>> lists_;
  std::vector<std::size_t> list_of_slice_;
};

/// A convolution with any number of spatial dimensions: im2col, one tile of places at a time.
class eigen_conv_columns {
 public:
  eigen_conv_columns(const conv_shape& s, const conv_arguments& arguments, int threads, elementwise_program program)
      : s_(s), arguments_(arguments), then_(std::move(program)), threads_(threads) {
    width_ = std::min<std::int64_t>(max_packets * lanes, round_up(std::max<std::int64_t>(s.place_count(), 1), lanes));
    if (s_.depth() * std::max<std::int64_t>(width_, max_outputs) > 0x7FFFFFFF)
      throw error(error_kind::unsupported, "a window reads more than 2^31 elements", "eigen conv");
    for (std::int64_t k = 0; k < s_.depth(); ++k)
      taps_.push_back({static_cast<std::int32_t>(k * width_), static_cast<std::int32_t>(k)});
  }

  kernel make() && {
    const auto workspace = static_cast<std::size_t>(scratch() * threads_) * sizeof(float);
    return kernel("im2col tiles", std::move(*this), workspace);
  }

  void operator()(const kernel_call& call) const {
    if (s_.out_channels == 0 || s_.place_count() == 0) return;
    const std::int64_t pieces = divide_up(s_.place_count(), width_);
    parallel(threads_, s_.images * s_.groups * pieces, [&](std::int64_t index, int thread) {
      const std::int64_t source = index / pieces;
      const std::int64_t first = index % pieces * width_;
      float* const columns = static_cast<float*>(call.workspace) + thread * scratch();
      const std::int64_t channel = source % s_.groups * s_.out_channels;
      tile t;
      t.x = columns;
      t.taps = taps_.data();
      t.depth = s_.depth();
      t.w = static_cast<const float*>(call.in[arguments_.w]) + channel * s_.depth();
      t.w_row = s_.depth();
      t.columns = std::min(width_, s_.place_count() - first);
      im2col(s_, static_cast<const float*>(call.in[arguments_.x]) + source * s_.in_channels * s_.extent_size(), first,
             first + t.columns, columns, width_);
      if (arguments_.bias != match_record::nothing)
        t.bias = static_cast<const float*>(call.in[arguments_.bias]) + channel;
      const std::int64_t start = source * s_.out_channels * s_.place_count() + first;
      t.out = static_cast<float*>(call.out[0]) + start;
      t.out_row = s_.place_count();
      run_tiles(t, s_.out_channels);
      run_program<eigen_math>(then_, call.in, static_cast<float*>(call.out[0]), start, s_.out_channels, t.columns,
                              s_.place_count());
    });
  }

 private:
  std::int64_t scratch() const { return round_up(s_.depth() * width_ + lanes, 16); }

  conv_shape s_;
  conv_arguments arguments_;
  elementwise_program then_;
  int threads_;
  std::int64_t width_ = 1;
  std::vector<tap> taps_;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
