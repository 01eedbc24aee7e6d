// Checks a backend's kernels against the reference: every pattern wherever it matches in a small graph, every configuration
// that the backend proposes, one and two threads, aligned and unaligned memory with guards around it, in place where a kernel
// lets its result lie on an operand, and two calls at the same time.
//
//   backend_checker<collage::eigen> check;
//   check([&](collage::graph_builder& g, data_source& data) {
//     const auto x = g.input("x", {collage::dtype::f32, {1, 3, 8, 8}});
//     return g(op::relu, x);
//   });
//   check.expect_every_pattern_checked();
#pragma once

#include "counting_allocator.hpp"
#include "random_numbers.hpp"

#include <collage/backend_set.hpp>
#include <collage/backends/reference.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/layout.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/match.hpp>
#include <collage/place/trial_scales.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/group_reference.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/tensor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace collage_test {

/// What random reals are like. Positive ones prevail, or a long sum would sometimes be so close to zero that rounding is
/// most of it.
struct data_range {
  double low = -0.5;
  double high = 1;
  double specials = 0;     ///< the part of the elements that are NaN, infinite, or a zero of either sign
  bool all_bytes = false;  ///< integers of 8 bits have their whole range
};

/// Random shapes and contents.
class data_source : public random_numbers {
 public:
  /// `rank` extents, each uniform in [low, high].
  collage::shape extents(std::size_t rank, std::int64_t low, std::int64_t high) {
    collage::shape s;
    for (std::size_t i = 0; i < rank; ++i) s.push_back(number(low, high));
    return s;
  }

  /// Contents of a tensor: reals uniform in the range; integers from -9 to 9 without 0, which nothing divides by.
  std::shared_ptr<const std::byte> contents(const collage::tensor_type& type, const data_range& r = {}) {
    const std::shared_ptr<std::byte> bytes = collage::allocate_bytes(type.bytes());
    collage::oracle_value made(type);
    for (double& x : made.real) x = chance(r.specials) ? special() : real(r.low, r.high);
    const bool is_byte = type.type == collage::dtype::i8 || type.type == collage::dtype::u8;
    for (std::int64_t& i : made.integer)
      i = r.all_bytes && is_byte ? number(0, 255) : number(1, 9) * (chance(0.5) ? 1 : -1);
    collage::from_oracle(made, bytes.get());
    return bytes;
  }
  /// A constant with random contents.
  collage::value constant(collage::graph_builder& g, const std::string& name, const collage::tensor_type& type,
                          const data_range& r = {}) {
    return g.constant(name, type, contents(type, r));
  }

 private:
  double special() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double list[] = {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, 0.0, -0.0};
    return list[number(0, 4)];
  }
};

/// Memory that a kernel writes, with guards on both sides that tell of writes outside.
class guarded_memory {
 public:
  /// `shift` bytes beyond an address aligned to 64.
  guarded_memory(std::size_t bytes, std::size_t shift, unsigned char fill)
      : memory_(bytes + shift + 2 * guard), shift_(shift), bytes_(bytes) {
    std::memset(memory_.data(), mark, memory_.size());
    std::memset(data(), fill, bytes);
  }
  std::byte* data() const { return memory_.data() + guard + shift_; }
  bool intact() const {
    const std::span around(memory_.data(), memory_.size());
    const auto is_mark = [](std::byte b) { return b == std::byte{mark}; };
    return std::ranges::all_of(around.first(guard + shift_), is_mark) &&
           std::ranges::all_of(around.subspan(guard + shift_ + bytes_), is_mark);
  }

 private:
  static constexpr std::size_t guard = 256;
  static constexpr unsigned char mark = 0xA5;
  collage::buffer memory_;
  std::size_t shift_;
  std::size_t bytes_;
};

/// A copy of an operand that ends where its allocation ends, so that the address sanitizer sees readings beyond it.
class exact_copy {
 public:
  exact_copy(const std::byte* contents, std::size_t bytes, std::size_t shift)
      : memory_(allocate(bytes + shift)), shift_(shift) {
    if (bytes != 0) std::memcpy(data(), contents, bytes);
  }
  exact_copy(exact_copy&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)), shift_(other.shift_) {}
  exact_copy& operator=(exact_copy&&) = delete;
  ~exact_copy() { std::free(memory_); }
  std::byte* data() const { return memory_ + shift_; }

 private:
  static std::byte* allocate(std::size_t bytes) {  // std::aligned_alloc wants whole multiples of the alignment
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, bytes) != 0) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }
  std::byte* memory_;
  std::size_t shift_;
};

