// Extents for open inputs at which a model can be made: usual ones, tried one after the other.
#include <collage/io/onnx/model_source.hpp>

#include "import_text.hpp"
#include "importer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string>

namespace collage::inline v0::onnx {

namespace {

/// The most likely meaning of an open extent. All of one role get the same extent.
enum class role : std::uint8_t { batch, image, length, inner, count };
constexpr auto roles = static_cast<std::size_t>(role::count);

/// Extents to try for each role, the usual ones first. Many networks want multiples of 32, some a sum of two frames.
std::span<const std::int64_t> candidates_of(role r) {
  static constexpr std::int64_t batch[] = {1, 2}, image[] = {224, 256, 64, 640, 32, 16, 8, 1},
                                length[] = {128, 512, 576, 64, 16, 2, 1, 8, 4096}, inner[] = {1, 128, 16, 2, 512};
  switch (r) {
    case role::batch: return batch;
    case role::image: return image;
    case role::length: return length;
    case role::inner:
    case role::count: break;
  }
  return inner;
}

role role_of(const open_port& port, std::size_t dimension) {
  std::string symbol = port.symbols[dimension];
  std::transform(symbol.begin(), symbol.end(), symbol.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::size_t rank = port.dims.size();
  if (symbol.find("batch") != std::string::npos || (dimension == 0 && rank > 1)) return role::batch;
  if (rank >= 4 && dimension >= 2) return role::image;
  return rank == 3 && dimension == 1 && symbol.empty() ? role::inner : role::length;
}

/// One extent for each role.
using role_extents = std::array<std::int64_t, roles>;

/// All combinations for the roles that occur, the first roles changing slowest.
void list_combinations(const std::array<bool, roles>& occurs, std::size_t at, role_extents now,
                       std::vector<role_extents>& all) {
  constexpr std::size_t most = 200;
  if (all.size() == most) return;
  if (at == roles) return all.push_back(now);
  for (const std::int64_t extent : candidates_of(static_cast<role>(at))) {
    now[at] = extent;
    list_combinations(occurs, at + 1, now, all);
    if (!occurs[at]) return;
  }
}

}  // namespace

std::vector<shape> model_source::example_shapes(std::span<const given_value> known) const {
  std::array<bool, roles> occurs = {};
  std::map<std::string, role> by_symbol;  // one symbol has one extent, and with it one role
  const auto role_at = [&](const open_port& p, std::size_t d) {
    const role own = role_of(p, d);
    return p.symbols[d].empty() ? own : by_symbol.emplace(p.symbols[d], own).first->second;
  };
  for (const open_port& p : inputs_)
    for (std::size_t d = 0; d < p.dims.size(); ++d)
      if (p.dims[d] < 0) occurs[static_cast<std::size_t>(role_at(p, d))] = true;
  std::vector<role_extents> combinations;
  list_combinations(occurs, 0, {}, combinations);
  std::optional<error> first;
  for (const role_extents& now : combinations) {
    std::vector<shape> dims;
    std::vector<tensor> contents;
    std::vector<given_value> given;
    for (const open_port& p : inputs_) {
      shape& own = dims.emplace_back(p.dims);
      for (std::size_t d = 0; d < own.size(); ++d)
        if (own[d] < 0) own[d] = now[static_cast<std::size_t>(role_at(p, d))];
      contents.emplace_back(tensor_type{p.type, own});
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) given.push_back({inputs_[i].name, contents[i]});
    for (const given_value& k : known)
      for (std::size_t i = 0; i < given.size(); ++i)
        if (given[i].name == k.name && k.contents.type == contents[i].type()) given[i] = k;
    try {
      (void)make(nullptr, given);
      return dims;
    } catch (const error& e) {
      // Most operators that are not supported are so at any shape: two tries show it.
      if (first && first->kind() == error_kind::unsupported && e.kind() == error_kind::unsupported) break;
      if (!first) first.emplace(e);
    }
  }
  throw *first;  // there is always one combination
}

}  // namespace collage::inline v0::onnx
