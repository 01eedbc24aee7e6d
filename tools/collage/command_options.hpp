// A command of the program, and the options that several commands share.
#pragma once

#include "error_option.hpp"
#include "memory_option.hpp"
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace program {

/// Checks that a text is a whole number in a range. As CLI11 requires, returns the fault, or an empty string.
template <class Int>
CLI::Validator whole_number(Int least, Int most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        Int number{};
        const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
        if (end.ec == std::errc() && end.ptr == text.data() + text.size() && number >= least && number <= most)
          return std::string();
        return "'" + text + "' is not a whole number from " + std::to_string(least) + " to " + std::to_string(most);
      },
      "");
}

/// Replaces "90", "90s" or "1.5min" by a number of seconds. Returns the fault, or an empty string.
inline std::string read_seconds(std::string& text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto end = std::from_chars(text.data(), last, number);
  const std::string_view unit(end.ptr, static_cast<std::size_t>(last - end.ptr));
  if (unit == "min") number *= 60;
  if (end.ec != std::errc() || (!unit.empty() && unit != "s" && unit != "min") || !(number >= 0 && number <= 3600))
    return "'" + text + "' is not a number of seconds from 0 to 3600; write 90, 90s or 1.5min";
  char exact[32];  // with all digits: rounded to 0, it would mean no limit
  text.assign(exact, std::to_chars(exact, exact + sizeof exact, number).ptr);
  return {};
}
inline CLI::Validator seconds() { return CLI::Validator(read_seconds, ""); }

/// The names in "a,b". A list of CLI11 would also take the next argument of the command line.
inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    names.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

/// A command and its options, added to the parser.
class command {
 public:
  command(CLI::App& program, options& given, const char* name, int (*function)(const options&), const char* about,
          const char* footer)
      : app_(program.add_subcommand(name, about)), given_(given), run_(function) {
    app_->group("Commands");
    app_->footer(footer);
    app_->set_help_flag("-h,--help", "Print this page");
  }