struct check_options {
  data_range range;        ///< of the values that a kernel reads, constants of the graph excepted
  bool must_cover = true;  ///< every node but reshape has to be taken by some pattern
  collage::tolerance tolerance = {};
  bool ties = false;  ///< quotients near ties may be rounded to either side
};

template <class Backend>
class backend_checker {
 public:
  using build_function = std::function<collage::value(collage::graph_builder&, data_source&)>;

  backend_checker() : probed_(table().probe()) {}

  bool available() const { return probed_.available; }
  std::string why_not() const { return probed_.reason; }
  data_source& data() { return data_; }

  /// Builds a graph and checks every pattern wherever it matches. The answered value becomes the graph's output.
  void operator()(const build_function& build, const check_options& options = {}) {
    collage::graph_builder g;
    const collage::value last = build(g, data_);
    g.output("out", last);
    check(g.finish(), options);
  }
  void check(collage::graph network, const check_options& options = {}) {
    collage::fill_constants(network);
    collage::packed_weights packed;
    for (std::uint32_t node = 0; node < network.nodes().size(); ++node) {
      std::string reasons;
      bool covered = network.node(node).kind->id == collage::kind_id<struct collage::ops::reshape>;
      for (const collage::pattern_entry& pattern : table().patterns) {
        collage::match_record record;
        if (!collage::match_at(network.view(), pattern.nodes, node, record)) continue;
        const collage::verdict accepted = pattern.accepts(network.view(), record);
        if (!accepted) {
          reasons += std::string(" ") + pattern.name + ": " + accepted.rule + ";";
          ++refused_[pattern.name];
          continue;
        }
        if (check_match(network, pattern, record, packed, options, reasons)) {
          ++checked_[pattern.name];
          covered = covered || record.nodes == 1;
        }
      }
      if (options.must_cover && !covered)
        ADD_FAILURE() << Backend::name << " does not take " << network.node_name(node) << " of "
                      << collage::detail::to_string(network.type_of(network.node(node).first_output)) << ":" << reasons
                      << " COLLAGE_SEED=" << data_.seed();
    }
  }

  /// How often a pattern was built and agreed, or was refused by `accepts`.
  std::size_t checked(const std::string& pattern) const { return count(checked_, pattern); }
  std::size_t refused(const std::string& pattern) const { return count(refused_, pattern); }
  void expect_every_pattern_checked() const {
    for (const collage::pattern_entry& pattern : table().patterns)
      EXPECT_GT(checked(pattern.name), 0U) << Backend::name << "'s pattern " << pattern.name << " was never checked";
  }
  /// The names of all kernels that were built.
  const std::map<std::string, std::size_t>& kernels() const { return kernels_; }

  /// How often a kernel has called operator new while it ran.
  std::size_t allocations_while_running() const { return allocations_; }

  /// How often a kernel has run in place, as it lets the engine have it.
  std::size_t in_place() const { return in_place_; }

  static const collage::backend_entry& table() { return collage::table_of<collage::backend_set<Backend>>[0]; }

 private:
  using counts = std::map<std::string, std::size_t>;
  static std::size_t count(const counts& list, const std::string& name) {
    const auto found = list.find(name);
    return found == list.end() ? 0 : found->second;
  }

  /// The operands of one match with memory of their own, what it writes, and in which layouts.
  struct operands {
    std::vector<std::shared_ptr<const std::byte>> contents;
    std::vector<std::size_t> bytes;
    std::vector<collage::known_value> known;
    std::vector<std::uint32_t> written;
    std::vector<collage::form> results;
    const collage::detail::trial_scales* scales = nullptr;
  };
  using expectations = collage::group_reference;

  /// The same operands as a kernel reads them.
  static operands in_layouts(const collage::graph& network, const collage::match_record& record, const operands& given,
                             const collage::value_forms& layouts) {
    operands made = given;
    for (std::size_t i = 0; i < given.contents.size(); ++i) {
      const std::uint32_t v = record.argument[i];
      const collage::tensor_type& type = network.type_of(v);
      made.bytes.push_back(collage::bytes_in(type, layouts.of(v)));
      if (layouts.of(v) == collage::plain) continue;
      const std::shared_ptr<std::byte> other = collage::allocate_bytes(made.bytes.back());
      const std::optional<collage::integer_scale> how = given.scales->of(v, layouts.of(v));
      collage::from_plain(type, layouts.of(v), given.contents[i].get(), other.get(), how ? &*how : nullptr);
      made.contents[i] = other;
    }
    for (const std::uint32_t v : given.written) made.results.push_back(layouts.of(v));
    return made;
  }

