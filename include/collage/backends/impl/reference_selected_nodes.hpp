// How selected elements of one node's output are computed, for each kind for which that is possible.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/backends/impl/reference_reads.hpp>
#include <collage/backends/reference.hpp>
#include <collage/dtype.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/kind.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {

/// A set of elements of one tensor. Once it is sealed, each has a rank: how many come before it.
class element_set {
 public:
  explicit element_set(std::int64_t elements) : bits_(static_cast<std::size_t>((elements + 63) / 64)) {}

  void add(std::int64_t element) { bits_[word_of(element)] |= bit_of(element); }
  /// Returns the elements in order.
  std::vector<std::int64_t> seal() {
    std::vector<std::int64_t> all;
    for (std::size_t w = 0; w < bits_.size(); ++w) {
      before_.push_back(static_cast<std::int64_t>(all.size()));
      for (std::uint64_t rest = bits_[w]; rest != 0; rest &= rest - 1)
        all.push_back(static_cast<std::int64_t>(w) * 64 + std::countr_zero(rest));
    }
    return all;
  }
  std::size_t rank(std::int64_t element) const {
    const std::size_t w = word_of(element);
    return static_cast<std::size_t>(before_[w] + std::popcount(bits_[w] & (bit_of(element) - 1)));
  }

 private:
  static std::size_t word_of(std::int64_t element) { return static_cast<std::size_t>(element) / 64; }
  static std::uint64_t bit_of(std::int64_t element) { return std::uint64_t{1} << (element % 64); }

  std::vector<std::uint64_t> bits_;
  std::vector<std::int64_t> before_;
};

/// The elements of a value that are computed. `computed` is a list of them.
struct selected_value {
  element_set which;
  std::vector<std::int64_t> at;
  oracle_value computed;
};

/// Where the elements of an operand are: in a tensor, or among those computed.
struct element_source {
  const_tensor_view memory;
  const selected_value* computed = nullptr;

  const char* at(std::int64_t element) const {
    return static_cast<const char*>(memory.data) + element * static_cast<std::int64_t>(size_of(memory.type.type));
  }
  double real(std::int64_t element) const {
    if (computed != nullptr) return computed->computed.real[computed->which.rank(element)];
    double x = 0;
    load_elements(memory.type.type, at(element), std::span(&x, 1));
    return x;
  }
  std::int64_t integer(std::int64_t element) const {
    if (computed != nullptr) return computed->computed.integer[computed->which.rank(element)];
    std::int64_t x = 0;
    load_elements(memory.type.type, at(element), std::span(&x, 1));
    return x;
  }
  /// Calls body(read) with a function that returns an element as a double.
  template <class Body>
  void with_reals(const Body& body) const {
    if (computed == nullptr && memory.type.type == dtype::f32)
      body([from = static_cast<const char*>(memory.data)](std::int64_t element) {
        float x = 0;
        std::memcpy(&x, from + element * static_cast<std::int64_t>(sizeof(x)), sizeof(x));
        return static_cast<double>(x);
      });
    else body([this](std::int64_t element) { return real(element); });
  }
  /// Sets element `index` of a list in the reference's form.
  void copy(std::int64_t element, oracle_value& to, std::size_t index) const {
    if (is_floating(to.type.type)) to.real[index] = real(element);
    else to.integer[index] = integer(element);
  }
};

/// How selected elements of one node's output are computed.
class selected_node {
 public:
  selected_node() = default;
  selected_node(const selected_node&) = delete;
  selected_node& operator=(const selected_node&) = delete;
  virtual ~selected_node() = default;

  /// The most elements that are read for one.
  virtual double reads() const = 0;
  /// Adds the elements of an operand that are read for an element.
  virtual void add_reads(std::int64_t element, std::size_t operand, element_set& to) const = 0;
  /// Computes elements of the output as a list.
  virtual void compute(std::span<const std::int64_t> elements, std::span<const element_source> in,
                       oracle_value& to) const = 0;
};

