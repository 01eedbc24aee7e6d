// Runs of a session in buckets: inputs are copied into padded ones, and outputs are cut.
#include "padding.hpp"
#include "session_parts.hpp"

#include <algorithm>
#include <chrono>
#include <collage/detail/indices.hpp>
#include <collage/detail/size_check.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/buckets.hpp>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace collage::inline v0 {

namespace {

[[noreturn]] void refuse_bucket(const std::string& what, const std::string& where, const std::string& remedy = "") {
  throw error(error_kind::invalid_argument, what, where, remedy);
}

/// Copies the corner that two dense tensors of one rank have in common.
void copy_corner(const std::byte* from, const shape& from_dims, std::byte* to, const shape& to_dims, std::size_t size) {
  const std::size_t rank = from_dims.size();
  // Trailing dimensions of equal extents are copied in one piece, with the last one that differs.
  std::size_t inner = rank;
  std::int64_t from_row = static_cast<std::int64_t>(size), to_row = from_row, row = from_row;
  bool is_whole = true;
  while (inner > 0 && is_whole) {
    --inner;
    row *= std::min(from_dims[inner], to_dims[inner]);
    from_row *= from_dims[inner];
    to_row *= to_dims[inner];
    is_whole = from_dims[inner] == to_dims[inner];
  }
  std::int64_t rows = 1;
  for (std::size_t d = 0; d < inner; ++d) rows *= std::min(from_dims[d], to_dims[d]);
  if (row == 0) return;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t rest = i, from_at = 0, to_at = 0, from_stride = from_row, to_stride = to_row;
    for (std::size_t d = inner; d-- > 0;) {
      const std::int64_t extent = std::min(from_dims[d], to_dims[d]), index = rest % extent;
      rest /= extent;
      from_at += index * from_stride;
      to_at += index * to_stride;
      from_stride *= from_dims[d];
      to_stride *= to_dims[d];
    }
    std::memcpy(to + to_at, from + from_at, static_cast<std::size_t>(row));
  }
}

}  // namespace

class bucketed_context::state {
  /// Memory for tensors of several runs. It only grows.
  class tensor_slots {
   public:
    std::byte* memory(std::size_t i, std::size_t bytes) {
      if (slots_.size() <= i) slots_.resize(i + 1);
      if (slots_[i].size() < bytes) {
        slots_[i] = buffer();
        slots_[i] = buffer(bytes);
      }
      return slots_[i].data();
    }

   private:
    std::vector<buffer> slots_;
  };

 public:
  state(const session& of, bucket_options options)
      : session_(of), context_(of.context()), options_(std::move(options)) {
    read_buckets();
    read_padding();
    read_cuts();
    if (!session_.states().empty())
      refuse_bucket("the session carries state, and a state of one bucket does not fit another",
                    "state " + session_.states()[0].name, "make a session that carries none");
    for (const open_port& p : session_.outputs()) outputs_.push_back({p.name, {}});
    outputs_before_ = outputs_;
    bucket_.assign(options_.buckets.size(), 0);
  }

  void prepare(std::span<const std::int64_t> extents) {
    std::size_t free = 0, combinations = 1;
    for (std::size_t i = 0; i < ports_.size(); ++i)
      for (std::size_t d = 0; d < ports_[i].size(); ++d)
        free += ports_[i][d] == none && session_.inputs()[i].dims[d] < 0 ? 1 : 0;
    if (free != extents.size())
      refuse_bucket("there are " + std::to_string(free) + " open extents without a bucket, and " +
                        std::to_string(extents.size()) + " were given",
                    "preparing buckets");
    for (const bucket_list& b : options_.buckets) {
      combinations *= b.extents.size();
      if (combinations > 1000) refuse_bucket("there are more than 1,000 combinations", "preparing buckets");
    }
    for (const std::int64_t e : extents)
      if (e < 0) refuse_bucket("the extent " + std::to_string(e) + " is negative", "preparing buckets");
    session_context context = session_.context();  // outputs of earlier runs stay
    const std::size_t given_back = session_.state().given_back;
    for (std::size_t c = 0; c < combinations; ++c) {
      std::vector<std::int64_t> bucket;
      std::size_t rest = c;
      for (const bucket_list& b : options_.buckets) {
        bucket.push_back(b.extents[rest % b.extents.size()]);
        rest /= b.extents.size();
      }
      time(context, bucket, extents);
    }
    if (session_.state().given_back != given_back)
      refuse_bucket("the session gave back engines while others were made, so that it cannot keep all " +
                        std::to_string(combinations),
                    "preparing buckets", "raise most_engines and most_bytes of session_options");
  }

