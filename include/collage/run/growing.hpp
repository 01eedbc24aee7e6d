// Caches that grow with every run, such as the keys and values of attention, without an engine for each length.
//
// A network reads a cache and returns it with new elements behind the old ones. A session would make an engine for each length. Here
// the cache lies in memory of a larger extent, its capacity, and the network runs at that extent. Elements past the cache are zeros,
// and a mask among the inputs says that they do not count. After a run only the new elements are copied. So there is one engine for
// each capacity and number of new elements (docs/changing-shapes.md).
#pragma once

#include <collage/run/buckets.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/network_source.hpp>
#include <collage/run/session.hpp>
#include <collage/run/tensor.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0 {

/// An input, and the output that has its elements with new ones behind them in one dimension.
struct growing_cache {
  std::string input;
  std::string output;
  std::size_t dimension = 0;
  /// The extents of the input, of which that in `dimension` does not count. Needed if another extent is open, unless another input
  /// has an extent of the same symbol: then the cache gets that one.
  shape dims = {};
};

/// An input with an extent that counts the elements of the caches and the new ones, as a mask of attention. The padding stands between
/// both.
struct cache_mask {
  std::string input;
  std::size_t dimension = 0;
  double value =
      0;  ///< "does not count"; must be exact in the input's element type, unless that is a floating-point type
};

struct growing_options {
  std::vector<growing_cache> caches;     ///< all have the same length
  std::vector<std::int64_t> capacities;  ///< none negative, in any order; 0 gives empty caches to the first run
  std::vector<cache_mask> masks = {};
};

/// One thread's runs of a session with growing caches, for one sequence at a time. The session carries no state.
///
/// Whether elements past the caches count depends on the network and its masks. Nothing is padded unless the program asks for it, and
/// `check` compares.
class growing_context {
 public:
  /// Errors: no cache, or no capacity; a session that carries state. A name that the session does not have, or that is given twice. A
  /// dimension that is not open; a cache and an output of different types. A padding that the element type does not have.
  growing_context(const session& of, growing_options options);
  growing_context(growing_context&&) noexcept;
  growing_context& operator=(growing_context&&) noexcept;
  ~growing_context();

  /// The session's inputs and outputs without the caches: those that a run takes and returns.
  std::span<const open_port> inputs() const;
  std::span<const open_port> outputs() const;

  /// Runs the network, and adds the new elements to the caches. Outputs are valid until the run after the next, also if that fails. A run that fails leaves
  /// the caches as they were. Errors besides those of `session_context::run`: a mask with fewer elements than the caches. An output that
  /// does not have the elements of its cache with new ones behind them; caches of different lengths. Caches longer than the largest
  /// capacity.
  std::span<const session_output> run(std::span<const const_tensor_view> inputs, const run_limits& limits = {});
  std::span<const session_output> run(std::initializer_list<const_tensor_view> inputs, const run_limits& limits = {}) {
    return run(std::span(inputs.begin(), inputs.size()), limits);
  }
  /// From now on runs are added to a trace (run/trace.hpp), which outlives them; null: they are not, as at first.
  void trace_into(run_trace* to);
  /// Runs the inputs both as `run` does and with caches of their exact length, and compares each output and the new elements. The caches
  /// stay as they are.
  std::vector<bucket_difference> check(std::span<const const_tensor_view> inputs);

  /// The number of elements in each cache, and the extent that the next run gives them.
  std::int64_t length() const;
  std::int64_t capacity() const;
  /// A copy of a cache, by the name of its input: `length()` elements in its dimension. Error: there is no such cache, or it has no shape
  /// before the first run.
  tensor cache(std::string_view name) const;
  /// Replaces the caches, in the order of `growing_options::caches`, by copies of these. Errors: another number; types or shapes that do not
  /// fit the network or each other; a length above the largest capacity.
  void restore(std::span<const const_tensor_view> caches);
  /// Keeps the first `length` elements of the caches. Error: there are not so many.
  void shorten(std::int64_t length);
  /// Empties the caches: a new sequence begins, and may have another batch.
  void reset();

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace collage::inline v0
