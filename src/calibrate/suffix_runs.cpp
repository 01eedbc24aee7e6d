#include "suffix_runs.hpp"

#include <collage/error.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/layouts.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace collage::inline v0::detail {

// ---- Memory ----------------------------------------------------------------------------------------------------------

buffer value_pool::take(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (const auto at = free_.find(bytes); at != free_.end()) {
    buffer block = std::move(at->second);
    free_.erase(at);
    return block;
  }
  while (!free_.empty() && total_ + bytes > limit_) {
    const auto largest = std::prev(free_.end());
    total_ -= largest->first;
    free_.erase(largest);
  }
  check_memory(bytes, "values");
  buffer block(bytes);
  count(bytes);
  return block;
}

void value_pool::give(buffer&& block) {
  if (block.data() == nullptr) return;
  const std::size_t bytes = block.size();
  free_.emplace(bytes, std::exchange(block, buffer()));
}

// ---- Errors ----------------------------------------------------------------------------------------------------------

namespace {

/// Calls f(right, changed) for each pair of elements, as doubles.
template <class F>
void for_each_pair(dtype type, const void* right, const void* changed, std::size_t elements, F f) {
  if (type == dtype::f32) {
    const auto *const a = static_cast<const float*>(right), *const b = static_cast<const float*>(changed);
    for (std::size_t i = 0; i < elements; ++i) f(static_cast<double>(a[i]), static_cast<double>(b[i]));
    return;
  }
  std::vector<double> a(elements), b(elements);
  load_elements(type, right, std::span<double>(a));
  load_elements(type, changed, std::span<double>(b));
  for (std::size_t i = 0; i < elements; ++i) f(a[i], b[i]);
}

}  // namespace

void apply(const rounding& how, const tensor_type& type, const form& stored, std::byte* at) {
  const auto elements = static_cast<std::size_t>(type.dims.elements());
  if (stored.order == plain) {
    how.apply({reinterpret_cast<float*>(at), elements}, type.dims);
    return;
  }
  const buffer dense(type.bytes());
  to_plain(type, stored, at, dense.data());
  how.apply({reinterpret_cast<float*>(dense.data()), elements}, type.dims);
  from_plain(type, stored, dense.data(), at);
}

namespace {
std::string place_of(const graph& network, std::uint32_t value) {
  return (network.at(value).role == value_role::constant ? "constant " : "value ") + network.value_name(value);
}
}  // namespace

void check_request(const graph& network, std::uint32_t value) {
  if (value >= network.values().size())
    throw error(error_kind::invalid_argument,
                "does not exist: the network has " + std::to_string(network.values().size()) + " values",
                "value " + std::to_string(value));
  if (const dtype type = network.type_of(value).type; type != dtype::f32)
    throw error(error_kind::invalid_argument,
                std::string("has elements of ") + name_of(type) + ", but only float32 is rounded",
                place_of(network, value));
  if (network.at(value).has_scalar)
    throw error(error_kind::invalid_argument, "is one number, which kernels take as it is", place_of(network, value),
                "leave it out: it takes no memory worth saving");
}

void check_written(const step_runner& runner, std::uint32_t value) {
  const value_record& v = runner.network().at(value);
  if (v.role == value_role::computed && runner.writer_of(value) < 0 && (v.uses != 0 || v.is_output))
    throw error(error_kind::invalid_argument, "is written by no kernel of this placement, because it is inside a group",
                place_of(runner.network(), value),
                "use separate_kernels, which keeps the values that it is given apart");
}

double squared_error(dtype type, const void* right, const void* changed, std::size_t elements) {
  double difference = 0, size = 0;
  for_each_pair(type, right, changed, elements, [&](double a, double b) {
    const bool is_same = a == b || (std::isnan(a) && std::isnan(b));
    difference += is_same ? 0 : (b - a) * (b - a);
    if (std::isfinite(a)) size += a * a;
  });
  if (difference == 0) return 0;
  if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
  return size == 0 ? 1 : difference / size;
}

bool is_finite(dtype type, const void* elements, std::size_t count) {
  double sum = 0;
  for_each_pair(type, elements, elements, count, [&](double a, double) { sum += a - a; });
  return sum == 0;
}

// ---- The undisturbed run ---------------------------------------------------------------------------------------------

