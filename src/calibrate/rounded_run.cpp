// Runs with roundings, step by step: each value is rounded as soon as it is written.
#include <collage/calibrate/rounded_run.hpp>
#include <collage/error.hpp>
#include <collage/run/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "suffix_runs.hpp"

namespace collage::inline v0 {
namespace {

graph with_rounded_constants(graph network, std::span<const value_rounding> roundings) {
  for (const value_rounding& r : roundings) {
    if (r.value >= network.values().size() || network.at(r.value).role != value_role::constant) continue;
    detail::check_request(network, r.value);
    const tensor_type& type = network.type_of(r.value);
    const std::shared_ptr<std::byte> made = allocate_bytes(type.bytes());
    std::ranges::copy(network.bytes_of(r.value), made.get());
    detail::apply(r.how, type, form(), made.get());
    network.set_bytes(r.value, made);
  }
  return network;
}

class rounded_run {
 public:
  rounded_run(const graph& network, const placement& groups, backend_table backends,
              std::span<const value_rounding> roundings, int threads)
      : runner_(with_rounded_constants(network, roundings), groups, backends, threads),
        pool_(std::numeric_limits<std::size_t>::max()),
        values_(runner_.size()),
        roundings_(runner_.size()) {
    for (const value_rounding& r : roundings) {
      detail::check_request(network, r.value);
      if (network.at(r.value).role == value_role::constant) continue;
      detail::check_written(runner_, r.value);
      roundings_[r.value].push_back(r.how);
    }
  }

  void run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs) {
    const graph& network = runner_.network();
    const detail::step_runner::entered_libraries threads(runner_);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::uint32_t v = network.inputs()[i];
      values_[v] = pool_.take(runner_.bytes_of(v));
      std::copy_n(static_cast<const std::byte*>(inputs[i].data), runner_.bytes_of(v), values_[v].data());
      round(v);
    }
    for (std::size_t s = 0; s < runner_.steps().size(); ++s) run_step(s);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      std::copy_n(at(runner_.results()[i]), outputs[i].type.bytes(), static_cast<std::byte*>(outputs[i].data));
    for (buffer& b : values_) pool_.give(std::move(b));
  }

 private:
  std::byte* at(std::uint32_t stored) const {
    if (values_[stored].data() != nullptr) return values_[stored].data();
    return const_cast<std::byte*>(runner_.network().constant(stored).bytes.get());  // read only
  }
  void round(std::uint32_t v) {
    for (const rounding& how : roundings_[v])
      detail::apply(how, runner_.network().type_of(v), runner_.form_of(v), values_[v].data());
  }
  void run_step(std::size_t step) {
    const detail::runner_step& s = runner_.steps()[step];
    for (const std::uint32_t n : s.out)
      if (n != detail::no_region) values_[n] = pool_.take(runner_.bytes_of(n));
    runner_.run(step, [this](std::uint32_t n) { return at(n); });
    for (const std::uint32_t n : s.out)
      if (n != detail::no_region) round(n);
    const auto release = [&](std::uint32_t n) {
      if (n != detail::no_region && runner_.last_reader_of(n) <= static_cast<std::int32_t>(step))
        pool_.give(std::move(values_[n]));
    };
    std::ranges::for_each(s.in, release);
    std::ranges::for_each(s.out, release);
  }

  detail::step_runner runner_;
  detail::value_pool pool_;
  std::vector<buffer> values_;                    // by stored value
  std::vector<std::vector<rounding>> roundings_;  // by stored value
};

}  // namespace

network_run run_with_roundings(const graph& network, const placement& groups, backend_table backends,
                               std::span<const value_rounding> roundings, int threads) {
  auto made =
      std::make_shared<rounded_run>(network, groups, backends, roundings, threads > 0 ? threads : available_threads());
  return [made](std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs) {
    made->run(inputs, outputs);
  };
}

}  // namespace collage::inline v0
