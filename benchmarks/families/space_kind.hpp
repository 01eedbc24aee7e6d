// The search spaces that tables can be of, with their types hidden.
#pragma once

#include "hidden_space.hpp"

#include <collage/tune/any_space.hpp>
#include <collage/tune/winograd.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#ifdef COLLAGE_HAS_JIT
#include "generated_spaces.hpp"
#endif

namespace families {

namespace tune = collage::tune;

struct space_kind {
  std::string name;                               ///< with the version, as in tables
  std::string core;                               ///< the core operator of its groups
  std::vector<std::string_view> sizes, features;  ///< names: of the numbers of a shape, and of the features
  std::size_t plain = 0;                          ///< features that do not know the closed form; the others follow
  /// The space of a shape. Nothing if there is none, and `why` is one sentence.
  std::optional<tune::any_space> (*make)(std::span<const std::int64_t> sizes, const tune::machine& on,
                                         std::string& why) = nullptr;
};

namespace detail {

struct winograd_tiles {
  using space = tune::winograd_space;
  static constexpr const char* core = "conv";
  static constexpr std::array sizes = {"channels", "outputs", "size"};

  static std::optional<tune::any_space> make(std::span<const std::int64_t> s, const tune::machine& on,
                                             std::string& why) {
    const tune::winograd_space made({.channels = s[0], .outputs = s[1], .height = s[2], .width = s[2]}, on);
    return hidden(made, made.task_fault(), why);
  }
};

template <class Kind>
space_kind kind_of() {
  using space = typename Kind::space;
  space_kind made;
  made.name = space::name + std::to_string(space::version);
  made.core = Kind::core;
  made.sizes.assign(Kind::sizes.begin(), Kind::sizes.end());
  made.features.assign(space::feature_names.begin(), space::feature_names.end());
  while (made.features[made.plain] != "log estimate") ++made.plain;
  made.make = Kind::make;
  return made;
}

}  // namespace detail

/// Those of this build. The first is the only space of the first version of tables.
inline const std::vector<space_kind>& all_kinds() {
  static const std::vector<space_kind> kinds = {detail::kind_of<detail::winograd_tiles>(),
#ifdef COLLAGE_HAS_JIT
                                                detail::kind_of<products>(), detail::kind_of<convolutions>(),
                                                detail::kind_of<depthwise_convolutions>()
#endif
  };
  return kinds;
}

/// A hash of the texts of points (64-bit FNV-1a), as 16 digits: a table is of no other space, and of no other order of its points.
inline std::string hash_of_texts(const tune::any_space& space, std::span<const std::uint32_t> points) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const std::uint32_t point : points)
    for (const char c : space.text(point) + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  std::string digits(16, '0');
  for (std::size_t i = digits.size(); i-- > 0; hash /= 16) digits[i] = "0123456789abcdef"[hash % 16];
  return digits;
}

}  // namespace families
