// Shared by the examples on trained models: the backends of this build, a model file made ready to run, and the command line.
#pragma once

#if COLLAGE_HAS_EIGEN
#include <collage/backends/eigen.hpp>
#endif
#if COLLAGE_HAS_ONEDNN
#include <collage/backends/onednn.hpp>
#endif
#if COLLAGE_HAS_OPENBLAS
#include <collage/backends/openblas.hpp>
#endif
#include <algorithm>
#include <chrono>
#include <collage/backends/portable.hpp>
#include <collage/collage.hpp>
#include <collage/io/onnx.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/processor.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace example {

namespace c = collage;

// In order of preference where nothing was measured. portable takes every operator that the libraries leave over.
using backends = c::backend_set<
#if COLLAGE_HAS_ONEDNN
    c::onednn,
#endif
#if COLLAGE_HAS_OPENBLAS
    c::openblas,
#endif
#if COLLAGE_HAS_EIGEN
    c::eigen,
#endif
    c::portable>;

/// Returns the name of a model's file, which must exist.
inline const std::string& existing(const std::string& file) {
  if (std::filesystem::exists(file)) return file;
  throw c::error(c::error_kind::environment, "is not here", file,
                 "tools/setup fetches it, or name its folder with --models");
}

/// A model ready to run, and the information in its file besides the network.
struct trained_model {
  c::dynamic_engine engine;
  c::onnx::load_report report;
};

/// The engine of a plan kept in a file, if it was made on such a machine by a build with the same backends.
inline std::optional<c::dynamic_engine> engine_of_kept_plan(const c::graph& network, const std::string& file) try {
  return c::engine<backends>(network, c::load_plan<backends>(file, network, {.threads = c::available_threads()}));
} catch (const c::error&) {
  return {};  // the network is placed again, whatever is wrong with the file
}

/// Reads a model, with the shapes and values that it leaves open, places it over the backends, and builds its engine. Placing
/// measures for seconds, so the plan is kept beside the program for later starts.
inline trained_model prepare(const std::string& file, std::vector<c::onnx::bound_shape> shapes,
                             std::vector<c::onnx::bound_value> values = {}) {
  const std::filesystem::path path(existing(file)), plans(COLLAGE_EXAMPLE_PLANS);
  c::onnx::load_report report;
  const c::graph network =
      c::optimise(c::onnx::load(file, {.shapes = std::move(shapes), .values = std::move(values)}, &report));

  char print[24];
  std::snprintf(print, sizeof(print), "%016llx", static_cast<unsigned long long>(network.fingerprint()));
  const std::string kept = (plans / (path.stem().string() + '-' + print + ".plan.json")).string();
  if (std::optional<c::dynamic_engine> engine = engine_of_kept_plan(network, kept)) return {*engine, report};

  std::fprintf(stderr, "placing %s, once ...\n", path.filename().c_str());
  // Shorter than the default: here a result within seconds is worth more than the last per cent.
  const c::timing_options timing = {.sample_ms = 0.1, .rounds = 3, .budget_ms = 20};
  auto next = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const auto progress = [&next](const c::place_progress& now) {
    if (std::chrono::steady_clock::now() < next) return;
    std::fprintf(stderr, "  %s, %zu of %zu: %s\n", now.stage, now.done, now.done + now.remaining, now.what.c_str());
    next = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  };
  const c::plan plan = c::place<backends>(network, {.network = path.stem(),
                                                    .budget_s = 8,
                                                    .progress = progress,
                                                    .measuring = {.timing = timing},
                                                    .comparing = {.seconds = 0.5}});
  std::filesystem::create_directories(plans);
  c::save_plan(plan, network, kept);
  return {c::engine<backends>(network, plan), report};
}

/// The words of a command line: `--NAME VALUE` for the program's options, and the other words in order.
struct command_line {
  std::map<std::string, std::string> options;
  std::vector<std::string> words;

  command_line(int argc, char** argv, const char* usage, std::initializer_list<const char*> names) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (!word.starts_with("--")) {
        words.push_back(word);
        continue;
      }
      if (std::find(names.begin(), names.end(), word) == names.end() || i + 1 == argc)
        throw c::error(c::error_kind::invalid_argument, usage, "usage");
      options[word] = argv[++i];
    }
  }
  std::string option(const char* name, const std::string& otherwise) const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : found->second;
  }
};

/// Runs a program's body. An exception becomes one sentence and an exit status: 2 for the user's mistakes, 1 for failures.
template <class Body>
int guarded(const char* program, Body body) {
  try {
    return body();
  } catch (const c::error& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return e.exit_code();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return 1;
  }
}

}  // namespace example