/// Calls body(i, elements[i]) for all, in parallel. `cost`: about how many operations a call has.
template <class Body>
void for_selected(std::span<const std::int64_t> elements, double cost, const Body& body) {
  const std::int64_t least = elements_per_part / std::max<std::int64_t>(static_cast<std::int64_t>(cost), 1);
  parallel_for(static_cast<std::int64_t>(elements.size()), least, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) body(i, elements[i]);
  });
}

/// Convolutions and matrix products: sums of products, and a bias as a third operand.
template <class Reads>
class selected_product final : public selected_node {
 public:
  explicit selected_product(Reads reads) : reads_(std::move(reads)) {}

  double reads() const override { return reads_.most(); }
  void add_reads(std::int64_t element, std::size_t operand, element_set& to) const override {
    if (operand == 2) return to.add(reads_.bias(element));
    reads_.visit(element, [&](const product_run& run) {
      for (std::int64_t i = 0; i < run.count; ++i)
        to.add(operand == 0 ? run.a + i * run.a_step : run.b + i * run.b_step);
    });
  }
  void compute(std::span<const std::int64_t> elements, std::span<const element_source> in,
               oracle_value& to) const override {
    in[0].with_reals([&](const auto& a) {
      in[1].with_reals([&](const auto& b) {
        for_selected(elements, reads(), [&](std::size_t i, std::int64_t element) {
          double sum = in.size() == 3 ? in[2].real(reads_.bias(element)) : 0.0;
          reads_.visit(element, [&](const product_run& run) {
            for (std::int64_t k = 0; k < run.count; ++k) sum += a(run.a + k * run.a_step) * b(run.b + k * run.b_step);
          });
          to.real[i] = sum;
        });
      });
    });
  }

 private:
  Reads reads_;
};

/// The poolings.
class selected_pool final : public selected_node {
 public:
  enum class fold : std::uint8_t { largest, mean, norm };
  selected_pool(fold how, const ops::pool_attributes& a, double p, const reference_call& call)
      : how_(how), counts_padding_(a.count_padding), p_(p), reads_(a, call) {}

  double reads() const override { return reads_.most(); }
  void add_reads(std::int64_t element, std::size_t, element_set& to) const override {
    reads_.visit(element, [&](std::int64_t from) { to.add(from); });
  }
  void compute(std::span<const std::int64_t> elements, std::span<const element_source> in,
               oracle_value& to) const override {
    for_selected(elements, reads(), [&](std::size_t i, std::int64_t element) { to.real[i] = one(element, in[0]); });
  }

 private:
  double one(std::int64_t element, const element_source& in) const {
    double result = how_ == fold::largest ? -std::numeric_limits<double>::infinity() : 0.0;
    std::int64_t inside = 0;
    const std::int64_t padded = reads_.visit(element, [&](std::int64_t from) {
      const double x = in.real(from);
      ++inside;
      if (how_ == fold::largest) result = x > result || x != x ? x : result;
      else result += how_ == fold::mean ? x : std::pow(std::abs(x), p_);
    });
    if (how_ == fold::mean) return result / static_cast<double>(counts_padding_ ? padded : inside);
    return how_ == fold::norm ? std::pow(result, 1 / p_) : result;
  }

  fold how_;
  bool counts_padding_;
  double p_;
  pool_reads reads_;
};

/// A list of `count` elements of a type.
inline oracle_value element_list_of(dtype type, std::size_t count) {
  return oracle_value(tensor_type{type, {static_cast<std::int64_t>(count)}});
}

/// An elementwise operator: its own reference computes the list of elements.
class selected_elementwise final : public selected_node {
 public:
  selected_elementwise(const kind_info& kind, std::span<const std::uint64_t> words, const reference_call& call)
      : kind_(kind), words_(words.begin(), words.end()) {
    for (const reference_tensor& x : call.in)
      from_.emplace_back(call.out[0].type.dims, broadcast_steps(x.type.dims, call.out[0].type.dims));
  }

