// Runs of a session with growing caches: the network reads caches at their capacity, and new elements are added behind the old ones.
#include <algorithm>
#include <collage/detail/size_check.hpp>
#include <collage/error.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/growing.hpp>
#include <cstring>
#include <optional>
#include <utility>

#include "padding.hpp"
#include "session_parts.hpp"

namespace collage::inline v0 {

namespace {

[[noreturn]] void refuse_cache(const std::string& what, const std::string& where, const std::string& remedy = "") {
  throw error(error_kind::invalid_argument, what, where, remedy);
}

/// A tensor of zeros. Error: no memory holds it.
tensor zeros_of(const tensor_type& type, const std::string& where) {
  if (!detail::is_countable(type.dims))
    refuse_cache("is " + detail::to_string(type) + ", which no memory holds", where);
  detail::check_size(type.bytes(), where.c_str());
  return tensor(type);
}

}  // namespace

class growing_context::state {
 public:
  state(const session& of, growing_options options)
      : session_(of), context_(of.context()), options_(std::move(options)) {
    if (!session_.states().empty())
      refuse_cache("the session carries it, too", "state " + session_.states()[0].name,
                   "make a session that carries none");
    read_capacities();
    read_caches();
    read_masks();
    for (std::size_t i = 0; i < session_.inputs().size(); ++i)
      if (cache_of_input(i) == nullptr) taken_.push_back(session_.inputs()[i]);
    for (std::size_t i = 0; i < session_.outputs().size(); ++i)
      if (cache_of_output(i) == nullptr) returned_.push_back(session_.outputs()[i]);
    outputs_.reserve(returned_.size());  // a run must not fail after the caches have grown
    outputs_before_.reserve(returned_.size());
  }

  std::span<const open_port> inputs() const { return taken_; }
  std::span<const open_port> outputs() const { return returned_; }
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return capacity_; }

  void trace_into(run_trace* to) { context_.trace_into(to); }
  std::span<const session_output> run(std::span<const const_tensor_view> inputs, const run_limits& limits) {
    const first_run_guard guard(*this);
    const std::span<const session_output> made = run_padded(context_, inputs, limits);
    append(made, new_elements(made));
    std::swap(outputs_, outputs_before_);
    outputs_.clear();
    for (std::size_t i = 0; i < made.size(); ++i)
      if (cache_of_output(i) == nullptr) outputs_.push_back(made[i]);
    return outputs_;
  }

  std::vector<bucket_difference> check(std::span<const const_tensor_view> inputs) {
    const first_run_guard guard(*this);  // it ends without elements, too
    // Contexts of its own: the outputs of earlier runs stay.
    session_context padded = session_.context(), exact = session_.context();
    const std::span<const session_output> made = run_padded(padded, inputs, {});
    const std::int64_t added = new_elements(made);
    std::vector<tensor> own;
    std::vector<const_tensor_view> all;
    own.reserve(caches_.size());
    for (std::size_t i = 0, next = 0; i < session_.inputs().size(); ++i) {
      if (const one* const c = cache_of_input(i)) all.push_back(own.emplace_back(copy_of(*c)));
      else all.push_back(inputs[next++]);
    }
    const std::span<const session_output> right = exact.run(all);
    std::vector<bucket_difference> found;
    for (std::size_t i = 0; i < right.size(); ++i) found.push_back(difference_of(i, made[i].contents, right[i], added));
    return found;
  }

  tensor cache(std::string_view name) const {
    const auto at = std::ranges::find(options_.caches, name, &growing_cache::input);
    if (at == options_.caches.end()) refuse_cache("there is no such cache", "cache " + std::string(name));
    const one& c = caches_[static_cast<std::size_t>(at - options_.caches.begin())];
    if (!c.memory) refuse_cache("has no shape before the first run", "cache " + std::string(name));
    return copy_of(c);
  }

