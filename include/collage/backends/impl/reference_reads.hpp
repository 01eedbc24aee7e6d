// The elements that one element of a result is computed from, for kinds whose elements can be computed one by one.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/backends/impl/reference_strides.hpp>
#include <collage/backends/impl/reference_taps.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/conv_transpose.hpp>
#include <collage/op/kind.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/pool.hpp>
#include <collage/op/reduce.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {

/// A run of elements of two operands whose products are added.
struct product_run {
  std::int64_t a = 0, a_step = 0;  ///< the first element of the first operand, and the distance to the next
  std::int64_t b = 0, b_step = 0;
  std::int64_t count = 0;
};

/// The elements of the input and the weights that an element of a convolution reads.
class conv_reads {
 public:
  conv_reads(const ops::conv_attributes& a, const reference_call& call)
      : g_(geometry_of(a, call.in[0].type.dims, call.out[0].type.dims, call.in[1].type.dims.from(2))),
        steps_(dense_steps(g_.extent)),
        filters_(call.in[1].type.dims[0]),
        channels_(call.in[1].type.dims[1]),
        groups_(a.groups),
        places_(g_.places.elements()),
        extent_(g_.extent.elements()),
        taps_(g_.window.elements()) {}

  double most() const { return static_cast<double>(channels_ * taps_); }
  /// The element of the bias.
  std::int64_t bias(std::int64_t element) const { return element / places_ % filters_; }
  /// Calls run(product_run) for each tap that is inside the input.
  template <class Run>
  void visit(std::int64_t element, const Run& run) const {
    const std::int64_t filter = bias(element);
    const std::int64_t group = element / places_ / filters_ * groups_ + filter / (filters_ / groups_);
    const shape place = unravel(element % places_, g_.places);
    for (std::int64_t t = 0; t < taps_; ++t) {
      const shape tap = unravel(t, g_.window);
      std::int64_t from = group * channels_ * extent_;
      bool is_inside = true;
      for (std::size_t d = 0; d < g_.rank(); ++d) {
        const std::int64_t at = place[d] * g_.strides[d] + g_.offset(d, tap[d]);
        is_inside = is_inside && at >= 0 && at < g_.extent[d];
        from += is_inside ? at * steps_[d] : 0;
      }
      if (is_inside) run(product_run{from, extent_, filter * channels_ * taps_ + t, taps_, channels_});
    }
  }

 private:
  window_geometry g_;
  shape steps_;
  std::int64_t filters_, channels_, groups_, places_, extent_, taps_;
};

/// The same for a transposed convolution. Its geometry is that of the convolution from its output to its input.
class conv_transpose_reads {
 public:
  conv_transpose_reads(const ops::conv_transpose_attributes& a, const reference_call& call)
      : g_(geometry_of(a, call.out[0].type.dims, call.in[0].type.dims, call.in[1].type.dims.from(2))),
        steps_(dense_steps(g_.places)),
        groups_(a.groups),
        depth_(call.in[1].type.dims[0] / a.groups),
        channels_(call.in[1].type.dims[1]),
        places_(g_.places.elements()),
        extent_(g_.extent.elements()),
        taps_(g_.window.elements()) {}

  double most() const { return static_cast<double>(depth_ * taps_); }
  std::int64_t bias(std::int64_t element) const { return element / extent_ % (groups_ * channels_); }
  template <class Run>
  void visit(std::int64_t element, const Run& run) const {
    const std::int64_t plane = element / extent_;
    const std::int64_t image = plane / (groups_ * channels_), group = plane / channels_ % groups_;
    const shape to = unravel(element % extent_, g_.extent);
    for (std::int64_t t = 0; t < taps_; ++t) {
      const shape tap = unravel(t, g_.window);
      std::int64_t from = (image * groups_ + group) * depth_ * places_;
      bool is_inside = true;
      for (std::size_t d = 0; d < g_.rank(); ++d) {
        const std::int64_t reached = to[d] - g_.offset(d, tap[d]);
        const std::int64_t at = reached / g_.strides[d];
        is_inside = is_inside && reached >= 0 && reached % g_.strides[d] == 0 && at < g_.places[d];
        from += is_inside ? at * steps_[d] : 0;
      }
      const std::int64_t weight = (group * depth_ * channels_ + plane % channels_) * taps_ + t;
      if (is_inside) run(product_run{from, places_, weight, channels_ * taps_, depth_});
    }
  }

 private:
  window_geometry g_;
  shape steps_;
  std::int64_t groups_, depth_, channels_, places_, extent_, taps_;
};

/// The same for a matrix product: a row and a column.
class matmul_reads {
 public:
  matmul_reads(const ops::matmul_attributes& t, const reference_call& call) {
    const shape &a = call.in[0].type.dims, &b = call.in[1].type.dims;
    const auto e = decltype(ops::matmul)::extents_of(t, a, b);
    m_ = e.m;
    n_ = e.n;
    k_ = e.k_a;
    // An operand of rank 1 is never transposed.
    swaps_a_ = t.transpose_a && a.rank > 1;
    swaps_b_ = t.transpose_b && b.rank > 1;
    bool fits = true;
    batch_ = broadcast(e.batch_a, e.batch_b, fits);
    a_steps_ = broadcast_steps(e.batch_a, batch_);
    b_steps_ = broadcast_steps(e.batch_b, batch_);
  }

