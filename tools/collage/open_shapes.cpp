#include "open_shapes.hpp"

#if COLLAGE_HAS_ONNX

#include <collage/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace program {

namespace c = collage;

namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& remedy) {
  throw c::error(c::error_kind::invalid_argument, what, where, remedy);
}

constexpr const char* forms = "write its extents as in 1x3x224x224, or as ?, 16..640, 16..640/8 or 16,64,256";

/// A whole number that is not negative; nothing if the text is something else.
std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || number < 0) return {};
  return number;
}

/// "16..640/8" as a range; nothing if the text is something else.
std::optional<c::extent_values> range_in(std::string_view text) {
  const std::size_t dots = text.find(".."), slash = std::min(text.find('/'), text.size());
  if (dots == std::string_view::npos || slash < dots + 2) return {};
  const auto low = number_in(text.substr(0, dots)), high = number_in(text.substr(dots + 2, slash - dots - 2));
  const auto step = slash == text.size() ? std::optional<std::int64_t>(1) : number_in(text.substr(slash + 1));
  if (!low || !high || !step) return {};
  return c::extent_values::range(*low, *high, *step);
}

/// One extent. Nothing within the result: it stays open. No result: the text is no extent.
std::optional<std::optional<c::extent_values>> extent_in(std::string_view text) {
  if (text == "?") return std::optional<c::extent_values>();
  if (auto range = range_in(text)) return range;
  std::vector<std::int64_t> list;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::optional<std::int64_t> number = number_in(text.substr(at, end - at));
    if (!number) return {};
    list.push_back(*number);
    at = end + 1;
  }
  return c::extent_values::list(std::move(list));
}

}  // namespace

shape_setting setting_of(const std::string& text, const char* option) {
  const std::string where = std::string(option) + " " + text;
  auto [name, dims] = split_setting(text, option, "NAME=1x3x224x224");
  shape_setting made{text, std::move(name), {}};
  if (dims.empty() || dims == "scalar") return made;
  for (std::size_t at = 0; at <= dims.size();) {
    const std::size_t end = std::min(dims.find('x', at), dims.size());
    const auto extent = extent_in(std::string_view(dims).substr(at, end - at));
    if (!extent) refuse("it is not a shape", where, forms);
    if (made.extents.size() == c::shape::max_rank) refuse("it has more than 8 extents", where, forms);
    made.extents.push_back(*extent);
    at = end + 1;
  }
  return made;
}

