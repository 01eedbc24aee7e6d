#include <collage/error.hpp>
#include <collage/tune/family.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace collage::inline v0::tune {
namespace {

std::string words_of(const member_operator& one) {
  std::string words(one.kind);
  if (!one.variant.empty()) words.append(" ").append(one.variant);
  return words;
}

/// The mean agreement of two families.
double linkage(const agreement_table& table, std::span<const std::size_t> a, std::span<const std::size_t> b) {
  double sum = 0;
  for (const std::size_t i : a)
    for (const std::size_t j : b) sum += std::min(table.at(i, j), table.at(j, i));
  return sum / static_cast<double>(a.size() * b.size());
}

}  // namespace

std::string by_core_operator(const subgraph& group) {
  if (group.operators.empty()) return "nothing";
  const auto core = std::ranges::find(group.operators, true, &member_operator::is_core);
  return words_of(core == group.operators.end() ? group.operators.front() : *core);
}

std::string by_operator_sequence(const subgraph& group) {
  std::string words;
  for (const member_operator& one : group.operators) words += (words.empty() ? "" : ", ") + words_of(one);
  return words;
}

std::string by_operator_count(const subgraph& group) {
  return std::to_string(group.operators.size()) + (group.operators.size() == 1 ? " operator" : " operators");
}

std::vector<std::size_t> families_of(std::span<const subgraph> groups, const family_key& key) {
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  std::vector<std::size_t> families;
  for (const subgraph& group : groups)
    families.push_back(known.try_emplace({std::string(group.space), key(group)}, known.size()).first->second);
  return families;
}

double share_of_ordered_pairs(std::span<const float> predicted, std::span<const double> times, double apart) {
  constexpr std::size_t most = 4096;
  if (predicted.size() != times.size())
    throw error(error_kind::invalid_argument, "each point needs one prediction and one time",
                "tune::share_of_ordered_pairs");
  if (predicted.size() > most)
    throw error(error_kind::invalid_argument, "more than 4096 points have too many pairs",
                "tune::share_of_ordered_pairs", "sample the points");
  std::size_t pairs = 0, halves = 0;
  for (std::size_t i = 0; i < times.size(); ++i)
    for (std::size_t j = i + 1; j < times.size(); ++j) {
      if (std::abs(times[i] - times[j]) <= apart * std::min(times[i], times[j])) continue;
      ++pairs;
      if (predicted[i] == predicted[j]) halves += 1;
      else if ((predicted[i] > predicted[j]) == (times[i] < times[j])) halves += 2;
    }
  return pairs == 0 ? 1.0 : static_cast<double>(halves) / 2 / static_cast<double>(pairs);
}

std::vector<std::size_t> learned_families(const agreement_table& table, double least) {
  const auto is_share = [](double s) { return s >= 0 && s <= 1; };
  if (table.shares.size() != table.tasks * table.tasks || !std::ranges::all_of(table.shares, is_share))
    throw error(error_kind::invalid_argument, "the table of agreements is not square, or holds a number outside 0 to 1",
                "tune::learned_families");
  std::vector<std::vector<std::size_t>> families(table.tasks);
  for (std::size_t i = 0; i < table.tasks; ++i) families[i] = {i};
  for (;;) {
    double closest = least;
    std::pair<std::size_t, std::size_t> pair;
    for (std::size_t i = 0; i < families.size(); ++i)
      for (std::size_t j = i + 1; j < families.size(); ++j)
        if (const double link = linkage(table, families[i], families[j]);
            link > closest || (link == closest && pair.second == 0)) {
          closest = link;
          pair = {i, j};
        }
    if (pair.second == 0) break;
    auto& into = families[pair.first];
    into.insert(into.end(), families[pair.second].begin(), families[pair.second].end());
    families.erase(families.begin() + static_cast<std::ptrdiff_t>(pair.second));
  }
  std::vector<std::size_t> numbers(table.tasks);
  for (std::size_t f = 0; f < families.size(); ++f)  // the first task of a family is its smallest
    for (const std::size_t task : families[f]) numbers[task] = f;
  return numbers;
}

}  // namespace collage::inline v0::tune