  double reads() const override { return static_cast<double>(from_.size() + kind_.body->size); }
  void add_reads(std::int64_t element, std::size_t operand, element_set& to) const override {
    to.add(from_[operand](element));
  }
  void compute(std::span<const std::int64_t> elements, std::span<const element_source> in,
               oracle_value& to) const override {
    std::vector<oracle_value> lists;
    std::vector<reference_tensor> operands;
    for (std::size_t k = 0; k < in.size(); ++k) {
      oracle_value& list = lists.emplace_back(element_list_of(in[k].memory.type.type, elements.size()));
      for_selected(elements, 1, [&](std::size_t i, std::int64_t element) { in[k].copy(from_[k](element), list, i); });
    }
    for (oracle_value& list : lists) operands.push_back(list.view());
    const reference_tensor results[] = {to.view()};
    run_kind(kind_, words_, {operands, results}, kind_.name);
  }

 private:
  const kind_info& kind_;
  std::vector<std::uint64_t> words_;
  std::vector<strided_reads> from_;
};

/// A reduction: its own reference folds the lines that the elements are made of.
class selected_reduction final : public selected_node {
 public:
  selected_reduction(const kind_info& kind, const ops::reduce_attributes& a, const reference_call& call)
      : kind_(kind), words_(to_words(ops::reduce_attributes{.axes = {1}, .keep_dims = false})), reads_(a, call) {}

  double reads() const override { return reads_.most(); }
  void add_reads(std::int64_t element, std::size_t, element_set& to) const override {
    reads_.visit(element, [&](std::int64_t from) { to.add(from); });
  }
  void compute(std::span<const std::int64_t> elements, std::span<const element_source> in,
               oracle_value& to) const override {
    constexpr std::int64_t together = std::int64_t{1} << 20;
    const auto lines =
        static_cast<std::size_t>(std::max<std::int64_t>(together / std::max(reads_.count(), INT64_C(1)), 1));
    for (std::size_t first = 0; first < elements.size(); first += lines)
      fold(first, elements.subspan(first, std::min(lines, elements.size() - first)), in[0], to);
  }

 private:
  void fold(std::size_t first, std::span<const std::int64_t> elements, const element_source& in,
            oracle_value& to) const {
    const auto rows = static_cast<std::int64_t>(elements.size());
    oracle_value lines(tensor_type{in.memory.type.type, {rows, reads_.count()}});
    for_selected(elements, reads(), [&](std::size_t i, std::int64_t element) {
      std::size_t index = i * static_cast<std::size_t>(reads_.count());
      reads_.visit(element, [&](std::int64_t from) { in.copy(from, lines, index++); });
    });
    oracle_value results = element_list_of(to.type.type, elements.size());
    const reference_tensor operands[] = {lines.view()}, folded[] = {results.view()};
    run_kind(kind_, {words_.word, words_.size}, {operands, folded}, kind_.name);
    std::copy(results.real.begin(), results.real.end(),
              to.real.begin() + static_cast<std::ptrdiff_t>(is_floating(to.type.type) ? first : 0));
    std::copy(results.integer.begin(), results.integer.end(),
              to.integer.begin() + static_cast<std::ptrdiff_t>(is_floating(to.type.type) ? 0 : first));
  }

  const kind_info& kind_;
  attribute_words words_;
  reduce_reads reads_;
};

/// An operator that moves elements: `from(element)` is an operand and the number of the element there.
template <class From>
class selected_move final : public selected_node {
 public:
  explicit selected_move(From from) : from_(std::move(from)) {}

  double reads() const override { return 1; }
  void add_reads(std::int64_t element, std::size_t operand, element_set& to) const override {
    if (const auto [which, index] = from_(element); which == operand) to.add(index);
  }
  void compute(std::span<const std::int64_t> elements, std::span<const element_source> in,
               oracle_value& to) const override {
    for_selected(elements, 1, [&](std::size_t i, std::int64_t element) {
      const auto [which, index] = from_(element);
      in[which].copy(index, to, i);
    });
  }

 private:
  From from_;
};

template <class From>
std::unique_ptr<selected_node> make_move(From from) {
  return std::make_unique<selected_move<From>>(std::move(from));
}

/// For an operator that copies all elements from its first operand.
inline std::unique_ptr<selected_node> make_strided(strided_reads from) {
  return make_move([from](std::int64_t element) { return std::pair<std::size_t, std::int64_t>(0, from(element)); });
}