suffix_runs::suffix_runs(step_runner& runner, std::size_t memory)
    : runner_(runner), pool_(memory), memory_(runner.network()), clean_(runner.size()), changed_(runner.size()) {
  const graph& network = runner.network();
  std::size_t ports = 0;
  for (const tensor& t : memory_.in) ports += t.bytes();
  for (const tensor& t : memory_.out) ports += t.bytes();
  const std::size_t alive = runner.most_alive(), all = runner.all_bytes();
  keeps_all_ = ports + all + alive <= memory;
  if (const std::size_t least = ports + 2 * alive; !keeps_all_ && least > memory)
    throw error(error_kind::invalid_argument,
                "allows " + std::to_string(memory) + " bytes, but the values of this network need at least " +
                    std::to_string(least),
                "memory for errors of values", "allow that much");
  pool_.count(ports);
  for (const tensor& t : memory_.in) inputs_.push_back(t);
  input_index_.assign(network.values().size(), -1);
  for (std::size_t i = 0; i < network.inputs().size(); ++i)
    input_index_[network.inputs()[i]] = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < network.outputs().size(); ++i)
    if (is_floating(network.type_of(network.outputs()[i]).type)) compared_.push_back(i);
  if (compared_.empty())
    throw error(error_kind::invalid_argument, "has no output of a floating-point type, so there is no relative error",
                "network", "compare whole plans by a metric of your own");
}

suffix_runs::root suffix_runs::root_of(std::uint32_t value) const {
  root r{value, 0, runner_.network().at(value).role == value_role::constant};
  if (r.is_constant) r.position = runner_.first_reader_of(value);
  else r.position = static_cast<std::size_t>(runner_.writer_of(value) + 1);
  return r;
}

std::byte* suffix_runs::clean_at(std::uint32_t stored) const {
  if (runner_.writer_of(stored) >= 0) return clean_[stored].data();
  if (input_index_[stored] >= 0) return memory_.in[static_cast<std::size_t>(input_index_[stored])].data();
  // Steps take the memory that they read as const; one function serves both.
  return const_cast<std::byte*>(runner_.network().constant(stored).bytes.get());
}

void suffix_runs::release_clean() {
  for (buffer& b : clean_) pool_.give(std::move(b));
  position_ = 0;
}

void suffix_runs::run_clean(std::size_t step, bool keeps) {
  const runner_step& s = runner_.steps()[step];
  for (const std::uint32_t n : s.out)
    if (n != no_region) clean_[n] = pool_.take(runner_.bytes_of(n));
  runner_.run(step, [this](std::uint32_t n) { return clean_at(n); });
  ++steps_run_;
  if (keeps) return;
  const auto release = [&](std::uint32_t n) {
    if (n != no_region && runner_.last_reader_of(n) <= static_cast<std::int32_t>(step))
      pool_.give(std::move(clean_[n]));
  };
  for (const std::uint32_t n : s.in) release(n);
  for (const std::uint32_t n : s.out) release(n);
}

void suffix_runs::keep_outputs(std::size_t which) {
  for (std::size_t i = 0; i < compared_.size(); ++i) {
    const std::uint32_t stored = runner_.results()[compared_[i]];
    const tensor_type& type = memory_.out[compared_[i]].type();
    const std::byte* const from = clean_at(stored);
    std::copy_n(from, type.bytes(), memory_.out[compared_[i]].data());
    if (!is_finite(type.type, from, static_cast<std::size_t>(type.dims.elements())))
      throw error(error_kind::invalid_argument,
                  "has NaN or infinity for sample " + std::to_string(which) +
                      " without any rounding, so that no error can be measured",
                  "output " + runner_.network().output_name(compared_[i]), "leave that sample out");
  }
}

void suffix_runs::begin_sample(std::size_t which) {
  release_clean();
  for (std::size_t s = 0; s < runner_.steps().size(); ++s) run_clean(s, keeps_all_);
  position_ = runner_.steps().size();
  keep_outputs(which);
  if (!keeps_all_) release_clean();
}

void suffix_runs::go_to(std::size_t position) {
  for (; position_ < std::min(position, runner_.steps().size()); ++position_) run_clean(position_, keeps_all_);
}

// ---- Suffixes --------------------------------------------------------------------------------------------------------

