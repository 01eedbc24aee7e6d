// What benchmarks that place networks share: the backends, as in the program, and the built-in networks.
#pragma once

#include <collage/backend_set.hpp>
#include <collage/backends/eigen.hpp>
#include <collage/backends/onednn.hpp>
#include <collage/backends/openblas.hpp>
#include <collage/backends/portable.hpp>
#include <collage/backends/stacked.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place/worker.hpp>
#include <collage/zoo/all.hpp>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

namespace benchmarks {

namespace c = collage;

using all_backends = c::backend_set<c::onednn, c::openblas, c::eigen, c::stacked, c::portable>;

/// A built-in network as `collage tune zoo:NAME` places it.
inline c::graph network_called(const std::string& name) {
  c::graph_builder g;
  if (!c::zoo::build(name.c_str(), g)) {
    std::string known;
    for (const c::zoo::network& n : c::zoo::networks) known += (known.empty() ? "" : ", ") + std::string(n.name);
    throw c::error(c::error_kind::invalid_argument, "there is no such network", "network " + name,
                   "name one of " + known);
  }
  c::graph network = g.finish();
  c::fill_constants(network);
  return c::optimise(network);
}

/// The words of a command line: options of the form --NAME VALUE, and others.
class command_line {
 public:
  command_line(int count, const char* const* words) : words_(words + 1, words + count) {}

  /// Takes an option; `otherwise` where it is not there.
  std::string text(const std::string& name, const std::string& otherwise) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] != name) continue;
      if (i + 1 == words_.size())
        throw c::error(c::error_kind::invalid_argument, "needs a value", name, "give one behind it");
      const std::string value = words_[i + 1];
      words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i),
                   words_.begin() + static_cast<std::ptrdiff_t>(i + 2));
      return value;
    }
    return otherwise;
  }
  std::size_t number(const std::string& name, std::size_t otherwise) {
    const std::string value = text(name, std::to_string(otherwise));
    std::size_t found = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), found);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size())
      throw c::error(c::error_kind::invalid_argument, "is not a whole number", name + " " + value,
                     "give one, as in 20");
    return found;
  }
  bool flag(const std::string& name) { return std::erase(words_, name) != 0; }

  /// What is left, none of which may look like an option.
  const std::vector<std::string>& rest() const {
    for (const std::string& word : words_)
      if (word.starts_with("--"))
        throw c::error(c::error_kind::invalid_argument, "there is no such option", word,
                       "see the first lines of the benchmark's source");
    return words_;
  }

 private:
  std::vector<std::string> words_;
};

/// The whole of main: measures in workers, and tells errors as the program does.
inline int run(const char* name, int (*measure)(int, const char* const*), int count, char** words) {
  if (c::worker<all_backends>(count, words)) return 0;
  try {
    return measure(count, words);
  } catch (const c::error& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return e.exit_code();
  }
}

}  // namespace benchmarks
