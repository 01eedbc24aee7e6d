// Messages between a worker and the process that started it, as bytes. Readers trust no message: they check every count and length
// against the bytes that are there, and throw an error if one is wrong.
#pragma once

#include <cmath>
#include <collage/detail/hash.hpp>
#include <collage/error.hpp>
#include <collage/place/measuring.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace collage::inline v0::detail {

/// Messages are packets of at most this size. A request is a file in memory, which is attached to a packet.
inline constexpr std::size_t most_message_bytes = 48 * 1024;
/// Longer texts are cut: names of kernels, and reasons.
inline constexpr std::size_t most_text_bytes = 8 * 1024;

/// The kind of a message, which is its first word. The second word is the number of the request that it belongs to. So bytes that a
/// kernel sends by accident, or messages about an earlier request, are not taken for results.
enum class message : std::uint64_t {
  hello = 0x636F6C6C61676501,  ///< text: the build of a worker that is ready
  request,                     ///< measure the candidates in the file
  stop,                        ///< end timing after the current round
  note,                        ///< which, step: this step of this candidate begins
  beat,                        ///< timing continues
  result,                      ///< which, a measured_candidate
  thrown,                      ///< which, step, text: a candidate threw, and nothing was measured
  cannot,                      ///< text: why the worker cannot measure this
  done,  ///< all results were sent; ms waited for an undisturbed machine, and ms waited for processors
};

[[noreturn]] inline void refuse_message(const char* what) {
  throw error(error_kind::failure, what, "message of a worker",
              "a kernel may have written over its worker's memory; measure again");
}

class byte_writer {
 public:
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void put(T value) {
    // Every number takes eight bytes, so that all numbers are aligned.
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    const auto* from = reinterpret_cast<const std::byte*>(&word);
    bytes_.insert(bytes_.end(), from, from + sizeof word);
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), from, from + text.size());
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
  }
  /// Writes a text, and cuts it if it is longer than most_text_bytes.
  void put_cut(const std::string& text) {
    put(text.size() <= most_text_bytes ? text : text.substr(0, most_text_bytes - 3) + "...");
  }
  void replace(std::size_t at, std::uint64_t word) { std::memcpy(bytes_.data() + at, &word, sizeof word); }
  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class byte_reader {
 public:
  explicit byte_reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  T get() {
    const std::uint64_t word = get_word();
    T value{};
    std::memcpy(&value, &word, sizeof value);
    std::uint64_t again = 0;
    std::memcpy(&again, &value, sizeof value);
    if (again != word) refuse_message("a number in it is out of range");
    return value;
  }
  /// A number of at most `most`.
  std::size_t get_count(std::uint64_t most) {
    const std::uint64_t word = get_word();
    if (word > most) refuse_message("a count in it is out of range");
    return static_cast<std::size_t>(word);
  }
  /// The number of items that follow, each of which takes at least `bytes` bytes.
  std::size_t get_items(std::size_t bytes = 8) { return get_count(left() / bytes); }
  bool get_flag() { return get_count(1) == 1; }
  double get_real() {
    const std::uint64_t word = get_word();
    double value = 0;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
  float get_float() {
    const auto bits = get<std::uint32_t>();
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  /// A time in milliseconds, or another finite number that is not negative.
  double get_amount() {
    const double value = get_real();
    if (!std::isfinite(value) || value < 0) refuse_message("a time in it is negative or no number");
    return value;
  }
  std::string get_text() {
    const std::size_t size = get_count(left());
    const std::size_t padded = (size + 7) / 8 * 8;
    if (padded > left()) refuse_message("it ends within a text");
    std::string text(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(padded);
    return text;
  }
  std::size_t left() const { return bytes_.size(); }
  void expect_end() const {
    if (!bytes_.empty()) refuse_message("it is longer than its contents");
  }

 private:
  std::uint64_t get_word() {
    std::uint64_t word = 0;
    if (bytes_.size() < sizeof word) refuse_message("it is too short");
    std::memcpy(&word, bytes_.data(), sizeof word);
    bytes_ = bytes_.subspan(sizeof word);
    return word;
  }

  std::span<const std::byte> bytes_;
};

inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  return hash(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Options and results of measuring. The bindings name all members, so that the code does not compile if a new member is not sent.

inline void put(byte_writer& to, const timing_options& options) {
  const auto& [sample_ms, rounds, least_rounds, beaten, tie, budget_ms] = options;
  to.put(sample_ms);
  to.put(std::uint64_t{rounds});
  to.put(std::uint64_t{least_rounds});
  to.put(beaten);
  to.put(tie);
  to.put(budget_ms);
}
inline timing_options get_timing_options(byte_reader& from) {
  timing_options options;
  auto& [sample_ms, rounds, least_rounds, beaten, tie, budget_ms] = options;
  sample_ms = from.get_amount();
  rounds = from.get_count(1U << 20);
  least_rounds = from.get_count(1U << 20);
  beaten = from.get_amount();
  tie = from.get_amount();
  budget_ms = from.get_amount();
  return options;
}

inline void put(byte_writer& to, const drift_options& options) {
  const auto& [calm, patience_ms, part, longest_wait_ms, usual_ms] = options;
  for (const double factor : calm) to.put(factor);
  to.put(patience_ms);
  to.put(part);
  to.put(longest_wait_ms);
  for (const double ms : usual_ms) to.put(ms);
}
inline drift_options get_drift_options(byte_reader& from) {
  drift_options options;
  auto& [calm, patience_ms, part, longest_wait_ms, usual_ms] = options;
  for (double& factor : calm) factor = from.get_amount();
  patience_ms = from.get_amount();
  part = from.get_amount();
  longest_wait_ms = from.get_amount();
  for (double& ms : usual_ms) ms = from.get_amount();
  return options;
}

inline void put(byte_writer& to, const measured_candidate& m) {
  const auto& [kernel, refusal, time, cost_ms, passing] = m;
  const auto& [median_ms, low_ms, high_ms, sure_low_ms, sure_high_ms, samples] = time;
  to.put_cut(kernel);
  to.put_cut(refusal);
  for (const double number : {median_ms, low_ms, high_ms, sure_low_ms, sure_high_ms}) to.put(number);
  to.put(std::uint64_t{samples});
  to.put(cost_ms);
  to.put(std::uint64_t{passing});
}
inline measured_candidate get_measured(byte_reader& from) {
  measured_candidate m;
  auto& [kernel, refusal, time, cost_ms, passing] = m;
  auto& [median_ms, low_ms, high_ms, sure_low_ms, sure_high_ms, samples] = time;
  kernel = from.get_text();
  refusal = from.get_text();
  for (double* number : {&median_ms, &low_ms, &high_ms, &sure_low_ms, &sure_high_ms}) *number = from.get_amount();
  samples = from.get_count(1U << 24);
  cost_ms = from.get_amount();
  passing = from.get_count(1) != 0;
  return m;
}

/// The step in which a kernel failed, for a sentence about the failure.
inline const char* step_text(measuring_step step) {
  switch (step) {
    case measuring_step::build: return "while it was built";
    case measuring_step::first_call: return "at its first call, in guarded memory";
    case measuring_step::timing: return "while it was timed";
  }
  return "";
}
inline measuring_step get_step(byte_reader& from) { return static_cast<measuring_step>(from.get_count(2)); }

}  // namespace collage::inline v0::detail