  bool check_match(const collage::graph& network, const collage::pattern_entry& pattern,
                   const collage::match_record& record, collage::packed_weights& packed, const check_options& options,
                   std::string& reasons) {
    const collage::graph_view view = network.view();
    operands given;
    collage::detail::trial_scales scales(network);
    given.scales = &scales;
    given.written = written_values(view, record);
    const collage::configuration_list proposed = proposed_for(pattern, view, record);
    for (const std::uint32_t v : record.argument_list()) {
      given.contents.push_back(view.is_constant(v)
                                   ? network.constant(v).bytes
                                   : rounded_for(network, pattern, record, proposed, v,
                                                 data_.contents(network.type_of(v), options.range), scales));
      if (!view.is_constant(v)) given.known.push_back({v, {given.contents.back().get(), network.type_of(v)}});
    }
    const expectations expected(network, record.node_list(), given.known, given.written);
    std::size_t element = 1;
    for (const std::uint32_t v : given.written) element = std::max(element, size_of(network.type_of(v).type));
    for (const auto& known : given.known) element = std::max(element, size_of(known.elements.type.type));
    give_scales(network, pattern, record, proposed, given.written, expected, scales);

    bool good = true, any = false;
    for (int threads = 1; threads <= 2; ++threads)
      for (const collage::configuration& how : proposed) {
        const collage::value_forms forms = forms_of(pattern, view, record, how);
        const std::optional<collage::dtype> rounded = collage::rounding_of(network, forms);
        // Kernels that round keep NaN and infinity as their library does.
        if (rounded && options.range.specials > 0) continue;
        check_options its = options;
        if (rounded) its.tolerance = tolerance_of_sums(*rounded, network, record, given);
        collage::build_context context(network, threads, packed);
        context.set_configuration(how);
        context.set_scales(&scales.all());
        collage::kernel built;
        try {
          built = pattern.build(view, record, context);
        } catch (const collage::error& e) {
          reasons += std::string(" ") + pattern.name + ": " + e.what() + ";";
          if (e.kind() != collage::error_kind::unsupported)
            ADD_FAILURE() << Backend::name << " " << pattern.name << ": " << e.what();
          continue;  // with the other configurations, as placing does
        }
        any = true;
        ++kernels_[built.name()];
        const std::string where = std::string(Backend::name) + " pattern " + pattern.name + " at " +
                                  network.node_name(record.node[record.nodes - 1]) + ", kernel '" + built.name() +
                                  "', configuration " + how.text() + ", " + std::to_string(threads) +
                                  " threads, operands " + operand_text(network, record) +
                                  ", COLLAGE_SEED=" + std::to_string(data_.seed());
        EXPECT_FALSE(built.name().empty()) << where;
        const int token = table().enter != nullptr ? table().enter(threads) : 0;
        const operands laid_out = in_layouts(network, record, given, forms);
        good = run(network, record, built, laid_out, expected, 0, 0xFF, its, where) && good;
        good = run(network, record, built, laid_out, expected, element, 0x5A, its, where + ", unaligned") && good;
        for (std::size_t i = 0; i < laid_out.bytes.size(); ++i)
          for (std::size_t o = 0; o < given.written.size(); ++o) {
            if (!built.writes_over(i, o)) continue;
            ++in_place_;
            good = run(network, record, built, laid_out, expected, 0, 0xFF, its, where + ", in place", true,
                       overlap{i, o}) &&
                   good;
          }
        if (table().enter != nullptr) table().leave(token);
        if (threads == 1) good = run_twice_at_once(network, record, built, laid_out, expected, its, where) && good;
      }
    return any && good;
  }

