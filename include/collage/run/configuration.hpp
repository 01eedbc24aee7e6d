// Configurations: which of a backend's ways to build a kernel is meant, as a text that the backend reads.
#pragma once

#include <algorithm>
#include <collage/detail/hash.hpp>
#include <collage/verdict.hpp>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// One of the ways in which a backend can build the kernel of a match. Plans and stores keep its text, which is
///
/// - a whole number in its shortest form, as in "4", for backends that number their variants; or
/// - words that begin with a letter, as in "tiles 7x2 unroll 4", for backends with a space of configurations.
///
/// A text has at most `longest` characters, all of them printable ASCII, and does not end with a space. Copies share it, so they
/// are cheap. Numbers come before words in the order of configurations.
class configuration {
 public:
  static constexpr std::size_t longest = 200;
  static constexpr std::uint32_t largest = 0xFFFFFFFF;

  /// The first variant: "0".
  configuration() = default;
  /// A numbered variant. Plans and stores can hold numbers up to `largest`.
  explicit configuration(std::size_t number) : number_(number) {}
  /// The configuration with a text. Nothing if `judge` refuses the text.
  static std::optional<configuration> of(std::string_view text) {
    if (!judge(text)) return {};
    if (const std::optional<std::size_t> number = number_in(text)) return configuration(*number);
    configuration made;
    made.text_ = std::make_shared<const std::string>(text);
    return made;
  }
  /// Whether a text can be that of a configuration, and why not. Whether a backend has this configuration is another question.
  static constexpr verdict judge(std::string_view text) {
    if (text.empty()) return {false, "it is empty"};
    if (text.size() > longest) return {false, "it has more than 200 characters"};
    for (const char c : text)
      if (c < ' ' || c > '~') return {false, "it has a character that is not printable ASCII"};
    const char first = text.front();
    if ((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z'))
      return {text.back() != ' ', "it ends with a space"};
    return {number_in(text).has_value(),
            "it begins with no letter, and is no number from 0 to 4294967295 in its shortest form"};
  }

  std::string text() const { return text_ != nullptr ? *text_ : std::to_string(number_); }
  /// The number of a variant; nothing if the text is no number.
  std::optional<std::size_t> number() const {
    return text_ != nullptr ? std::nullopt : std::optional<std::size_t>(number_);
  }
  /// A hash, which is the number itself if there is one. Keys of comparisons in stores depend on it.
  std::uint64_t hash() const { return text_ != nullptr ? detail::hash(text_->data(), text_->size()) : number_; }

  friend bool operator==(const configuration& a, const configuration& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const configuration& a, const configuration& b) {
    if (a.text_ == b.text_) return a.number_ <=> b.number_;
    if (a.text_ == nullptr || b.text_ == nullptr) return (a.text_ != nullptr) <=> (b.text_ != nullptr);
    return *a.text_ <=> *b.text_;
  }

 private:
  static constexpr std::optional<std::size_t> number_in(std::string_view text) {
    if (text.empty() || text.size() > 10 || (text.size() > 1 && text.front() == '0')) return {};
    std::uint64_t number = 0;
    for (const char c : text) {
      if (c < '0' || c > '9') return {};
      number = 10 * number + static_cast<std::uint64_t>(c - '0');
    }
    return number > largest ? std::nullopt : std::optional<std::size_t>(number);
  }

  std::size_t number_ = 0;                   // 0 if there is a text
  std::shared_ptr<const std::string> text_;  // null: the text is the number
};

namespace detail {

/// A text of unknown origin, for errors: on one line, and not too long.
inline std::string on_one_line(std::string_view text) {
  constexpr std::size_t shown = 80;
  std::string line(text.substr(0, shown));
  std::ranges::replace_if(line, [](char c) { return c < ' ' || c > '~'; }, '?');
  return line + (text.size() > shown ? "..." : "");
}

}  // namespace detail

/// The configurations that a backend proposes for a match. Each of them becomes a candidate.
class configuration_list {
 public:
  /// The largest number of proposals. Each is built and measured, so a backend with a large space selects the most promising.
  static constexpr std::size_t most = 64;

  /// Proposes a configuration by its text. A proposal for the second time changes nothing. A text that is no configuration is
  /// left out, and so are proposals after the first `most`; both are reported as refusals.
  void add(std::string_view text) {
    const verdict can_be = configuration::judge(text);
    if (!can_be) {
      faults_.push_back("it proposes configuration " + detail::on_one_line(text) + ", which is none: " + can_be.rule);
      return;
    }
    configuration proposed = *configuration::of(text);
    if (contains(proposed)) return;
    if (list_.size() < most) list_.push_back(std::move(proposed));
    else if (!std::exchange(has_too_many_, true))
      faults_.push_back("it proposes more than " + std::to_string(most) +
                        " configurations; the others were not candidates");
  }
  /// Leaves out the proposals that `judge`, a function `verdict(const configuration&)`, refuses.
  template <class Judge>
  void judge_all(const Judge& judge) {
    std::erase_if(list_, [&](const configuration& c) {
      const verdict v = judge(c);
      if (!v) faults_.push_back("it proposes configuration " + c.text() + ", and refuses it itself: " + v.rule);
      return !v;
    });
  }
  /// Keeps the proposals for which `stays`, a function `bool(const configuration&)`, is true. The others are not wanted, and no
  /// faults.
  template <class Stays>
  void keep_if(const Stays& stays) {
    std::erase_if(list_, [&](const configuration& c) { return !stays(c); });
  }
  /// The variants of a backend that numbers them. There may be any number.
  static configuration_list numbered(std::size_t count) {
    configuration_list made;
    made.list_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) made.list_.emplace_back(i);
    return made;
  }

  std::size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  bool contains(const configuration& c) const { return std::ranges::find(list_, c) != list_.end(); }
  std::vector<configuration>::const_iterator begin() const { return list_.begin(); }
  std::vector<configuration>::const_iterator end() const { return list_.end(); }
  /// Why proposals were left out, one sentence each.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  std::vector<configuration> list_;
  std::vector<std::string> faults_;
  bool has_too_many_ = false;
};

}  // namespace collage::inline v0

template <>
struct std::hash<collage::configuration> {
  std::size_t operator()(const collage::configuration& c) const { return static_cast<std::size_t>(c.hash()); }
};