  void restore(std::span<const const_tensor_view> given) {
    if (given.size() != caches_.size())
      refuse_cache("there are " + std::to_string(caches_.size()) + " caches, and " + std::to_string(given.size()) +
                       " were given",
                   "restoring caches");
    std::vector<tensor> made;
    std::int64_t length = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const std::string where = "cache " + options_.caches[i].input;
      detail::check_tensor(session_.inputs()[caches_[i].input], given[i], where);
      const std::int64_t own = given[i].type.dims[caches_[i].dimension];
      if (i == 0) length = own;
      if (own != length)
        refuse_cache("has " + std::to_string(own) + " elements, and others " + std::to_string(length), where);
      const std::int64_t capacity = capacity_for(length);
      check_extents(i, given);
      made.push_back(zeros_of(
          {given[i].type.type, detail::with_extent(given[i].type.dims, caches_[i].dimension, capacity)}, where));
      detail::copy_slab(static_cast<const std::byte*>(given[i].data), {given[i].type.dims, caches_[i].dimension, 0},
                        made.back().data(), {made.back().type().dims, caches_[i].dimension, 0}, length,
                        size_of(given[i].type.type));
    }
    for (std::size_t i = 0; i < made.size(); ++i) caches_[i].memory = std::move(made[i]);
    length_ = length;
    capacity_ = capacity_for(length);
  }

  void shorten(std::int64_t length) {
    if (length < 0 || length > length_)
      refuse_cache(
          "they have " + std::to_string(length_) + " elements, so that " + std::to_string(length) + " cannot be kept",
          "shortening caches");
    // These elements may be NaN, which a mask does not hide.
    for (one& c : caches_)
      if (c.memory)
        detail::clear_slab(c.memory->data(), {c.memory->type().dims, c.dimension, length}, length_ - length,
                           size_of(c.memory->type().type));
    length_ = length;
  }

  void reset() {
    for (one& c : caches_) c.memory.reset();
    length_ = 0;
    capacity_ = options_.capacities.front();
  }

 private:
  struct one {
    std::size_t input = 0, output = 0, dimension = 0;
    std::optional<tensor> memory;  ///< of the capacity; zeros past the length
  };
  struct mask {
    std::size_t input = 0, dimension = 0;
    std::vector<std::byte> element;
    std::optional<tensor> memory;
  };

  /// A first run gives empty caches their shape. If it adds nothing, because it fails or only checks, the next one gives it anew.
  class first_run_guard {
   public:
    explicit first_run_guard(state& of) : of_(of), is_first_(!of.caches_[0].memory) {}
    first_run_guard(const first_run_guard&) = delete;
    first_run_guard& operator=(const first_run_guard&) = delete;
    ~first_run_guard() {
      if (is_first_ && of_.length_ == 0) of_.reset();
    }

   private:
    state& of_;
    bool is_first_;
  };

  void read_capacities() {
    std::vector<std::int64_t>& list = options_.capacities;
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
    if (list.empty()) refuse_cache("there are none", "capacities");
    if (list.front() < 0) refuse_cache("one is negative", "capacities");
    capacity_ = list.front();
  }

  /// The number of a port that is open in a dimension.
  static std::size_t open_port_named(std::span<const open_port> ports, const std::string& name, std::size_t dimension,
                                     const std::string& where) {
    const auto at = std::ranges::find(ports, name, &open_port::name);
    if (at == ports.end()) refuse_cache("the network has no " + name, where);
    if (!at->has_rank) refuse_cache("the network leaves the rank of " + name + " open", where);
    if (dimension >= at->dims.size() || at->dims[dimension] >= 0)
      refuse_cache("dimension " + std::to_string(dimension) + " of " + name + " is not open", where);
    return static_cast<std::size_t>(at - ports.begin());
  }

  void read_caches() {
    if (options_.caches.empty()) refuse_cache("there are none", "caches");
    for (const growing_cache& c : options_.caches) {
      const std::string where = "cache " + c.input;
      const std::size_t in = open_port_named(session_.inputs(), c.input, c.dimension, where);
      const std::size_t out = open_port_named(session_.outputs(), c.output, c.dimension, where);
      if (cache_of_input(in) != nullptr || cache_of_output(out) != nullptr) refuse_cache("is given twice", where);
      const open_port &from = session_.inputs()[in], &to = session_.outputs()[out];
      if (from.type != to.type || from.dims.size() != to.dims.size())
        refuse_cache(std::string("is ") + name_of(from.type) + " " + detail::to_string(from.dims) + ", and output " +
                         c.output + " is " + name_of(to.type) + " " + detail::to_string(to.dims),
                     where);
      if (c.dims.size() != 0 && !fits(c.dims, from.dims, c.dimension))
        refuse_cache(
            "is given as " + detail::to_string(c.dims) + ", but the network declares " + detail::to_string(from.dims),
            where);
      caches_.push_back({in, out, c.dimension, {}});
      cache_ports_.push_back(from);
    }
  }
  static bool fits(const shape& given, const shape& declared, std::size_t except) {
    if (given.size() != declared.size()) return false;
    for (std::size_t d = 0; d < given.size(); ++d)
      if (d != except && (given[d] < 0 || (declared[d] >= 0 && declared[d] != given[d]))) return false;
    return true;
  }

  void read_masks() {
    for (const cache_mask& m : options_.masks) {
      const std::string where = "mask " + m.input;
      const std::size_t in = open_port_named(session_.inputs(), m.input, m.dimension, where);
      if (cache_of_input(in) != nullptr || mask_of_input(in) != nullptr) refuse_cache("is given twice", where);
      masks_.push_back({in, m.dimension, detail::padding_element(session_.inputs()[in].type, m.value, m.input), {}});
    }
  }

  one* cache_of_input(std::size_t i) { return find(caches_, i, &one::input); }
  const one* cache_of_input(std::size_t i) const { return find(caches_, i, &one::input); }
  const one* cache_of_output(std::size_t i) const { return find(caches_, i, &one::output); }
  mask* mask_of_input(std::size_t i) { return find(masks_, i, &mask::input); }
  template <class List, class Member>
  static auto find(List& list, std::size_t i, Member member) -> decltype(list.data()) {
    const auto at = std::ranges::find(list, i, member);
    return at == list.end() ? nullptr : &*at;
  }

  std::int64_t capacity_for(std::int64_t length) const {
    const auto at = std::ranges::lower_bound(options_.capacities, length);
    if (at == options_.capacities.end())
      refuse_cache("they would have " + std::to_string(length) + " elements, and the largest capacity is " +
                       std::to_string(options_.capacities.back()),
                   "caches", "shorten or reset them, or allow a larger capacity");
    return *at;
  }

  /// Runs the network with the caches at their capacity.
  std::span<const session_output> run_padded(session_context& context, std::span<const const_tensor_view> inputs,
                                             const run_limits& limits) {
    detail::check_inputs(taken_, inputs);
    if (!caches_[0].memory) begin(inputs);
    all_.clear();
    for (std::size_t i = 0, next = 0; i < session_.inputs().size(); ++i) {
      if (const one* const c = cache_of_input(i)) {
        all_.push_back(*c->memory);
        continue;
      }
      const const_tensor_view& given = inputs[next++];
      mask* const m = mask_of_input(i);
      all_.push_back(m != nullptr ? padded(*m, given) : given);
    }
    return context.run(all_, limits);
  }

  /// Gives empty caches their memory.
  void begin(std::span<const const_tensor_view> inputs) {
    std::vector<tensor> made;
    for (std::size_t i = 0; i < caches_.size(); ++i) {
      const open_port& port = session_.inputs()[caches_[i].input];
      const growing_cache& asked = options_.caches[i];
      shape dims = asked.dims.size() == 0 ? port.dims : asked.dims;
      dims[asked.dimension] = capacity_;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] >= 0) continue;
        const std::optional<std::int64_t> known = detail::extent_of(port, d, taken_, inputs);
        if (!known)
          refuse_cache("nothing says what its extent " + std::to_string(d) + " is", "cache " + port.name,
                       "give its dims");
        dims[d] = *known;
      }
      made.push_back(zeros_of({port.type, dims}, "cache " + port.name));
    }
    for (std::size_t i = 0; i < made.size(); ++i) caches_[i].memory = std::move(made[i]);
  }

  /// A mask with padding between the elements of the caches and the new ones.
  const_tensor_view padded(mask& m, const const_tensor_view& given) {
    const std::int64_t own = given.type.dims[m.dimension];
    if (own < length_)
      refuse_cache("has " + std::to_string(own) + " elements, and the caches have " + std::to_string(length_),
                   "input " + session_.inputs()[m.input].name);
    if (length_ == capacity_) return given;
    const tensor_type type{given.type.type,
                           detail::with_extent(given.type.dims, m.dimension, own + capacity_ - length_)};
    if (!m.memory || m.memory->type() != type) m.memory = zeros_of(type, "input " + session_.inputs()[m.input].name);
    detail::fill_with(m.element, m.memory->data(), type.bytes());
    const auto* const from = static_cast<const std::byte*>(given.data);
    detail::copy_slab(from, {given.type.dims, m.dimension, 0}, m.memory->data(), {type.dims, m.dimension, 0}, length_,
                      m.element.size());
    detail::copy_slab(from, {given.type.dims, m.dimension, length_}, m.memory->data(),
                      {type.dims, m.dimension, capacity_}, own - length_, m.element.size());
    return *m.memory;
  }

  /// How many elements a run added to the caches.
  std::int64_t new_elements(std::span<const session_output> made) const {
    std::int64_t added = 0;
    for (std::size_t i = 0; i < caches_.size(); ++i) {
      const one& c = caches_[i];
      const session_output& out = made[c.output];
      const shape& dims = out.contents.type.dims;
      const tensor_type& own = c.memory->type();
      const bool is_larger = dims.size() == own.dims.size() && dims[c.dimension] >= capacity_ &&
                             detail::with_extent(dims, c.dimension, capacity_) == own.dims;
      if (!is_larger)
        refuse_cache("is " + detail::to_string(out.contents.type) + ", and not " + detail::to_string(own) +
                         " with new elements in dimension " + std::to_string(c.dimension),
                     "output " + out.name);
      const std::int64_t of_this = dims[c.dimension] - capacity_;
      if (i == 0) added = of_this;
      if (of_this != added)
        refuse_cache("has " + std::to_string(of_this) + " new elements, and others have " + std::to_string(added),
                     "output " + out.name);
    }
    (void)capacity_for(length_ + added);
    return added;
  }

  /// The difference of output i at the capacity and at the exact length. Only the new elements of caches count.
  bucket_difference difference_of(std::size_t i, const const_tensor_view& is, const session_output& right,
                                  std::int64_t added) const {
    if (const one* const c = cache_of_output(i)) {
      const tensor padded = last_of(is, c->dimension, added), exact = last_of(right.contents, c->dimension, added);
      return {right.name, compare(padded, to_oracle(exact))};
    }
    if (is.type != right.contents.type)
      refuse_cache("is " + detail::to_string(is.type) + " at the capacity, and " +
                       detail::to_string(right.contents.type) + " at the exact length",
                   "output " + right.name, "this network needs caches of their exact length");
    return {right.name, compare(is, to_oracle(right.contents))};
  }

  /// Throws if cache i does not fit `dims`, or the caches before it. It fits the network.
  void check_extents(std::size_t i, std::span<const const_tensor_view> given) const {
    const growing_cache& asked = options_.caches[i];
    const shape& dims = given[i].type.dims;
    if (asked.dims.size() != 0 && !fits(dims, asked.dims, asked.dimension))
      refuse_cache("is given as " + detail::to_string(dims) + ", and its dims are " + detail::to_string(asked.dims),
                   "cache " + asked.input);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (d == asked.dimension) continue;
      const std::optional<std::int64_t> known =
          detail::extent_of(cache_ports_[i], d, std::span(cache_ports_).first(i), given.first(i));
      if (known && *known != dims[d])
        refuse_cache("is given as " + detail::to_string(dims) + ", and another cache has " + std::to_string(*known) +
                         " in place of extent " + std::to_string(d),
                     "cache " + asked.input);
    }
  }

  /// Copies the new elements behind the old ones, into larger memory if they do not fit.
  void append(std::span<const session_output> made, std::int64_t added) {
    const std::int64_t length = length_ + added, capacity = capacity_for(length);
    std::vector<tensor> larger;
    if (capacity > capacity_)
      for (const one& c : caches_) {
        const tensor_type& type = c.memory->type();
        tensor& to = larger.emplace_back(zeros_of({type.type, detail::with_extent(type.dims, c.dimension, capacity)},
                                                  "cache " + session_.inputs()[c.input].name));
        detail::copy_slab(c.memory->data(), {type.dims, c.dimension, 0}, to.data(), {to.type().dims, c.dimension, 0},
                          length_, size_of(type.type));
      }
    // From here on nothing fails.
    for (std::size_t i = 0; i < caches_.size(); ++i) {
      one& c = caches_[i];
      if (!larger.empty()) c.memory = std::move(larger[i]);
      const const_tensor_view& from = made[c.output].contents;
      detail::copy_slab(static_cast<const std::byte*>(from.data), {from.type.dims, c.dimension, capacity_},
                        c.memory->data(), {c.memory->type().dims, c.dimension, length_}, added,
                        size_of(from.type.type));
    }
    length_ = length;
    capacity_ = std::max(capacity, capacity_);
  }

  tensor copy_of(const one& c) const {
    const tensor_type& type = c.memory->type();
    tensor made(tensor_type{type.type, detail::with_extent(type.dims, c.dimension, length_)});
    detail::copy_slab(c.memory->data(), {type.dims, c.dimension, 0}, made.data(), {made.type().dims, c.dimension, 0},
                      length_, size_of(type.type));
    return made;
  }
  static tensor last_of(const const_tensor_view& of, std::size_t dimension, std::int64_t count) {
    tensor made(tensor_type{of.type.type, detail::with_extent(of.type.dims, dimension, count)});
    detail::copy_slab(static_cast<const std::byte*>(of.data),
                      {of.type.dims, dimension, of.type.dims[dimension] - count}, made.data(),
                      {made.type().dims, dimension, 0}, count, size_of(of.type.type));
    return made;
  }
  session session_;
  session_context context_;
  growing_options options_;
  std::vector<one> caches_;             // in the order of the options
  std::vector<open_port> cache_ports_;  // the inputs
  std::vector<mask> masks_;
  std::vector<open_port> taken_, returned_;
  std::int64_t length_ = 0, capacity_ = 0;
  std::vector<const_tensor_view> all_;
  std::vector<session_output> outputs_, outputs_before_;
};

