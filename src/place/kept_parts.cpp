// Keep-lists: which nodes the parts name, and how plans spell them.
#include <algorithm>
#include <collage/error.hpp>
#include <collage/pattern/match.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/place/kept_parts.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

namespace collage::inline v0 {

namespace {

constexpr std::string_view kind_prefix = "kind:";
constexpr std::string_view before_kept = ", kept in fp32: ";
constexpr std::string_view between_kept = ", ";
/// So many names are proposed for one that is wrong.
constexpr std::size_t most_nearest = 3;

bool is_kind(const kept_part& part) { return part.pattern.size == 0 && part.what.starts_with(kind_prefix); }

std::vector<std::string> split(std::string_view text, std::string_view by) {
  std::vector<std::string> list;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(by, at), text.size());
    list.emplace_back(text.substr(at, end - at));
    at = end + by.size();
  }
  return list;
}
/// The kinds of a chain, such as `kind:matmul+softmax`.
std::vector<std::string> kinds_of(const kept_part& part) {
  return split(std::string_view(part.what).substr(kind_prefix.size()), "+");
}

/// Whether a name fits, where `*` stands for any characters.
bool fits(std::string_view wanted, std::string_view name) {
  std::size_t at = 0, with = 0, star = std::string_view::npos, resumed = 0;
  while (at < name.size()) {
    if (with < wanted.size() && wanted[with] == '*') star = with++, resumed = at;
    else if (with < wanted.size() && wanted[with] == name[at]) ++with, ++at;
    else if (star != std::string_view::npos) with = star + 1, at = ++resumed;
    else return false;
  }
  return wanted.find_first_not_of('*', with) == std::string_view::npos;
}

/// By node: whether it is in a chain of operators of these kinds.
std::vector<bool> chains_in(const graph& network, const std::vector<std::string>& kinds) {
  const graph_view view = network.view();
  const auto count = static_cast<std::uint32_t>(network.nodes().size());
  const auto for_each_producer = [&](std::uint32_t n, const auto& call) {
    for (const std::uint32_t v : view.inputs_of(n))
      if (const std::int32_t p = network.at(v).producer; p >= 0) call(static_cast<std::uint32_t>(p));
  };
  std::vector<std::vector<bool>> ends(kinds.size(), std::vector<bool>(count));  // by length: of a chain up to there
  for (std::size_t i = 0; i < kinds.size(); ++i)
    for (std::uint32_t n = 0; n < count; ++n) {
      if (network.node(n).kind->name != kinds[i]) continue;
      bool is_end = i == 0;
      for_each_producer(n, [&](std::uint32_t p) { is_end = is_end || ends[i - 1][p]; });
      ends[i][n] = is_end;
    }
  std::vector<bool> all = ends.back(), last = ends.back();
  for (std::size_t i = kinds.size() - 1; i > 0; --i) {
    std::vector<bool> before(count);
    for (std::uint32_t n = 0; n < count; ++n)
      if (last[n])
        for_each_producer(n, [&](std::uint32_t p) {
          if (ends[i - 1][p]) all[p] = before[p] = true;
        });
    last = std::move(before);
  }
  return all;
}

std::vector<bool> matches_in(const graph& network, pattern_view pattern) {
  std::vector<bool> found(network.nodes().size());
  const graph_view view = network.view();
  match_record record;
  for (std::uint32_t n = 0; n < found.size(); ++n)
    if (match_at(view, pattern, n, record))
      for (const std::uint32_t its : record.node_list()) found[its] = true;
  return found;
}

/// By node of one graph, without its subgraphs.
std::vector<bool> nodes_in(const graph& network, const kept_part& part) {
  if (part.pattern.size != 0) return matches_in(network, part.pattern);
  if (is_kind(part)) return chains_in(network, kinds_of(part));
  std::vector<bool> found(network.nodes().size());
  for (std::uint32_t n = 0; n < found.size(); ++n) found[n] = fits(part.what, network.node_name(n));
  return found;
}

/// Calls a function with a graph and all its subgraphs.
template <class Call>
void for_each_graph(const graph& network, const Call& call) {
  call(network);
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    for (const std::shared_ptr<const graph>& body : network.bodies_of(n)) for_each_graph(*body, call);
}

/// The Levenshtein distance: how many characters are inserted, removed or replaced.
std::size_t distance_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// "the nearest names are a, b and c", or what there is instead.
std::string nearest_text(const std::set<std::string>& names, const std::string& to, const std::string& what) {
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const std::string& name : names) order.emplace_back(distance_between(name, to), name);
  std::ranges::sort(order);
  order.resize(std::min(order.size(), most_nearest));
  if (order.empty()) return "the network has no " + what + "s";
  if (order.size() == 1) return "the only " + what + " is " + order[0].second;
  std::string text = "the nearest " + what + "s are " + order[0].second;
  for (std::size_t i = 1; i < order.size(); ++i) text += (i + 1 == order.size() ? " and " : ", ") + order[i].second;
  return text;
}

error refusal_of(const graph& network, const kept_part& part) {
  const std::string where = "keep " + part.what;
  std::set<std::string> names, kinds;
  for_each_graph(network, [&](const graph& g) {
    for (std::uint32_t n = 0; n < g.nodes().size(); ++n) {
      names.insert(std::string(g.node_name(n)));
      kinds.insert(std::string(g.node(n).kind->name));
    }
  });
  const auto wrong = [&](const std::string& what, const std::string& remedy) {
    return error(error_kind::invalid_argument, what, where, remedy);
  };
  if (part.pattern.size != 0) return wrong("the pattern matches nothing in the network", "leave it out");
  if (is_kind(part)) {
    for (const std::string& kind : kinds_of(part))
      if (kinds.count(kind) == 0)
        return wrong("the network has no operator '" + kind + "'", nearest_text(kinds, kind, "operator"));
    return wrong("in the network, no such operators follow each other directly", "name each kind alone");
  }
  if (kinds.count(part.what) != 0)
    return wrong("is no node of the network, but an operator", "write " + std::string(kind_prefix) + part.what);
  return wrong("is no node of the network", nearest_text(names, part.what, "node"));
}

}  // namespace

std::vector<bool> kept_nodes(const graph& network, std::span<const kept_part> parts) {
  std::vector<bool> kept(network.nodes().size());
  for (const kept_part& part : parts) {
    bool is_any = false;
    for_each_graph(network, [&](const graph& g) {
      const std::vector<bool> found = nodes_in(g, part);
      is_any = is_any || std::ranges::find(found, true) != found.end();
      for (std::size_t n = 0; &g == &network && n < found.size(); ++n)
        if (found[n]) kept[n] = true;
    });
    if (!is_any) throw refusal_of(network, part);
  }
  return kept;
}

std::string precision_text(const precision_options& how, std::span<const kept_part> kept) {
  std::string text = precision_text(how);
  std::set<std::string> names;
  for (const kept_part& part : kept) names.insert(part.what);
  for (auto name = names.begin(); name != names.end(); ++name)
    text += std::string(name == names.begin() ? before_kept : between_kept) + *name;
  return text;
}

std::vector<std::string> kept_in(const std::string& precision) {
  const std::size_t at = precision.find(before_kept);
  if (at == std::string::npos) return {};
  return split(std::string_view(precision).substr(at + before_kept.size()), between_kept);
}

}  // namespace collage::inline v0