std::pair<std::string, std::string> split_setting(const std::string& text, const char* option, const char* form) {
  // Names may hold '=' themselves; what is set never does.
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw c::error(c::error_kind::invalid_argument, std::string("it is not of the form ") + form,
                   std::string(option) + " " + text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

const c::extent_values* shape_setting::several() const {
  for (const auto& e : extents)
    if (e && e->count() > 1) return &*e;
  return nullptr;
}

c::shape shape_setting::dims() const {
  c::shape made;
  for (const auto& e : extents) made.push_back(e ? e->at(0) : c::unknown);
  return made;
}

std::vector<shape_setting> shape_settings(const options& given) {
  std::vector<shape_setting> made;
  for (const std::string& text : given.shapes) {
    shape_setting s = setting_of(text);
    if (std::ranges::any_of(made, [&](const shape_setting& other) { return other.name == s.name; }))
      refuse("it is given twice", "--shape " + s.name, "give it once");
    made.push_back(std::move(s));
  }
  return made;
}

bool may_name_symbol(const shape_setting& s) { return s.extents.size() == 1; }

shape_space::shape_space(std::span<const shape_setting> settings, std::span<const c::open_port> inputs) {
  for (const c::open_port& p : inputs) {
    input& made = inputs_.emplace_back(input{p.name, false, {}});
    for (std::size_t d = 0; p.has_rank && d < p.dims.size(); ++d) {
      const std::string& symbol = p.symbols[d];
      made.dims.push_back({p.dims[d], none, symbol == "?" ? "" : symbol});
    }
  }
  const auto input_of = [&](const shape_setting& s) { return std::ranges::find(inputs_, s.name, &input::name); };
  for (const shape_setting& s : settings)  // shapes of inputs go before symbols
    if (const auto at = input_of(s); at != inputs_.end())
      set_input(*at, inputs[static_cast<std::size_t>(at - inputs_.begin())], s);
  for (const shape_setting& s : settings)
    if (input_of(s) == inputs_.end()) set_symbol(s);
}

void shape_space::set(input& of, slot& to, const std::string& name, const c::extent_values& values) {
  of.is_set = true;
  if (values.count() == 1) {
    to.extent = values.at(0);
    return;
  }
  const auto known = std::ranges::find(open_, name, &open_extent::name);
  to.open = static_cast<std::size_t>(known - open_.begin());
  if (known == open_.end()) open_.push_back({name, values});
  else if (known->values.text() != values.text())
    refuse("the extent " + name + " is " + known->values.text() + " in one input and " + values.text() + " in another",
           "--shape", "give it the same values");
}

void shape_space::set_symbol(const shape_setting& s) {
  bool is_known = false, is_used = false;
  std::string symbols, names;
  for (input& i : inputs_) {
    names += (names.empty() ? "" : ", ") + i.name;
    for (slot& d : i.dims) {
      if (d.symbol.empty()) continue;
      if (symbols.find(d.symbol) == std::string::npos) symbols += (symbols.empty() ? "" : ", ") + d.symbol;
      if (d.symbol != s.name) continue;
      is_known = true;
      if (s.extents.size() != 1 || !s.extents[0])
        refuse("an open extent gets a number or several, not a shape", "--shape " + s.text, "write it as in T=128");
      if (d.extent != c::unknown || d.open != none) continue;
      set(i, d, s.name, *s.extents[0]);
      is_used = true;
    }
  }
  if (!is_known)
    refuse("the model has no such input, and no open extent of this name", "--shape " + s.text,
           "its inputs are " + names + (symbols.empty() ? "" : ", and its open extents " + symbols));
  if (!is_used)
    refuse("every input with this extent has a shape of its own", "--shape " + s.text, "leave one of them out");
}

void shape_space::set_input(input& to, const c::open_port& port, const shape_setting& s) {
  if (!port.has_rank) to.dims.resize(s.extents.size());
  const auto fits = [&] {
    if (s.extents.size() != to.dims.size()) return false;
    for (std::size_t d = 0; d < to.dims.size(); ++d)
      if (s.extents[d] && port.has_rank && port.dims[d] >= 0 &&
          (s.extents[d]->count() != 1 || s.extents[d]->at(0) != port.dims[d]))
        return false;
    return true;
  };
  if (!fits())
    refuse("the model declares " + c::detail::to_string(c::tensor_type{port.type, port.dims}) + " for it",
           "--shape " + s.text, "give extents that fit");
  to.is_set = true;
  for (std::size_t d = 0; d < to.dims.size(); ++d) {
    if (!s.extents[d]) continue;
    slot& own = to.dims[d];
    own.open = none;
    own.extent = c::unknown;
    const std::string symbol = own.symbol;
    set(to, own, symbol.empty() ? to.name + "[" + std::to_string(d) + "]" : symbol, *s.extents[d]);
    if (symbol.empty() || s.extents[d]->count() == 1) continue;
    for (input& other : inputs_)  // one symbol has one extent at a time
      for (slot& same : other.dims)
        if (same.symbol == symbol && same.extent == c::unknown && same.open == none)
          set(other, same, symbol, *s.extents[d]);
  }
}

std::vector<std::string> shape_space::settings(std::span<const std::int64_t> extents) const {
  std::vector<std::string> made;
  for (const input& i : inputs_) {
    if (!i.is_set) continue;
    std::string dims;
    for (const slot& d : i.dims) {
      const std::int64_t extent = d.open == none ? d.extent : d.open < extents.size() ? extents[d.open] : c::unknown;
      dims += (dims.empty() ? "" : "x") + (extent < 0 ? std::string("?") : std::to_string(extent));
    }
    made.push_back(i.name + "=" + dims);
  }
  return made;
}

}  // namespace program

#endif