  /// The contents of an argument, rounded to the element types in which some configuration reads it. What kernels round of it again
  /// is then no error of theirs.
  static std::shared_ptr<const std::byte> rounded_for(const collage::graph& network,
                                                      const collage::pattern_entry& pattern,
                                                      const collage::match_record& record,
                                                      const collage::configuration_list& proposed, std::uint32_t v,
                                                      std::shared_ptr<const std::byte> contents,
                                                      collage::detail::trial_scales& scales) {
    for (const collage::configuration& how : proposed) {
      const collage::form stored = forms_of(pattern, network.view(), record, how).of(v);
      if (!stored.element) continue;
      const collage::tensor made(network.type_of(v));
      if (made.bytes() != 0) std::memcpy(made.data(), contents.get(), made.bytes());
      scales.round_argument(v, stored, made);
      const std::shared_ptr<std::byte> copy = collage::allocate_bytes(made.bytes());
      if (made.bytes() != 0) std::memcpy(copy.get(), made.data(), made.bytes());
      contents = copy;
    }
    return contents;
  }

  /// Some results here are sums that nearly cancel, and of a result with few elements no other may be larger. Each operand of a
  /// product is rounded by itself, so that the errors of a sum grow with the root of its length. That is at most the number of elements of
  /// an operand for each of the result.
  static collage::tolerance tolerance_of_sums(collage::dtype rounded, const collage::graph& network,
                                              const collage::match_record& record, const operands& given) {
    const bool sums = std::ranges::any_of(record.node_list(), [&](std::uint32_t n) {
      return network.nodes()[n].kind->fusion == collage::fusion_kind::anchor;
    });
    if (!sums || rounded != collage::dtype::bf16) return {2 * collage::tolerance_of_rounding(rounded).relative, 2e-3};
    std::size_t longest = 1;
    for (const std::size_t bytes : given.bytes) longest = std::max(longest, bytes / sizeof(float));
    const auto results = static_cast<std::size_t>(network.type_of(given.written[0]).dims.elements());
    const double length = results == 0 ? 1 : std::max(1.0, static_cast<double>(longest) / static_cast<double>(results));
    return {2 * collage::tolerance_of_rounding(rounded).relative, 2e-3 * std::sqrt(length)};
  }

  /// Gives the results that some configuration writes as integers of 8 bits scales.
  static void give_scales(const collage::graph& network, const collage::pattern_entry& pattern,
                          const collage::match_record& record, const collage::configuration_list& proposed,
                          const std::vector<std::uint32_t>& written, const expectations& expected,
                          collage::detail::trial_scales& scales) {
    for (const collage::configuration& how : proposed) {
      const collage::value_forms forms = forms_of(pattern, network.view(), record, how);
      for (std::size_t o = 0; o < written.size(); ++o) {
        const std::vector<double>& real = expected.expected(o).real;
        if (real.empty() || !std::ranges::all_of(real, [](double x) { return std::isfinite(x); })) continue;
        const auto [low, high] = std::ranges::minmax(real);
        scales.scale_result(written[o], forms.of(written[o]), {low, high});
      }
    }
  }

  /// An argument that lies where an output goes.
  struct overlap {
    std::size_t argument, output;
  };

