// Forms: how a value is stored.
#pragma once

#include <algorithm>
#include <array>
#include <collage/detail/hash.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/layout.hpp>
#include <collage/run/space.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// How a value is stored: in which order its elements lie, of which type they are, and in which memory. The network gives a
/// value its type and shape; the form is what kernels, conversions and plans agree on beyond that. Both bytes and copies
/// follow it (run/layouts.hpp).
struct form {
  layout order = plain;
  std::optional<dtype> element = {};  ///< nothing: the type that the network gives the value
  const memory_space* space = &host_space;

  constexpr form() = default;
  constexpr form(const layout& l) : order(l) {}
  constexpr form(const layout& l, const memory_space& s) : order(l), space(&s) {}

  friend constexpr bool operator==(const form& a, const form& b) {
    return a.order == b.order && a.element == b.element && *a.space == *b.space;
  }
  /// The same in another memory space.
  constexpr form in(const memory_space& other) const {
    form there = *this;
    there.space = &other;
    return there;
  }
  /// The same with elements of another type.
  constexpr form of(dtype other) const {
    form there = *this;
    there.element = other;
    return there;
  }
};

namespace detail {

struct element_name {
  dtype type;
  const char* name;
};
inline constexpr std::array element_names{
    element_name{dtype::f32, "f32"},
    element_name{dtype::f64, "f64"},
    element_name{dtype::f16, "f16"},
    element_name{dtype::i8, "i8"},
    element_name{dtype::i16, "i16"},
    element_name{dtype::i32, "i32"},
    element_name{dtype::i64, "i64"},
    element_name{dtype::u8, "u8"},
    element_name{dtype::u16, "u16"},
    element_name{dtype::u32, "u32"},
    element_name{dtype::u64, "u64"},
    element_name{dtype::bf16, "bf16"},
    element_name{dtype::boolean, "boolean"},
    element_name{dtype::i4, "i4"},
    element_name{dtype::u4, "u4"},
    element_name{dtype::i2, "i2"},
    element_name{dtype::u2, "u2"},
    element_name{dtype::f8e4m3fn, "f8e4m3fn"},
    element_name{dtype::f8e4m3fnuz, "f8e4m3fnuz"},
    element_name{dtype::f8e5m2, "f8e5m2"},
    element_name{dtype::f8e5m2fnuz, "f8e5m2fnuz"},
    element_name{dtype::f8e8m0, "f8e8m0"},
    element_name{dtype::f4e2m1, "f4e2m1"},
};

}  // namespace detail

/// A form as plans spell it: "plain", "channels-last", "blocked-16:bf16@cuda". The layout comes first. A colon and the element type
/// follow where the type is not the network's. An "@" and the memory space follow where the space is not the host.
inline std::string to_text(const form& f) {
  std::string text = f.order.name;
  for (const detail::element_name& e : detail::element_names)
    if (f.element == e.type) text += std::string(":") + e.name;
  if (*f.space != host_space) text += std::string("@") + f.space->name;
  return text;
}

/// A number by which forms are compared. It depends only on the form's text. For a layout on the host it is the layout's id.
inline std::uint64_t id_of(const form& f) {
  if (!f.element && *f.space == host_space) return f.order.id;
  const std::string text = to_text(f);
  return detail::hash(text.data(), text.size());
}

/// Parses a text such as "plain@cuda" as a form. Only these layouts, these memory spaces and the host are known. Returns
/// nothing if the text names another layout or memory space.
inline std::optional<form> form_of(std::string_view text, std::span<const layout> layouts,
                                   std::span<const memory_space* const> spaces) {
  const std::size_t at = std::min(text.find('@'), text.size());
  const std::size_t colon = std::min(text.substr(0, at).find(':'), at);
  const std::string_view order = text.substr(0, colon);
  form made;
  bool is_known = false;
  for (const layout& l : layouts)
    if (order == l.name) made.order = l, is_known = true;
  if (colon != at) {
    for (const detail::element_name& e : detail::element_names)
      if (text.substr(colon + 1, at - colon - 1) == e.name) made.element = e.type;
    is_known = is_known && made.element.has_value();
  }
  if (at == text.size()) return is_known ? std::optional(made) : std::nullopt;
  for (const memory_space* s : spaces)
    if (text.substr(at + 1) == s->name && is_known) return made.in(*s);
  return std::nullopt;
}

/// In which forms a kernel reads and writes values: plain, of the network's type, in the host's memory where nothing is said.
class value_forms {
 public:
  /// Says the form of a value; the last word on it counts.
  void set(std::uint32_t value, const form& stored) {
    std::erase_if(list_, [&](const auto& said) { return said.first == value; });
    if (stored != form()) list_.emplace_back(value, stored);
  }
  /// Puts a value into a memory space, in the layout that was said for it.
  void put_into(const memory_space& space, std::uint32_t value) { set(value, of(value).in(space)); }
  const form& of(std::uint32_t value) const {
    static constexpr form usual;
    for (const auto& [known, its] : list_)
      if (known == value) return its;
    return usual;
  }
  /// The forms that were set, as pairs of a value and its form.
  const std::vector<std::pair<std::uint32_t, form>>& list() const& { return list_; }
  void list() && = delete;  // a loop over it would outlive it

 private:
  std::vector<std::pair<std::uint32_t, form>> list_;
};

}  // namespace collage::inline v0
