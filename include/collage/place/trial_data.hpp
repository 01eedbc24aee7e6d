// Trial data: the values that kernels for one group read while they are measured, and the results of the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/reference.hpp>
#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/place/accuracy.hpp>
#include <collage/place/trial_scales.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/form.hpp>
#include <collage/run/group_reference.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/space.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {

/// Bytes in the host's memory: where they are, or a copy.
class host_copy {
 public:
  explicit host_copy(const buffer& of) : of_(&of) {
    if (of.space() == host_space) return;
    copy_ = buffer(of.size());
    copy_bytes(host_space, copy_.data(), of.space(), of.data(), of.size());
    of_ = &copy_;
  }
  host_copy(const host_copy&) = delete;
  host_copy& operator=(const host_copy&) = delete;
  const std::byte* data() const { return of_->data(); }

 private:
  const buffer* of_;
  buffer copy_;
};

/// Random contents. Those of a large tensor repeat after a prime number of elements, because random numbers take longer than many
/// a kernel. So hardly two rows, channels or tiles are equal.
inline void fill_repeating(const tensor& t, std::mt19937_64& random) {
  constexpr std::int64_t period = 65'521;
  if (t.type().dims.elements() <= period) return fill_random(t, random);
  const tensor part(tensor_type{t.type().type, {period}});
  fill_random(part, random);
  for (std::size_t at = 0; at < t.bytes(); at += part.bytes())
    std::memcpy(t.data() + at, part.data(), std::min(part.bytes(), t.bytes() - at));
}

/// The values that rivals for one group read, and the results of the reference for them.
class trial_data {
 public:
  /// `contents`: of what they read, but for constants. `wanted`: the values that they are to write. `compared`: for each of these
  /// the elements that are compared with the reference; empty: all elements.
  trial_data(const graph& network, std::span<const std::uint32_t> nodes, std::map<std::uint32_t, tensor> contents,
             std::span<const std::uint32_t> wanted, std::vector<selected_elements> compared = {})
      : network_(network), contents_(std::move(contents)), compared_(std::move(compared)) {
    std::vector<known_value> known;
    for (const auto& [v, t] : contents_) known.push_back({v, t});
    if (compared_.empty()) {
      whole_.emplace(network, nodes, known, wanted);
      return;
    }
    // No quantised values are among these: `evaluate_elements` does not know how to quantise.
    selected_ = evaluate_elements(network, nodes, known, compared_);
  }

  const std::map<std::uint32_t, tensor>& contents() const { return contents_; }
  /// Frees the reference's results after the first `count`. They are not compared.
  void keep_results(std::size_t count) {
    if (whole_) whole_->keep(count);
  }
  /// Compares a result with the reference. `which` is the place of its value among the wanted ones.
  agreement compare_result(std::size_t which, const tensor& result, const tolerance& allowed) const {
    if (whole_) return whole_->compare(which, result, allowed);
    return compare(selected_of(which, result), selected_[which], allowed);
  }
  /// The largest error of a result, as `error_of` says. 0 for integers.
  double error_of_result(std::size_t which, const tensor& result) const {
    if (!is_floating(result.type().type)) return 0;
    return whole_ ? error_of_tensor(which, result) : error_of_tensor(which, selected_of(which, result));
  }

  /// The smallest and the largest number of a result of the reference, as far as it is compared.
  std::pair<double, double> extremes_of_result(std::size_t which) const {
    const std::vector<double>& real = expected_of(which).real;
    if (real.empty()) return {0, 0};
    const auto [low, high] = std::ranges::minmax(real);
    return std::isfinite(low) && std::isfinite(high) ? std::pair(low, high) : std::pair(0.0, 0.0);
  }

  /// An argument in the form in which a kernel reads it. Constants are plain, in the memory space of the kernel's backend.
  std::span<const std::byte> bytes_of(std::uint32_t v, const form& stored, const memory_space& space,
                                      const trial_scales& scales) {
    const bool is_constant = network_.at(v).role == value_role::constant;
    const form there = is_constant ? form(plain, space) : stored;
    std::span<const std::byte> contents;
    if (is_constant) contents = network_.bytes_of(v);
    else contents = {contents_.at(v).data(), contents_.at(v).bytes()};
    if (there == form()) return contents;
    buffer& made = laid_out_[{v, id_of(there)}];
    if (made.size() == 0) {
      const tensor_type& type = network_.type_of(v);
      buffer here(bytes_in(type, there));
      const std::optional<integer_scale> how = scales.of(v, there);
      from_plain(type, there, contents.data(), here.data(), how ? &*how : nullptr);
      if (*there.space == host_space) {
        made = std::move(here);
      } else {
        buffer on_device(here.size(), *there.space);
        copy_bytes(on_device.space(), on_device.data(), host_space, here.data(), here.size());
        made = std::move(on_device);
      }
    }
    return {made.data(), made.size()};
  }

 private:
  const oracle_value& expected_of(std::size_t which) const {
    return whole_ ? whole_->expected(which) : selected_[which];
  }
  double error_of_tensor(std::size_t which, const tensor& result) const {
    const std::span<const double> expected = expected_of(which).real;
    if (result.type().type == dtype::f32) return error_of(std::span<const float>(result.as<float>()), expected);
    return error_of(std::span<const double>(to_oracle(result).real), expected);
  }
  /// The compared elements of a result, as a list.
  tensor selected_of(std::size_t which, const tensor& result) const {
    const std::size_t size = size_of(result.type().type);
    tensor list(expected_of(which).type);
    for (std::size_t i = 0; i < compared_[which].at.size(); ++i)
      std::memcpy(list.data() + i * size, result.data() + static_cast<std::size_t>(compared_[which].at[i]) * size,
                  size);
    return list;
  }

  const graph& network_;
  std::map<std::uint32_t, tensor> contents_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, buffer> laid_out_;  // the same in other layouts
  std::vector<selected_elements> compared_;  // for each wanted value; empty: all elements are compared
  std::optional<group_reference> whole_;     // results of the reference if all are compared
  std::vector<oracle_value> selected_;       // the same if some are
};

}  // namespace collage::inline v0::detail
