#include "page.hpp"

#include <collage/io/onnx.hpp>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace onnx_tests {

namespace {

constexpr const char *begin_mark = "<!-- generated: unsupported -->\n", *end_mark = "<!-- end of generated -->\n";

/// Why operators are left out, by the word behind their names in the list. The empty word comes last.
constexpr std::pair<const char*, const char*> reasons[] = {
    {"sequences", "sequences of tensors; collage has only tensors"},
    {"optionals", "values that may be absent"},
    {"strings", "text; no element type of ours holds it"},
    {"classical_learning", "trees, vector machines, dictionaries: the domain `ai.onnx.ml`"},
    {"randomness", "random outputs, which no plan can be checked by"},
    {"training", "training"},
    {"", "not written"},
};

std::string lines_of(const std::string& text, std::size_t width) {
  std::string result, line;
  std::stringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > width) result += std::exchange(line, {}) + "\n";
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line + "\n";
}

/// Why each node of a refused model was refused: what its lines end with, without the remedy.
std::set<std::string> reasons_of(const std::string& message) {
  std::set<std::string> list;
  std::stringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(':')) continue;  // how many nodes follow
    const std::size_t at = line.rfind(": ");
    if (at != std::string::npos) line = line.substr(at + 2);
    list.insert(line.substr(0, line.find("; ")));
  }
  return list;
}

/// What is refused of operators that have a rule, and in the tests of which of them.
std::string refusals_table(std::span<const test_result> results, const std::set<std::string>& known) {
  std::map<std::string, std::map<std::string, std::size_t>> by_reason;
  for (const test_result& r : results)
    if (r.is == outcome::refused && known.contains(r.operator_name))
      for (const std::string& reason : reasons_of(r.why))
        ++by_reason[reason == "this operator is not known" ? "an operator of the first list" : reason][r.operator_name];
  std::string text = "| refused | in tests of |\n|---|---|\n";
  for (const auto& [reason, operators] : by_reason) {
    std::string names;
    for (const auto& [name, n] : operators)
      names += (names.empty() ? "`" : ", `") + name + "` (" + std::to_string(n) + ")";
    text += "| " + reason + " | " + names + " |\n";
  }
  return text;
}

std::string row(const std::string& what, std::size_t n) { return "| " + what + " | " + std::to_string(n) + " |\n"; }

}  // namespace

counts count(std::span<const test_result> results) {
  counts c;
  for (const test_result& r : results) {
    c.passed += r.is == outcome::passed;
    c.live += r.is == outcome::passed && r.live;
    c.refused += r.is == outcome::refused;
    c.disputed += r.is == outcome::disputed;
    c.failed += r.is == outcome::failed;
  }
  return c;
}

std::map<std::string, counts> count_by_operator(std::span<const test_result> results) {
  std::map<std::string, std::vector<test_result>> by_operator;
  for (const test_result& r : results) by_operator[r.operator_name].push_back(r);
  std::map<std::string, counts> all;
  for (const auto& [name, list] : by_operator) all[name] = count(list);
  return all;
}

std::string table(std::span<const test_result> results) {
  std::string text;
  const auto add = [&](const std::string& name, const std::vector<std::string>& columns) {
    text += name + std::string(40 - std::min<std::size_t>(40, name.size()), ' ');
    for (const std::string& column : columns)
      text += std::string(10 - std::min<std::size_t>(10, column.size()), ' ') + column;
    text += '\n';
  };
  add("operator", {"passed", "(live)", "refused", "disputed", "failed"});
  for (const auto& [name, c] : count_by_operator(results))
    add(name, {std::to_string(c.passed), std::to_string(c.live), std::to_string(c.refused), std::to_string(c.disputed),
               std::to_string(c.failed)});
  return text;
}

std::string unsupported_section(const std::string& operators_file, std::span<const test_result> results) {
  const std::vector<std::string> supported = collage::onnx::supported_operators();
  const std::set<std::string> known(supported.begin(), supported.end());
  std::map<std::string, std::vector<std::string>> missing;
  std::size_t all = 0, lacking = 0;
  std::ifstream file(operators_file);
  if (!file) throw std::runtime_error(operators_file + " cannot be read");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::stringstream words(line);
    std::string name, need;
    words >> name >> need;
    ++all;
    if (known.contains(name)) continue;
    ++lacking;
    missing[need].push_back(name);
  }

  std::string text = lines_of("ONNX up to opset 27 and its three smaller domains have " + std::to_string(all) +
                                  " operators: " + std::to_string(all - lacking) + " are read; " +
                                  std::to_string(lacking) + " are refused with a sentence:",
                              120);
  text += "\n| operators | why |\n|---|---|\n";
  for (const auto& [need, why] : reasons) {
    const auto found = missing.find(need);
    if (found == missing.end()) continue;
    std::string names;
    for (const std::string& name : found->second) names += (names.empty() ? "`" : " `") + name + "`";
    text += "| " + names + " | " + why + " |\n";
  }

  const counts c = count(results);
  std::size_t refused_operators = 0;
  for (const test_result& r : results)
    refused_operators += r.is == outcome::refused && !known.contains(r.operator_name);
  text +=
      "\n" + lines_of(
                 "ONNX's own tests of single operators (version 1.22.0), by the engine over all backends and by the "
                 "reference:",
                 120);
  text += "\n| outcome | tests |\n|---|--:|\n";
  text += row("passed, with no input bound", c.live);
  text += row("passed, from constants alone", c.passed - c.live);
  text += row("refused, an operator of the first list", refused_operators);
  text += row("refused, an element type or a variant that we do not have", c.refused - refused_operators);
  text += row("not as published, where the published output is wrong (`tests/onnx/disputed.txt`)", c.disputed);
  text += row("failed", c.failed);
  text += "\nRefusals of operators that are read, by the tests that show it:\n\n";
  return text + refusals_table(results, known);
}

std::string with_section(const std::string& page, const std::string& section) {
  const std::size_t begin = page.find(begin_mark), end = page.find(end_mark);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    throw std::runtime_error("the page lacks the lines " + std::string(begin_mark, 31) + " and " +
                             std::string(end_mark, 25));
  return page.substr(0, begin) + begin_mark + section + page.substr(end);
}

}  // namespace onnx_tests
