// Runs ONNX's own tests:  collage_onnx_tests FOLDER [OPTION...]
//
//   --filter TEXT      tests whose name contains TEXT
//   --table            a line per operator
//   --refused          what was refused, and why
//   --reference        by the reference alone, without the engine
//   --jobs N           tests side by side (1)
//   --least N          fail when fewer pass
//   --disputed FILE    tests whose published output is wrong: a name per line, and why
//   --operators FILE   the list of ONNX's operators, for the next two
//   --write-docs FILE  write what is not supported into the page
//   --check-docs FILE  fail where the page says anything else
//
// Exit status: 0, or 1 where a test failed, 77 where the folder is not there.
#include "backends.hpp"
#include "one_test.hpp"
#include "page.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace onnx_tests;

struct options {
  std::string folder, filter, disputed, operators, write_docs, check_docs;
  bool table = false, refused = false, reference = false;
  std::size_t jobs = 1, least = 0;
};

std::size_t number(const std::string& text) {
  std::size_t n = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc{} || end != text.data() + text.size())
    throw std::runtime_error("'" + text + "' is no number");
  return n;
}

options parse(int argc, char** argv) {
  options o;
  std::vector<std::string> words(argv + 1, argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto next = [&] {
      if (++i == words.size()) throw std::runtime_error(word + " needs a value");
      return words[i];
    };
    if (word == "--filter") o.filter = next();
    else if (word == "--table") o.table = true;
    else if (word == "--refused") o.refused = true;
    else if (word == "--reference") o.reference = true;
    else if (word == "--jobs") o.jobs = std::max<std::size_t>(1, number(next()));
    else if (word == "--least") o.least = number(next());
    else if (word == "--disputed") o.disputed = next();
    else if (word == "--operators") o.operators = next();
    else if (word == "--write-docs") o.write_docs = next();
    else if (word == "--check-docs") o.check_docs = next();
    else if (o.folder.empty() && word[0] != '-') o.folder = word;
    else throw std::runtime_error("unknown argument '" + word + "'");
  }
  if (o.folder.empty()) throw std::runtime_error("no folder is given");
  return o;
}

std::vector<test_result> run_all(const std::vector<one_test>& tests, collage::backend_table backends,
                                 std::size_t jobs) {
  std::vector<test_result> results(tests.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < tests.size();) results[i] = run(tests[i], backends);
  };
  std::vector<std::jthread> others;
  for (std::size_t j = 1; j < jobs; ++j) others.emplace_back(work);
  work();
  others.clear();  // waits
  return results;
}

std::string text_of(const std::string& file) {
  std::ifstream from(file);
  if (!from) throw std::runtime_error(file + " cannot be read");
  std::stringstream text;
  text << from.rdbuf();
  return text.str();
}

/// Takes the tests of a list out of those that failed; one that did not fail does not belong there.
void set_disputed_apart(std::vector<test_result>& results, const std::string& list) {
  std::stringstream lines(text_of(list));
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find(' '));
    for (test_result& r : results)
      if (r.test == name && r.is == outcome::failed) r.is = outcome::disputed;
      else if (r.test == name) r.is = outcome::failed, r.why = "it is on the list " + list + ", and did not fail";
  }
}

/// Whether all is as it must be.
bool report(const std::vector<test_result>& results, const options& o) {
  for (const test_result& r : results) {
    if (r.is == outcome::failed)
      std::printf("FAILED  %s (%s): %s\n", r.test.c_str(), r.operator_name.c_str(), r.why.c_str());
    if (r.is == outcome::refused && o.refused) std::printf("refused %s: %s\n", r.test.c_str(), r.why.c_str());
  }
  if (o.table) std::fputs(table(results).c_str(), stdout);
  const counts c = count(results);
  std::printf("%zu passed (%zu with live inputs), %zu refused, %zu disputed, %zu failed\n", c.passed, c.live, c.refused,
              c.disputed, c.failed);
  bool good = c.failed == 0;
  if (c.passed < o.least) {
    std::printf("at least %zu must pass\n", o.least);
    good = false;
  }
  if (!o.write_docs.empty()) {
    const std::string page = with_section(text_of(o.write_docs), unsupported_section(o.operators, results));
    std::ofstream(o.write_docs) << page;
  }
  if (!o.check_docs.empty()) {
    const std::string page = text_of(o.check_docs);
    if (with_section(page, unsupported_section(o.operators, results)) != page) {
      std::printf("%s does not say what these tests show: bring it up to date with --write-docs\n",
                  o.check_docs.c_str());
      good = false;
    }
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const options o = parse(argc, argv);
    if (!std::filesystem::is_directory(o.folder)) {
      std::printf("skipped: there is no folder %s (tools/setup fetches the tests)\n", o.folder.c_str());
      return 77;
    }
    std::vector<one_test> tests = tests_of(o.folder);
    std::erase_if(tests, [&](const one_test& t) { return t.name.find(o.filter) == std::string::npos; });
    if (tests.empty()) throw std::runtime_error(o.folder + " holds no such test");
    const collage::backend_table backends = o.reference ? collage::backend_table() : program::backends();
    if (backends.empty() && !o.reference) throw std::runtime_error("this build has no backend: give --reference");
    std::vector<test_result> results = run_all(tests, backends, o.jobs);
    if (!o.disputed.empty()) set_disputed_apart(results, o.disputed);
    return report(results, o) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "collage_onnx_tests: %s\n", e.what());
    return 2;
  }
}