  std::span<const session_output> run(std::span<const const_tensor_view> inputs, const run_limits& limits) {
    const std::vector<std::int64_t> own = extents_of(inputs);
    bucket_ = bucket_for(own);
    padded_.clear();
    for (std::size_t i = 0; i < inputs.size(); ++i) padded_.push_back(padded(i, inputs[i]));
    const std::span<const session_output> made = context_.run(padded_, limits);
    std::swap(cut_, cut_before_);
    std::swap(outputs_, outputs_before_);
    for (std::size_t i = 0; i < made.size(); ++i) outputs_[i].contents = cut(i, made[i].contents, own);
    return outputs_;
  }

  std::vector<bucket_difference> check(std::span<const const_tensor_view> inputs) {
    const std::span<const session_output> cut_ones = run(inputs, {});
    session_context exact = session_.context();
    const std::span<const session_output> right = exact.run(inputs);
    std::vector<bucket_difference> found;
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (cut_ones[i].contents.type != right[i].contents.type)
        refuse_bucket("is " + detail::to_string(cut_ones[i].contents.type) + " in a bucket, and " +
                          detail::to_string(right[i].contents.type) + " at the exact shape",
                      "output " + right[i].name, "name how it is cut");
      found.push_back({right[i].name, compare(cut_ones[i].contents, to_oracle(right[i].contents))});
    }
    return found;
  }

  std::span<const std::int64_t> bucket() const { return bucket_; }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  std::size_t bucket_named(const std::string& symbol) const {
    for (std::size_t b = 0; b < options_.buckets.size(); ++b)
      if (!symbol.empty() && options_.buckets[b].symbol == symbol) return b;
    return none;
  }

  static std::string name_of_extent(const open_port& p, std::size_t d) {
    const bool has_symbol = d < p.symbols.size() && !p.symbols[d].empty() && p.symbols[d] != "?";
    return has_symbol ? p.symbols[d] : p.name + "[" + std::to_string(d) + "]";
  }

  void read_buckets() {
    for (const open_port& p : session_.inputs()) {
      std::vector<std::size_t>& own = ports_.emplace_back();
      for (std::size_t d = 0; d < p.dims.size(); ++d)
        own.push_back(p.dims[d] < 0 ? bucket_named(name_of_extent(p, d)) : none);
    }
    for (std::size_t b = 0; b < options_.buckets.size(); ++b) {
      bucket_list& list = options_.buckets[b];
      const std::string where = "bucket " + list.symbol;
      std::ranges::sort(list.extents);
      list.extents.erase(std::unique(list.extents.begin(), list.extents.end()), list.extents.end());
      if (list.extents.empty()) refuse_bucket("has no extents", where);
      if (list.extents.front() < 0) refuse_bucket("has a negative extent", where);
      if (bucket_named(list.symbol) != b) refuse_bucket("is given twice or has no name", where);
      if (std::ranges::none_of(ports_, [&](const auto& own) { return std::ranges::find(own, b) != own.end(); }))
        refuse_bucket("no input has an open extent of this name", where);
    }
  }

  void read_padding() {
    const std::span<const open_port> ports = session_.inputs();
    for (const open_port& p : ports) paddings_.push_back(detail::padding_element(p.type, 0, p.name));
    for (const bucket_padding& own : options_.padding) {
      const auto at = std::ranges::find(ports, own.input, &open_port::name);
      if (at == ports.end()) refuse_bucket("the network has no such input", "padding of " + own.input);
      paddings_[static_cast<std::size_t>(at - ports.begin())] = detail::padding_element(at->type, own.value, at->name);
    }
  }

  void read_cuts() {
    const std::span<const open_port> ports = session_.outputs();
    cuts_.resize(ports.size());
    for (const bucket_cut& own : options_.cuts) {
      const std::string where = "cut of " + own.output;
      const auto at = std::ranges::find(ports, own.output, &open_port::name);
      if (at == ports.end()) refuse_bucket("the network has no such output", where);
      constexpr std::int64_t most_addend = std::int64_t{1} << 31;
      if (own.divisor < 1 || own.addend < 0 || own.addend > most_addend)
        refuse_bucket("has a divisor below 1, or an addend that is negative or too large", where);
      const std::size_t b = bucket_named(own.symbol);
      if (b == none) refuse_bucket("there is no bucket of the name " + own.symbol, where);
      if (own.dimension >= shape::max_rank) refuse_bucket("names a dimension beyond the largest rank", where);
      cuts_[static_cast<std::size_t>(at - ports.begin())][own.dimension] = {b, own.divisor, own.addend};
    }
    for (std::size_t i = 0; i < ports.size(); ++i)
      for (std::size_t d = 0; d < ports[i].symbols.size(); ++d)
        if (const std::size_t b = bucket_named(ports[i].symbols[d]); b != none) cuts_[i].emplace(d, cut_rule{b});
  }

  /// The extents of the inputs, by bucket.
  std::vector<std::int64_t> extents_of(std::span<const const_tensor_view> inputs) const {
    detail::check_inputs(session_.inputs(), inputs);
    std::vector<std::int64_t> own(options_.buckets.size(), unknown);
    std::vector<std::size_t> from(own.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (std::size_t d = 0; d < ports_[i].size(); ++d) {
        const std::size_t b = ports_[i][d];
        if (b == none) continue;
        const std::int64_t extent = inputs[i].type.dims[d];
        if (own[b] >= 0 && own[b] != extent)
          refuse_bucket("the extent " + options_.buckets[b].symbol + " is " + std::to_string(own[b]) + " in input " +
                            session_.inputs()[from[b]].name + " and " + std::to_string(extent) + " in input " +
                            session_.inputs()[i].name,
                        "a run");
        own[b] = extent;
        from[b] = i;
      }
    }
    return own;
  }

  /// The bucket for inputs of these extents: of those that were timed, the fastest; otherwise the smallest.
  std::vector<std::int64_t> bucket_for(const std::vector<std::int64_t>& own) const {
    std::vector<std::int64_t> smallest;
    for (std::size_t b = 0; b < own.size(); ++b) {
      const std::vector<std::int64_t>& list = options_.buckets[b].extents;
      const auto at = std::ranges::lower_bound(list, own[b]);
      if (at == list.end())
        refuse_bucket("is " + std::to_string(own[b]) + ", and the largest bucket is " + std::to_string(list.back()),
                      "the extent " + options_.buckets[b].symbol, "declare a larger bucket");
      smallest.push_back(*at);
    }
    const std::vector<std::int64_t>* fastest = &smallest;
    double least = 0;
    if (const auto known = ms_.find(smallest); known != ms_.end()) least = known->second;
    for (const auto& [bucket, ms] : ms_) {
      const bool is_large_enough = std::ranges::equal(own, bucket, std::ranges::less_equal());
      if (is_large_enough && ms < least) {
        least = ms;
        fastest = &bucket;
      }
    }
    return *fastest;
  }

  /// Throws if no memory holds a tensor.
  static void check_bytes(const tensor_type& type, const std::string& what) {
    if (!detail::is_countable(type.dims))
      refuse_bucket("is " + detail::to_string(type) + " in a bucket, which no memory holds", what);
    detail::check_size(type.bytes(), what.c_str());
  }

  /// An input at the shape of the bucket.
  const_tensor_view padded(std::size_t i, const const_tensor_view& given) {
    tensor_type type = given.type;
    for (std::size_t d = 0; d < ports_[i].size(); ++d)
      if (ports_[i][d] != none) type.dims[d] = bucket_[ports_[i][d]];
    if (type == given.type) return given;
    check_bytes(type, "input " + session_.inputs()[i].name);
    std::byte* const memory = inputs_.memory(i, type.bytes());
    const std::vector<std::byte>& element = paddings_[i];
    detail::fill_with(element, memory, type.bytes());
    copy_corner(static_cast<const std::byte*>(given.data), given.type.dims, memory, type.dims, element.size());
    return {memory, type};
  }

  /// An output at the extents of the inputs.
  const_tensor_view cut(std::size_t i, const const_tensor_view& output, const std::vector<std::int64_t>& own) {
    tensor_type type = output.type;
    for (const auto& [dimension, rule] : cuts_[i]) {
      const auto part = [&](std::int64_t extent) { return (extent + rule.addend) / rule.divisor; };
      if (dimension >= type.rank() || type.dims[dimension] != part(bucket_[rule.bucket]))
        refuse_bucket("is " + detail::to_string(type) + ", and dimension " + std::to_string(dimension) +
                          " is cut from " + std::to_string(part(bucket_[rule.bucket])),
                      "output " + outputs_[i].name, "name how it is cut");
      type.dims[dimension] = part(own[rule.bucket]);
    }
    if (type == output.type) return output;
    std::byte* const memory = cut_.memory(i, type.bytes());
    copy_corner(static_cast<const std::byte*>(output.data), output.type.dims, memory, type.dims, size_of(type.type));
    return {memory, type};
  }

  /// Measures the time of a bucket.
  void time(session_context& context, const std::vector<std::int64_t>& bucket, std::span<const std::int64_t> extents) {
    std::vector<tensor> zeros;
    std::size_t next = 0;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      shape dims = session_.inputs()[i].dims;
      for (std::size_t d = 0; d < dims.size(); ++d)
        if (ports_[i][d] != none) dims[d] = bucket[ports_[i][d]];
        else if (dims[d] < 0) dims[d] = extents[next++];
      const tensor_type type{session_.inputs()[i].type, dims};
      check_bytes(type, "input " + session_.inputs()[i].name);
      zeros.emplace_back(type);
    }
    const std::vector<const_tensor_view> inputs(zeros.begin(), zeros.end());
    (void)context.run(inputs);  // makes the engine
    double least = 0;
    constexpr int times = 3;
    for (int i = 0; i < times; ++i) {
      const auto start = std::chrono::steady_clock::now();
      (void)context.run(inputs);
      const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      least = i == 0 ? ms : std::min(least, ms);
    }
    ms_[bucket] = least;
  }

  struct cut_rule {
    std::size_t bucket = 0;
    std::int64_t divisor = 1, addend = 0;
  };

  session session_;
  session_context context_;
  bucket_options options_;
  std::vector<std::vector<std::size_t>> ports_;        // by input and dimension: the number of its bucket
  std::vector<std::vector<std::byte>> paddings_;       // by input: one element
  std::vector<std::map<std::size_t, cut_rule>> cuts_;  // by output and dimension
  std::map<std::vector<std::int64_t>, double> ms_;     // of the buckets that were prepared
  std::vector<std::int64_t> bucket_;
  std::vector<const_tensor_view> padded_;
  std::vector<session_output> outputs_, outputs_before_;
  tensor_slots inputs_, cut_, cut_before_;
};

bucketed_context::bucketed_context(const session& of, bucket_options options)
    : state_(std::make_unique<state>(of, std::move(options))) {}
bucketed_context::bucketed_context(bucketed_context&&) noexcept = default;
bucketed_context& bucketed_context::operator=(bucketed_context&&) noexcept = default;
bucketed_context::~bucketed_context() = default;

void bucketed_context::prepare(std::span<const std::int64_t> extents) { state_->prepare(extents); }

std::span<const session_output> bucketed_context::run(std::span<const const_tensor_view> inputs,
                                                      const run_limits& limits) {
  return state_->run(inputs, limits);
}

std::span<const std::int64_t> bucketed_context::bucket() const { return state_->bucket(); }

std::vector<bucket_difference> bucketed_context::check(std::span<const const_tensor_view> inputs) {
  return state_->check(inputs);
}

}  // namespace collage::inline v0