  bool run(const collage::graph& network, const collage::match_record& record, const collage::kernel& built,
           const operands& given, const expectations& expected, std::size_t shift, unsigned char fill,
           const check_options& options, const std::string& where, bool alone = true,
           std::optional<overlap> over = {}) {
    std::vector<exact_copy> in;
    std::vector<const void*> pointers;
    for (std::size_t i = 0; i < given.contents.size(); ++i) {
      // Constants stay where the graph has them, at their aligned address.
      const bool moved = !network.view().is_constant(record.argument[i]);
      in.emplace_back(given.contents[i].get(), given.bytes[i], moved ? shift : 0);
      pointers.push_back(built.reads(i) ? in.back().data() : nullptr);
    }
    std::vector<std::unique_ptr<guarded_memory>> out;
    std::vector<void*> outs;
    for (std::size_t o = 0; o < given.written.size(); ++o) {
      out.push_back(std::make_unique<guarded_memory>(
          collage::bytes_in(network.type_of(given.written[o]), given.results[o]), shift, fill));
      outs.push_back(is_written(network, given, o) ? out[o]->data() : nullptr);
    }
    const guarded_memory workspace(built.workspace(), 0, fill);
    if (over) {
      const auto [i, o] = *over;
      const std::size_t bytes = collage::bytes_in(network.type_of(given.written[o]), given.results[o]);
      EXPECT_EQ(given.bytes[i], bytes) << where << ": it would write over an argument of another size";
      if (given.bytes[i] != bytes) return false;
      if (bytes != 0) std::memcpy(out[o]->data(), given.contents[i].get(), bytes);
      pointers[i] = out[o]->data();
    }
    const std::size_t before = allocations();
    built(collage::kernel_call{pointers.data(), outs.data(), workspace.data()});
    if (alone) allocations_ += allocations() - before;

    EXPECT_TRUE(workspace.intact()) << where << ": it wrote outside its workspace of " << built.workspace() << " bytes";
    bool good = workspace.intact();
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool same = given.bytes[i] == 0 || std::memcmp(in[i].data(), given.contents[i].get(), given.bytes[i]) == 0;
      EXPECT_TRUE(same) << where << ": it changed operand " << i;
      good = good && same;
    }
    for (std::size_t o = 0; o < given.written.size(); ++o)
      if (is_written(network, given, o))
        good = compare(*out[o], expected, o, given.results[o], given.scales->of(given.written[o], given.results[o]),
                       options, given.written.size() > 1 ? where + ", output " + std::to_string(o) : where) &&
               good;
    return good;
  }

  /// Outputs of an operator that nothing reads need not be written, but the first is always.
  static bool is_written(const collage::graph& network, const operands& given, std::size_t which) {
    const collage::value_record& v = network.at(given.written[which]);
    return which == 0 || v.is_output || v.uses > 0;
  }

  bool compare(const guarded_memory& out, const expectations& all, std::size_t which, const collage::form& layout,
               const std::optional<collage::integer_scale>& how, const check_options& options,
               const std::string& where) {
    const collage::oracle_value& expected = all.expected(which);
    EXPECT_TRUE(out.intact()) << where << ": it wrote outside its output";
    const auto* const written = static_cast<const std::byte*>(out.data());
    const collage::tensor result(expected.type);
    collage::to_plain(expected.type, layout, written, result.data(), how ? &*how : nullptr);
    // A zero weight times infinity is NaN, also where a block is filled up.
    if (layout != collage::plain && options.range.specials == 0) {
      EXPECT_TRUE(collage::is_filled_with_zeros(expected.type, layout, written))
          << where << ": what fills up its blocks is not zero";
    }
    const collage::agreement a = options.ties ? all.compare(which, result, options.tolerance)
                                              : collage::compare(result, expected, options.tolerance);
    EXPECT_TRUE(a.agrees) << where << ": " << (a.why != nullptr ? a.why : "") << " at element " << a.worst_index << ": "
                          << a.actual << ", the reference has " << a.expected << ", relative " << a.worst_relative;
    return out.intact() && a.agrees;
  }

  /// Kernels are immutable: two threads may be in the same one, each with a workspace of its own.
  bool run_twice_at_once(const collage::graph& network, const collage::match_record& record,
                         const collage::kernel& built, const operands& given, const expectations& expected,
                         const check_options& options, const std::string& where) {
    bool good[2] = {};
    const auto body = [&](bool& answer) {
      const int token = table().enter != nullptr ? table().enter(1) : 0;
      answer = run(network, record, built, given, expected, 0, 0xFF, options, where + ", two calls at once", false);
      if (table().enter != nullptr) table().leave(token);
    };
    std::thread other([&] { body(good[0]); });
    body(good[1]);
    other.join();
    return good[0] && good[1];
  }

  static std::string operand_text(const collage::graph& network, const collage::match_record& record) {
    std::string text;
    for (const std::uint32_t v : record.argument_list())
      text += (text.empty() ? "" : " ") + collage::detail::to_string(network.type_of(v)) +
              (network.view().is_constant(v) ? "c" : "");
    return text;
  }

  data_source data_;
  collage::probe_result probed_;
  counts checked_, refused_, kernels_;
  std::size_t allocations_ = 0;
  std::size_t in_place_ = 0;
};

/// The pattern of a backend with this name, which must exist.
template <class Backend>
const collage::pattern_entry& pattern_called(const std::string& name) {
  const auto patterns = backend_checker<Backend>::table().patterns;
  return *std::ranges::find(patterns, name, &collage::pattern_entry::name);
}

/// Why the first match of a pattern is refused; empty if it is not.
template <class Backend>
std::string refusal_of_match(const collage::graph& network, const std::string& name) {
  const collage::pattern_entry& pattern = pattern_called<Backend>(name);
  for (std::uint32_t node = 0; node < network.nodes().size(); ++node) {
    collage::match_record record;
    if (!collage::match_at(network.view(), pattern.nodes, node, record)) continue;
    const collage::verdict v = pattern.accepts(network.view(), record);
    return v ? "" : v.rule;
  }
  return "there is no match";
}

}  // namespace collage_test