/// For the operators that move elements. Null: the kind is none of them.
inline std::unique_ptr<selected_node> make_selected_move(const kind_info& kind, std::span<const std::uint64_t> words,
                                                         const reference_call& call) {
  const auto is = [&](const kind_info& other) { return is_same_kind(kind, other); };
  if (is(kind_of<struct ops::reshape>))
    return make_move([](std::int64_t element) { return std::pair<std::size_t, std::int64_t>(0, element); });
  if (is(kind_of<struct ops::transpose>))
    return make_strided(reads_of(from_words<ops::transpose_attributes>(words), call));
  if (is(kind_of<struct ops::slice>)) return make_strided(reads_of(from_words<ops::slice_attributes>(words), call));
  if (is(kind_of<struct ops::expand>)) return make_strided(reads_of(from_words<ops::expand_attributes>(words), call));
  if (is(kind_of<struct ops::concat>))
    return make_move([a = from_words<ops::concat_attributes>(words),
                      in = std::vector<reference_tensor>(call.in.begin(), call.in.end()), out = call.out[0]](
                         std::int64_t element) { return source_in_concat(a, {in, {&out, 1}}, element); });
  return nullptr;
}

/// For reductions over a number of elements that is not too large to list. Null: the kind is none of them.
inline std::unique_ptr<selected_node> make_selected_reduction(const kind_info& kind,
                                                              std::span<const std::uint64_t> words,
                                                              const reference_call& call) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  const kind_info* const known[] = {&kind_of<struct ops::reduce_mean>, &kind_of<struct ops::reduce_sum>,
                                    &kind_of<struct ops::reduce_max>,  &kind_of<struct ops::reduce_min>,
                                    &kind_of<struct ops::reduce_prod>, &kind_of<struct ops::reduce_log_sum_exp>};
  if (std::ranges::none_of(known, [&](const kind_info* k) { return is_same_kind(kind, *k); })) return nullptr;
  const std::int64_t results = std::max<std::int64_t>(call.out[0].type.dims.elements(), 1);
  if (call.in[0].type.dims.elements() / results > most) return nullptr;
  return std::make_unique<selected_reduction>(kind, from_words<ops::reduce_attributes>(words), call);
}

/// For one node, whose types `call` has. Null: elements of this kind cannot be computed one by one.
inline std::unique_ptr<selected_node> make_selected(const kind_info& kind, std::span<const std::uint64_t> words,
                                                    const reference_call& call) {
  const auto is = [&](const kind_info& other) { return is_same_kind(kind, other); };
  if (kind.body != nullptr && kind.reference == nullptr)
    return std::make_unique<selected_elementwise>(kind, words, call);
  if (auto made = make_selected_move(kind, words, call)) return made;
  if (auto made = make_selected_reduction(kind, words, call)) return made;
  if (call.in.size() == 0 || !is_floating(call.in[0].type.type)) return nullptr;
  if (is(kind_of<struct ops::conv>))
    return std::make_unique<selected_product<conv_reads>>(conv_reads(from_words<ops::conv_attributes>(words), call));
  if (is(kind_of<struct ops::conv_transpose>))
    return std::make_unique<selected_product<conv_transpose_reads>>(
        conv_transpose_reads(from_words<ops::conv_transpose_attributes>(words), call));
  if (is(kind_of<struct ops::matmul>))
    return std::make_unique<selected_product<matmul_reads>>(
        matmul_reads(from_words<ops::matmul_attributes>(words), call));
  using fold = selected_pool::fold;
  if (is(kind_of<struct ops::max_pool>))
    return std::make_unique<selected_pool>(fold::largest, from_words<ops::pool_attributes>(words), 0, call);
  if (is(kind_of<struct ops::average_pool>))
    return std::make_unique<selected_pool>(fold::mean, from_words<ops::pool_attributes>(words), 0, call);
  if (is(kind_of<struct ops::lp_pool>)) {
    const auto a = from_words<ops::lp_pool_attributes>(words);
    return std::make_unique<selected_pool>(fold::norm, a, a.p, call);
  }
  return nullptr;
}

}  // namespace collage::inline v0::detail
