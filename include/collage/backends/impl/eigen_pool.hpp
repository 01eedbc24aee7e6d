// Pooling with Eigen's packets.
#pragma once

#include <algorithm>
#include <collage/backends/impl/eigen_windows.hpp>
#include <collage/backends/impl/elementwise_run.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/op/pool.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Folds a window's taps along a line by maximum or sum: out[j] = fold over taps of x[tap.x + j].
template <bool Largest, int Packets>
void fold_taps(const float* x, const std::vector<tap>& taps, float* out) {
  using namespace Eigen::internal;
  packet fold[Packets];
  for (int p = 0; p < Packets; ++p) fold[p] = pset1<packet>(Largest ? -std::numeric_limits<float>::infinity() : 0.0F);
  for (const tap& t : taps)
    for (int p = 0; p < Packets; ++p) {
      const packet element = ploadu<packet>(x + t.x + p * lanes);
      if constexpr (Largest) fold[p] = pmax<Eigen::PropagateNaN>(fold[p], element);
      else fold[p] = padd(fold[p], element);
    }
  for (int p = 0; p < Packets; ++p) pstoreu(out + p * lanes, fold[p]);
}

/// Pooling with up to three spatial dimensions. The work is divided by channels and by bands of places.
class eigen_pool {
 public:
  eigen_pool(const any_match& m, std::uint32_t node, bool largest, std::size_t argument, int threads,
             elementwise_program program)
      : largest_(largest),
        argument_(argument),
        then_(std::move(program)),
        threads_(threads),
        planes_(spatial(m.type_of(m.inputs_of(node)[0])), spatial(m.type_of(m.output_of(node))),
                m.attributes(node, ops::average_pool).window, m.attributes(node, ops::average_pool).strides,
                m.attributes(node, ops::average_pool).dilations, m.attributes(node, ops::average_pool).pads_begin) {
    const tensor_type& x = m.type_of(m.inputs_of(node)[0]);
    const ops::pool_attributes a = m.attributes(node, ops::average_pool);
    channels_ = x.dims[0] * x.dims[1];
    constexpr std::int64_t most = 98304;
    const std::int64_t rows = std::max<std::int64_t>(planes_.rows().places, 1);
    const std::int64_t room = std::clamp<std::int64_t>(most / std::max<std::int64_t>(planes_.row_size(), 1), 1, rows);
    planes_.set_band(divide_up(rows, divide_up(rows, room)));
    for (std::int64_t slice = 0; slice < planes_.slices().places; ++slice)
      planes_.append_taps(planes_.taps_in_depth(slice), 0, 0, taps_.emplace_back());
    if (!largest) count_elements(a, spatial(x), spatial(m.type_of(m.output_of(node))));
  }

  kernel make() && {
    const auto workspace = static_cast<std::size_t>(scratch() * threads_) * sizeof(float);
    const std::string name = largest_ ? "max tiles" : "mean tiles";
    return kernel(name, std::move(*this), workspace);
  }

  void operator()(const kernel_call& call) const {
    if (planes_.places() == 0 || channels_ == 0) return;
    const std::int64_t pieces = planes_.slices().places * planes_.bands();
    const double work =
        static_cast<double>(planes_.taps() + 4) * static_cast<double>(planes_.places()) / static_cast<double>(pieces);
    const double all = work * static_cast<double>(channels_ * pieces);
    const std::int64_t tasks = std::clamp<std::int64_t>(static_cast<std::int64_t>(all / 65536), 1, 4 * threads_);
    // A task is a range of all (channel, slice, band), in this order.
    parallel(threads_, threads_ == 1 ? 1 : tasks, [&](std::int64_t part, int thread) {
      const std::int64_t parts = threads_ == 1 ? 1 : tasks;
      float* const memory = static_cast<float*>(call.workspace) + thread * scratch();
      for (std::int64_t i = channels_ * pieces * part / parts; i < channels_ * pieces * (part + 1) / parts; ++i)
        run(call, i / pieces, i % pieces, memory);
    });
  }

 private:
  static shape spatial(const tensor_type& t) { return t.dims.from(2); }
  std::int64_t planes_size() const { return round_up(planes_.channel_size() + max_packets * lanes, 16); }
  std::int64_t scratch() const { return planes_size() + round_up(planes_.line(planes_.band()), lanes * max_packets); }

  /// Computes the factor of each place's mean. With `count_padding` the divisor counts the pads, but not the elements beyond them
  /// that a last, partial window covers. `result` has the places of each dimension. `planes_` may have merged dimensions.
  void count_elements(const ops::pool_attributes& a, const shape& extent, const shape& result) {
    std::vector<std::int64_t> counts = {1};
    for (std::size_t d = 0; d < extent.size(); ++d) {
      const std::int64_t low = a.count_padding ? -a.pads_begin[d] : 0;
      const std::int64_t high = extent[d] + (a.count_padding ? a.pads_end[d] : 0);
      std::vector<std::int64_t> next;
      for (const std::int64_t before : counts)
        for (std::int64_t p = 0; p < result[d]; ++p) {
          std::int64_t here = 0;
          for (std::int64_t k = 0; k < a.window[d]; ++k) {
            const std::int64_t at = p * a.strides[d] + k * a.dilations[d] - a.pads_begin[d];
            here += at >= low && at < high ? 1 : 0;
          }
          next.push_back(before * here);
        }
      counts = std::move(next);
    }
    for (const std::int64_t n : counts) factors_.push_back(1.0F / static_cast<float>(n));
  }

  void run(const kernel_call& call, std::int64_t channel, std::int64_t piece, float* memory) const {
    place_band band;
    band.slice = piece / planes_.bands();
    band.row = piece % planes_.bands() * planes_.band();
    band.rows = std::min(planes_.band(), planes_.rows().places - band.row);
    const float padding = largest_ ? -std::numeric_limits<float>::infinity() : 0.0F;
    planes_.fill(static_cast<const float*>(call.in[argument_]) + channel * planes_.extent(), band, padding, memory);
    float* const line = memory + planes_size();
    const std::vector<tap>& taps = taps_[static_cast<std::size_t>(band.slice)];
    const std::int64_t length = planes_.line(band.rows);
    for (std::int64_t c = 0; c < length; c += lanes * max_packets) {
      if (largest_) fold_taps<true, max_packets>(memory + c, taps, line + c);
      else fold_taps<false, max_packets>(memory + c, taps, line + c);
    }
    const std::int64_t position = (band.slice * planes_.rows().places + band.row) * planes_.columns().places;
    const std::int64_t count = band.rows * planes_.columns().places;
    const std::int64_t start = channel * planes_.places() + position;
    float* const out = static_cast<float*>(call.out[0]);
    copy_line(planes_, line, band.rows, out + start);
    if (!largest_) array_map(out + start, count) *= const_array_map(factors_.data() + position, count);
    run_program<eigen_math>(then_, call.in, out, start, start + count);
  }

  bool largest_;
  std::size_t argument_;
  elementwise_program then_;
  int threads_;
  window_planes planes_;
  std::int64_t channels_ = 0;
  std::vector<std::vector<tap>> taps_;  ///< for each slice
  std::vector<float> factors_;          ///< for each place
};

}  // namespace
}  // namespace collage::inline v0::detail::host