growing_context::growing_context(const session& of, growing_options options)
    : state_(std::make_unique<state>(of, std::move(options))) {}
growing_context::growing_context(growing_context&&) noexcept = default;
growing_context& growing_context::operator=(growing_context&&) noexcept = default;
growing_context::~growing_context() = default;

std::span<const open_port> growing_context::inputs() const { return state_->inputs(); }
std::span<const open_port> growing_context::outputs() const { return state_->outputs(); }
std::span<const session_output> growing_context::run(std::span<const const_tensor_view> inputs,
                                                     const run_limits& limits) {
  return state_->run(inputs, limits);
}
void growing_context::trace_into(run_trace* to) { state_->trace_into(to); }
std::vector<bucket_difference> growing_context::check(std::span<const const_tensor_view> inputs) {
  return state_->check(inputs);
}
std::int64_t growing_context::length() const { return state_->length(); }
std::int64_t growing_context::capacity() const { return state_->capacity(); }
tensor growing_context::cache(std::string_view name) const { return state_->cache(name); }
void growing_context::restore(std::span<const const_tensor_view> caches) { state_->restore(caches); }
void growing_context::shorten(std::int64_t length) { state_->shorten(length); }
void growing_context::reset() { state_->reset(); }

}  // namespace collage::inline v0