  command& network(bool required = true) {
    app_->add_option("NET", given_.network, "The network: zoo:NAME (see collage zoo), or an ONNX file")
        ->required(required)
        ->option_text(" ");
    app_->add_option("--shape", given_.shapes, "Shape of an open input, or an open extent by its name; repeatable")
        ->option_text("NAME=1x3x?x224")
        ->allow_extra_args(false);
    app_->add_option("--bind", given_.bindings, "Make an input a constant before the network is placed; repeatable")
        ->option_text("NAME=FILE.npy")
        ->allow_extra_args(false);
    return *this;
  }
  command& plan() {
    app_->add_option("--plan", given_.plan_file, "A plan from collage tune; without it, the network is placed first")
        ->option_text("FILE");
    app_->add_flag("--accept-version-change", given_.accept_version_change,
                   "Accept a plan that was made with other versions of the libraries");
    return *this;
  }
  /// Adds the options of the commands that place networks or run them.
  command& placing() {
    computes_ = true;
    app_->add_option_function<std::string>(
            "--backends", [this](const std::string& text) { given_.backends = split(text); },
            "Use only these backends, as in onednn,eigen (see collage backends)")
        ->option_text("A,B");
    add_threads();
    app_->add_option_function<std::string>(
            "--place",
            [this](const std::string& how) {
              given_.costs = how == "measure"    ? collage::placing_costs::measured
                             : how == "estimate" ? collage::placing_costs::estimated
                                                 : collage::placing_costs::none;
            },
            "How to place without a plan: by measuring, stored costs or backend order")
        ->option_text("measure|estimate|priority")
        ->check(CLI::IsMember({"measure", "estimate", "priority"}).description(""));
    app_->add_option("--store", given_.store_file,
                     "File of measured costs; default: collage/costs.db in the user's cache folder")
        ->option_text("FILE|none");
    app_->add_option("--pin", given_.pins, "Let only BACKEND run a node, operator or pattern; repeatable")
        ->option_text("WHAT=BACKEND")
        ->allow_extra_args(false);
    app_->add_option("--exclude", given_.exclusions, "Do not let BACKEND run a node, operator or pattern; repeatable")
        ->option_text("WHAT=BACKEND")
        ->allow_extra_args(false);
    app_->add_option("--budget", given_.budget_s,
                     "Time limit for placing; after it, the best placement so far is taken")
        ->option_text("S")
        ->transform(seconds());
    app_->add_option("--autotune", given_.autotune_s,
                     "Time to search whole spaces of configurations; default: 0, no such search")
        ->option_text("S")
        ->transform(seconds());
    app_->add_option("--regions", given_.regions_s,
                     "Time limit for the search over regions; default: 30, 0: no such search")
        ->option_text("S")
        ->transform(seconds());
    app_->add_flag("--complete", given_.complete,
                   "Measure every kernel, not only those that the best placement may contain");
    app_->add_flag("--keep-non-finite", given_.keep_non_finite,
                   "Refuse kernels that do not treat NaN and infinity as the reference does");
    app_->add_option("--algorithms", given_.algorithms,
                     "Kernels that compute otherwise than by definition: none, accurate, any")
        ->option_text("direct|accurate|any")
        ->check(CLI::IsMember({"direct", "accurate", "any"}).description(""));
    app_->add_option("--precision", given_.precision,
                     "Element types in which values may be stored and multiplied; default: fp32")
        ->option_text("fp32|bf16|int8|any")
        ->check(CLI::IsMember({"fp32", "bf16", "int8", "any"}).description(""));
    app_->add_option("--error", given_.error, "Most error by lower precision, relative to the outputs; default: 1%")
        ->option_text("1%|0.01")
        ->check(CLI::Validator([](std::string& text) { return fault_of_error(text); }, ""));
    app_->add_option_function<std::vector<std::string>>(
            "--keep",
            [this](const std::vector<std::string>& lists) {
              for (const std::string& list : lists)
                for (std::string& what : split(list)) given_.kept.push_back(std::move(what));
            },
            "Nodes, or operators as kind:softmax, that stay in float32; repeatable")
        ->option_text("NAME|kind:KIND")
        ->allow_extra_args(false);
    app_->add_option("--data", given_.data, "Samples as .npy files, for --precision")->option_text("FOLDER|FILE.npy");
    app_->add_option("--ranges", given_.known_ranges,
                     "Ranges of values, of `collage calibrate`, for --precision int8|any")
        ->option_text("RANGES");
    app_->add_option("--memory", given_.memory,
                     "Most memory for weights: a ratio of their size, or bytes; default: 1.5x")
        ->option_text("1.5x|200MB")
        ->check(CLI::Validator([](std::string& text) { return fault_of_memory(text); }, ""));
    app_->add_flag("--recheck", given_.recheck, "Run end-to-end comparisons again even if the store has their results");
    add_seed();
    return *this;
  }
  /// Adds the options of a command that runs a network without placing it.
  command& running() {
    computes_ = true;
    add_threads();
    add_seed();
    return *this;
  }
  command& output() {
    app_->add_flag("--json", given_.json, "Print JSON");
    app_->add_flag("--quiet", given_.quiet, "Print no progress and no notes");
    return *this;
  }
  CLI::App* operator->() { return app_; }
  bool chosen() const { return app_->parsed(); }
  std::string name() const { return app_->get_name(); }
  auto run() const { return run_; }
  /// Whether it runs kernels.
  bool computes() const { return computes_; }

 private:
  void add_threads() {
    app_->add_option("--threads", given_.threads, "Number of threads; default: all processors that the process may use")
        ->option_text("N")
        ->check(whole_number(1, 1024));
  }
  void add_seed() {
    app_->add_option("--seed", given_.seed, "Seed of the random inputs; default: 1")
        ->option_text("N")
        ->check(whole_number(std::uint64_t{0}, ~std::uint64_t{0}));
  }

  CLI::App* app_;
  options& given_;
  int (*run_)(const options&);
  bool computes_ = false;
};

}  // namespace program