double suffix_runs::round(const root& of, const rounding& how) {
  const tensor_type& type = runner_.network().type_of(of.value);
  const auto elements = static_cast<std::size_t>(type.dims.elements());
  const std::byte* const right = clean_at(of.value);
  if (of.is_constant) {
    constant_ = allocate_bytes(type.bytes());
    constant_value_ = of.value;
    std::copy_n(right, type.bytes(), constant_.get());
    apply(how, type, form(), constant_.get());
    return squared_error(type.type, right, constant_.get(), elements);
  }
  const std::size_t bytes = runner_.bytes_of(of.value);
  buffer& copy = changed_[of.value] = pool_.take(bytes);
  std::copy_n(right, bytes, copy.data());
  apply(how, type, runner_.form_of(of.value), copy.data());
  return squared_error(type.type, right, copy.data(), bytes / sizeof(float));
}

void suffix_runs::forget_copy() {
  constant_.reset();
  constant_value_ = no_region;
  for (buffer& b : changed_) pool_.give(std::move(b));
}

/// The steps that some output which depends on the root needs. Without all values of the undisturbed run, these include steps that
/// do not depend on it.
void suffix_runs::find_suffix(const root& of) {
  const std::size_t count = runner_.steps().size();
  is_dirty_.assign(runner_.size(), 0);
  is_needed_.assign(runner_.size(), 0);
  uses_.assign(runner_.size(), 0);
  std::vector<char> is_changed(count);
  is_dirty_[of.value] = 1;
  for (std::size_t i = of.position; i < count; ++i) {
    const runner_step& s = runner_.steps()[i];
    const auto is_dirty = [&](std::uint32_t n) { return n != no_region && is_dirty_[n] != 0; };
    if (!std::ranges::any_of(s.in, is_dirty) && !(of.is_constant && runner_.reads_constant(i, of.value))) continue;
    is_changed[i] = 1;
    for (const std::uint32_t n : s.out)
      if (n != no_region) is_dirty_[n] = 1;
  }
  const auto need = [&](std::uint32_t n) {
    ++uses_[n];
    if (n != of.value && (is_dirty_[n] != 0 || !is_available(n))) is_needed_[n] = 1;
  };
  for (const std::size_t i : compared_)
    if (const std::uint32_t n = runner_.results()[i]; is_dirty_[n] != 0) need(n);
  suffix_.clear();
  for (std::size_t i = count; i-- > 0;) {
    const runner_step& s = runner_.steps()[i];
    if (!std::ranges::any_of(s.out, [&](std::uint32_t n) { return n != no_region && is_needed_[n] != 0; })) continue;
    suffix_.push_back(i);
    for (const std::uint32_t n : s.in)
      if (n != no_region) need(n);
  }
  std::ranges::reverse(suffix_);
}

std::byte* suffix_runs::changed_at(std::uint32_t stored) const {
  if (stored == constant_value_) return constant_.get();
  return changed_[stored].data() != nullptr ? changed_[stored].data() : clean_at(stored);
}

void suffix_runs::drop_use(std::uint32_t stored) {
  if (uses_[stored] != 0) --uses_[stored];
  if (uses_[stored] == 0) pool_.give(std::move(changed_[stored]));
}

void suffix_runs::run_changed(std::size_t step, const root& of) {
  const runner_step& s = runner_.steps()[step];
  kernel instead;
  if (of.is_constant && runner_.reads_constant(step, of.value)) instead = runner_.built_with(step, of.value, constant_);
  for (const std::uint32_t n : s.out)
    if (n != no_region) changed_[n] = pool_.take(runner_.bytes_of(n));
  runner_.run(step, [this](std::uint32_t n) { return changed_at(n); }, instead);
  ++steps_run_;
  for (const std::uint32_t n : s.in)
    if (n != no_region) drop_use(n);
  for (const std::uint32_t n : s.out)
    if (n != no_region && uses_[n] == 0) pool_.give(std::move(changed_[n]));
}

bool suffix_runs::run_suffix(const root& of, std::chrono::steady_clock::time_point ends, std::span<double> errors) {
  find_suffix(of);
  bool is_whole = true;
  for (const std::size_t step : suffix_) {
    if (std::chrono::steady_clock::now() >= ends) {
      is_whole = false;
      break;
    }
    run_changed(step, of);
  }
  for (std::size_t i = 0; is_whole && i < compared_.size(); ++i) {
    const std::uint32_t stored = runner_.results()[compared_[i]];
    const tensor_type& type = memory_.out[compared_[i]].type();
    errors[i] = is_dirty_[stored] == 0 ? 0
                                       : squared_error(type.type, memory_.out[compared_[i]].data(), changed_at(stored),
                                                       static_cast<std::size_t>(type.dims.elements()));
  }
  forget_copy();
  return is_whole;
}

}  // namespace collage::inline v0::detail