  double most() const { return static_cast<double>(k_); }
  std::int64_t bias(std::int64_t) const { return 0; }
  template <class Run>
  void visit(std::int64_t element, const Run& run) const {
    const shape which = unravel(element / (m_ * n_), batch_);
    std::int64_t a = 0, b = 0;
    for (std::size_t d = 0; d < which.size(); ++d) {
      a += which[d] * a_steps_[d];
      b += which[d] * b_steps_[d];
    }
    const std::int64_t row = element / n_ % m_, column = element % n_;
    a = a * m_ * k_ + row * (swaps_a_ ? 1 : k_);
    b = b * k_ * n_ + column * (swaps_b_ ? k_ : 1);
    run(product_run{a, swaps_a_ ? m_ : 1, b, swaps_b_ ? 1 : n_, k_});
  }

 private:
  std::int64_t m_ = 0, n_ = 0, k_ = 0;
  bool swaps_a_ = false, swaps_b_ = false;
  shape batch_, a_steps_, b_steps_;
};

/// The elements of the input under a place of a pooling window.
class pool_reads {
 public:
  pool_reads(const ops::pool_attributes& a, const reference_call& call)
      : g_(geometry_of(a, call.in[0].type.dims, call.out[0].type.dims, a.window)),
        pads_end_(a.pads_end),
        steps_(dense_steps(g_.extent)),
        places_(g_.places.elements()),
        extent_(g_.extent.elements()),
        taps_(g_.window.elements()) {}

  double most() const { return static_cast<double>(taps_); }
  /// Calls body(element of the input) for each tap inside the input. Returns how many taps are inside the input and its pads.
  template <class Body>
  std::int64_t visit(std::int64_t element, const Body& body) const {
    const shape place = unravel(element % places_, g_.places);
    std::int64_t padded = 0;
    for (std::int64_t t = 0; t < taps_; ++t) {
      const shape tap = unravel(t, g_.window);
      std::int64_t from = element / places_ * extent_;
      bool is_inside = true, is_padded = true;
      for (std::size_t d = 0; d < g_.rank(); ++d) {
        const std::int64_t at = place[d] * g_.strides[d] + g_.offset(d, tap[d]);
        is_inside = is_inside && at >= 0 && at < g_.extent[d];
        is_padded = is_padded && at >= -g_.pads_begin[d] && at < g_.extent[d] + pads_end_[d];
        from += is_inside ? at * steps_[d] : 0;
      }
      padded += is_padded ? 1 : 0;
      if (is_inside) body(from);
    }
    return padded;
  }

 private:
  window_geometry g_;
  shape pads_end_, steps_;
  std::int64_t places_, extent_, taps_;
};

/// The elements that a reduction folds into one.
class reduce_reads {
 public:
  reduce_reads(const ops::reduce_attributes& a, const reference_call& call) {
    const shape& x = call.in[0].type.dims;
    const shape steps = dense_steps(x);
    shape folded, folded_steps;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool is_folded = std::find(a.axes.begin(), a.axes.end(), static_cast<std::int64_t>(i)) != a.axes.end();
      (is_folded ? folded : kept_).push_back(x[i]);
      (is_folded ? folded_steps : kept_steps_).push_back(steps[i]);
    }
    walk inner(folded, {folded_steps});
    inner.visit_all([&](std::int64_t, std::int64_t count, const std::int64_t* offset) {
      for (std::int64_t i = 0; i < count; ++i) offsets_.push_back(offset[0] + i * inner.step(0));
    });
  }

  double most() const { return static_cast<double>(offsets_.size()); }
  std::int64_t count() const { return static_cast<std::int64_t>(offsets_.size()); }
  /// Calls body(element of the input) in order.
  template <class Body>
  void visit(std::int64_t element, const Body& body) const {
    const shape at = unravel(element, kept_);
    std::int64_t from = 0;
    for (std::size_t d = 0; d < at.size(); ++d) from += at[d] * kept_steps_[d];
    for (const std::int64_t offset : offsets_) body(from + offset);
  }

 private:
  shape kept_, kept_steps_;
  std::vector<std::int64_t> offsets_;
};

/// The element that an operator copies, or one of the elements that an elementwise operator reads: its operand is broadcast.
class strided_reads {
 public:
  strided_reads(const shape& dims, const shape& steps, std::int64_t base = 0)
      : dims_(dims), steps_(steps), base_(base) {}

  std::int64_t operator()(std::int64_t element) const {
    const shape at = unravel(element, dims_);
    std::int64_t from = base_;
    for (std::size_t d = 0; d < at.size(); ++d) from += at[d] * steps_[d];
    return from;
  }

 private:
  shape dims_, steps_;
  std::int64_t base_;
};

/// For transpose, slice and expand.
template <class Attributes>
strided_reads reads_of(const Attributes& a, const reference_call& call) {
  const strided_source from = source_of(a, call);
  return {call.out[0].type.dims, from.steps, from.base};
}

/// The operand that an element of a `concat` comes from, and its number there.
inline std::pair<std::size_t, std::int64_t> source_in_concat(const ops::concat_attributes& a,
                                                             const reference_call& call, std::int64_t element) {
  const auto axis = static_cast<std::size_t>(a.axis);
  const shape& y = call.out[0].type.dims;
  const std::int64_t inner = product(y, axis + 1, y.size());
  const std::int64_t outer = element / (y[axis] * inner);
  std::int64_t along = element / inner % y[axis];
  std::size_t operand = 0;
  while (along >= call.in[operand].type.dims[axis]) along -= call.in[operand++].type.dims[axis];
  return {operand, (outer * call.in[operand].type.dims[axis] + along) * inner + element % inner};
}

}  // namespace collage::inline v0::detail
