#include "command_line.hpp"

#include "command_options.hpp"
#include "commands.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace program {

namespace {

constexpr const char* program_footer =
    R"(NET is zoo:NAME or FILE.onnx. Without --plan, run, bench, explain and verify place it first.

Examples:
  collage zoo                                           the built-in networks
  collage tune zoo:resnext50-paper --plan resnext.json  measure, place, keep the plan
  collage explain zoo:resnext50-paper --plan resnext.json    which kernel runs what, and why
  collage bench zoo:resnext50-paper --plan resnext.json      the plan and each backend alone
  collage diff resnext.json other.json                       two plans of one network
  collage report zoo:resnext50-paper --plan resnext.json -o resnext.html   a page for browsers
  collage verify zoo:bert-paper --backends onednn,eigen      place now, then check
  collage calibrate model.onnx --data images -o ranges.json  ranges for 8-bit numbers
  collage inspect model.onnx --shape image=1x3x224x224       nodes and shapes of a file

Results are on standard output, progress and errors on standard error. Exit status: 0 done,
1 failure, 2 wrong usage. `collage COMMAND --help` lists the options of a command.)";

/// A check of billions of operations or bytes per second. CLI11's own for positive numbers lets NaN and infinity pass.
CLI::Validator rate() {
  constexpr double most = 1e9;
  const auto check = [](const std::string& text) {
    double number = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end.ec == std::errc() && end.ptr == text.data() + text.size() && number > 0 && number <= most)
      return std::string();
    return "'" + text + "' is not a number above 0 and at most 1e9";
  };
  return CLI::Validator(check, "");
}

/// Adds the commands of `collage store`. Returns their names.
std::vector<std::string> add_store_commands(CLI::App& store, options& given) {
  std::vector<std::string> names;
  const auto add = [&](const char* name, const char* about, const char* footer) {
    names.emplace_back(name);
    CLI::App* part = store.add_subcommand(name, about);
    part->group("Commands");
    part->footer(footer);
    part->set_help_flag("-h,--help", "Print this page");
    part->callback([&given, name] { given.store_action = name; });
    part->add_option("--store", given.store_file,
                     "File of the store; default: collage/costs.db in the user's cache folder")
        ->option_text("FILE");
    return part;
  };
  const auto filter = [&](CLI::App* part) {
    part->add_option("--backend", given.store_backend, "Only costs of this backend")->option_text("B");
    part->add_flag("--refused", given.refused, "Only refusals");
    return part;
  };
  const auto file = [&](CLI::App* part, const char* about) {
    part->add_option("FILE", given.store_word, about)->required()->option_text(" ");
  };
  filter(add("list", "List measured costs and end-to-end results", "Example:\n  collage store list --backend onednn"))
      ->add_option("TEXT", given.store_word, "Part of a label, kernel or pattern, or the beginning of an id")
      ->option_text(" ");
  add("show", "Print every field of some entries", "Example:\n  collage store show 322fb33d")
      ->add_option("TEXT", given.store_word, "The beginning of an id, or part of a label, kernel or pattern")
      ->required()
      ->option_text(" ");
  CLI::App* prune =
      filter(add("prune", "Remove the entries that meet all given conditions, without asking",
                 "Examples:\n  collage store prune --older-than 90\n  collage store prune --backend onednn "
                 "--refused"));
  prune->add_option("--older-than", given.older_than_days, "Entries measured more than DAYS days ago")
      ->option_text("DAYS")
      ->check(whole_number(0, 36500));
  prune->add_flag("--other-machines", given.other_machines, "Entries measured on another processor model");
  prune->add_flag("--damaged", given.damaged, "Damaged entries (see collage store check)");
  file(add("export", "Write all entries to a JSON file", "Example:\n  collage store export costs.json"),
       "The file to write");
  file(add("import", "Add the entries of an exported file; newer entries replace older ones",
           "Example:\n  collage store import costs.json"),
       "The file to read");
  file(add("merge", "Add the entries of another store; newer entries replace older ones",
           "Example:\n  collage store merge other/costs.db"),
       "The other store");
  add("check", "Read the whole store and report damage", "Exit status 1: the store is damaged.");
  for (CLI::App* part : store.get_subcommands({})) {
    part->add_flag("--json", given.json, "Print JSON");
    part->add_flag("--quiet", given.quiet, "Print no progress and no notes");
  }
  return names;
}

/// The commands of the program, in the order of its help page.
class command_list {
 public:
  command_list(CLI::App& program, options& given) : program_(program), given_(given) {
    list_.reserve(13);  // CLI11 keeps references into the elements
    add_backends();
    add("zoo", show_zoo, "List the built-in networks", "Example:\n  collage zoo").output();
    add_inspect();
    add_tune();
    add_run();
    add_calibrate();
    add_bench();
    add_explain();
    add_diff();
    add_report();
    add_verify();
    add_replay();
    add_store();
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const command& c : list_) names.push_back(c.name());
    return names;
  }
  const std::vector<std::string>& store_names() const { return store_names_; }

  /// The parsed command; null if none was parsed.
  const command* chosen() const {
    const auto at = std::ranges::find_if(list_, [](const command& c) { return c.chosen(); });
    return at == list_.end() ? nullptr : &*at;
  }

 private:
  command& add(const char* name, int (*function)(const options&), const char* about, const char* footer) {
    return list_.emplace_back(program_, given_, name, function, about, footer);
  }
  void add_backends() {
    command& c = add("backends", show_backends, "List the backends: version, patterns, or why they are unavailable",
                     "With --json, every pattern is described in words.");
    c.output()->add_flag("--coverage", given_.coverage,
                         "Print the operators that each backend declares, instead of the list");
    c->add_flag("--all", given_.all, "Include backends that this program was built without, and how to add them");
  }
  void add_inspect() {
    command& c = add("inspect", inspect, "Print a network: its nodes, shapes and size",
                     "Example:\n  collage inspect zoo:dcgan-paper --dot dcgan.dot && dot -Tsvg dcgan.dot > dcgan.svg");
    c.network()
        ->add_option("--dot", given_.dot_file, "Write the network to a Graphviz file instead of printing it")
        ->option_text("FILE");
    c.output();
  }
  void add_tune() {
    command& c = add("tune", tune, "Measure and place a network, and write the plan to a file",
                     "Example:\n  collage tune zoo:resnext50-paper --plan resnext.json --threads 2\n\n"
                     "With several values of an extent, tune measures a few shapes so that the store serves all:\n"
                     "  collage tune text.onnx --shape length=1..512 --budget 10min");
    c.network()
        ->add_option("--plan", given_.plan_file, "Where to write the plan; required, unless --shape names several")
        ->option_text("FILE");
    c->add_flag("--requantise", given_.requantise,
                "With --precision: choose anew what a quantised file rounds, by its ranges");
    c->add_option("--curve", given_.curve_file, "With --precision: also draw the time over ten errors, as SVG")
        ->option_text("FILE");
    c.placing().output();
  }
  void add_run() {
    command& c = add("run", run, "Run a network on given or random inputs",
                     "Example:\n  collage run zoo:mobilenet-v2 --plan mobilenet.json --input input=photo.npy "
                     "--output results");
    c.network().plan();
    c->add_option("--input", given_.inputs, "Contents of an input; repeatable, default: random")
        ->option_text("NAME=FILE.npy|random")
        ->allow_extra_args(false);
    c->add_option("--output", given_.output_folder, "Write each output to FOLDER/NAME.npy")->option_text("FOLDER");
    c->add_flag("--profile", given_.profile, "Print the time of each step");
    c->add_option("--trace", given_.trace_file,
                  "Also write a trace of some runs, for ui.perfetto.dev or chrome://tracing")
        ->option_text("FILE");
    c.placing().output();
  }
  void add_calibrate() {
    command& c =
        add("calibrate", calibrate, "Run a network on samples and write ranges of its values, for 8-bit numbers",
            "Data for a network with one input: an .npy file, or a folder of them. For several inputs:\n"
            "a folder with NAME.npy for each, or folders of this kind. A file may hold many samples.\n\n"
            "Examples:\n  collage calibrate model.onnx --data images.npy --method mse --per-channel -o ranges.json\n"
            "  collage calibrate --merge monday.json tuesday.json -o both.json");
    c.network(false);
    c->add_option("--data", given_.data, "Samples as .npy files")->option_text("FOLDER|FILE.npy");
    c->add_option("--samples", given_.sample_count, "Random samples instead of data, to try things out")
        ->option_text("N")
        ->check(whole_number(std::uint64_t{1}, std::uint64_t{1000000000}));
    c->add_option("-o,--output", given_.ranges_file, "The file for the ranges; required")->option_text("RANGES");
    c->add_option("--merge", given_.merged_files, "Merge files of ranges of one network instead of running it")
        ->option_text("A B...");
    c->add_option("--method", given_.method, "How intervals are chosen; default: minmax")
        ->option_text("minmax|percentile|entropy|mse")
        ->check(CLI::IsMember({"minmax", "percentile", "entropy", "mse"}).description(""));
    c->add_option("--percentile", given_.percentile, "Share that --method percentile keeps; default: 99.99")
        ->option_text("P")
        ->check(CLI::Range(50.0, 100.0).description(""));
    c->add_option("--schema", given_.schema, "How numbers are laid over intervals; default: asymmetric")
        ->option_text("asymmetric|symmetric|symmetric-unsigned")
        ->check(CLI::IsMember({"asymmetric", "symmetric", "symmetric-unsigned"}).description(""));
    c->add_flag("--per-channel", given_.per_channel, "A scale for each output channel of weights");
    c.running().output();
  }
  void add_bench() {
    command& c = add("bench", bench, "Run the plan and each backend alone in turns, and compare the times",
                     "A backend alone: the same search with its kernels only. Nodes that it refuses go to the next\n"
                     "backend that runs them.\n\n"
                     "Example:\n  collage bench zoo:resnext50-paper --plan resnext.json --seconds 30");
    c.network()
        .plan()
        ->add_option("--seconds", given_.seconds, "Seconds to run, approximately; default: 10")
        ->option_text("S")
        ->transform(seconds());
    c->add_option("--trace", given_.trace_file,
                  "Also write a trace of some runs, for ui.perfetto.dev or chrome://tracing")
        ->option_text("FILE");
    c.placing().output();
  }
  void add_explain() {
    command& c = add("explain", explain, "Print which kernel runs what, its time, and the alternatives",
                     "Example:\n  collage explain zoo:resnext50-paper --plan resnext.json | less");
    c.network()
        .plan()
        ->add_option("--dot", given_.dot_file,
                     "Also write the network to a Graphviz file, with a colour for each group")
        ->option_text("FILE");
    c->add_flag("--program", given_.program,
                "Print the engine's instructions and their memory instead of the placement");
    c.placing().output();
  }
  void add_diff() {
    command& c = add("diff", diff, "Compare two plans of one network: kernels and costs",
                     "The network's file is not needed. Exit status 0: the plans were compared, even if they differ.\n"
                     "With --json, `same` is true if the same kernels run everything.\n\n"
                     "Example:\n  collage diff before.json after.json");
    c->add_option("PLAN", given_.plan_file, "A plan from collage tune")->required()->option_text(" ");
    c->add_option("OTHER", given_.other_plan_file, "Another plan of the same network")->required()->option_text(" ");
    c.output();
  }
  void add_report() {
    command& c = add("report", report, "Write a plan as a page for browsers: the network drawn, times, choices",
                     "The page is one file that loads nothing. /dev/stdout writes it to standard output.\n\n"
                     "Example:\n  collage report zoo:resnext50-paper --plan resnext.json -o resnext.html");
    c.network()->add_option("--plan", given_.plan_file, "A plan from collage tune; required")->option_text("FILE");
    c->add_flag("--accept-version-change", given_.accept_version_change,
                "Accept a plan that was made with other versions of the libraries");
    c->add_option("-o,--output", given_.report_file, "The page to write; required")->option_text("FILE");
    c->add_option("--against", given_.other_plan_file, "Another plan of the same network to compare with")
        ->option_text("FILE");
    c->add_option("--peak", given_.peak_gflops, "The machine's peak in GFLOP/s, for the roofline")
        ->option_text("GFLOPS")
        ->check(rate());
    c->add_option("--bandwidth", given_.bandwidth_gbytes, "The machine's memory bandwidth in GB/s, for the roofline")
        ->option_text("GBS")
        ->check(rate());
    c.output();
  }
  void add_verify() {
    command& c = add("verify", verify, "Check the plan and every backend against the reference in double precision",
                     "Examples:\n  collage verify zoo:bert-paper --plan bert.json\n"
                     "  collage verify text.onnx --shape T=100 --bucket T=64,128,256");
    c.network().plan();
    c->add_option("--bucket", given_.buckets, "Compare runs padded to one of these extents with exact ones; repeatable")
        ->option_text("SYMBOL=64,128")
        ->allow_extra_args(false);
    c->add_option("--pad", given_.paddings, "With --bucket: what an input is padded with; default: 0; repeatable")
        ->option_text("NAME=VALUE")
        ->allow_extra_args(false);
    c->add_option("--cut", given_.cuts, "With --bucket: how an output of another extent is cut; repeatable")
        ->option_text("OUTPUT[1]=(T+7)/8")
        ->allow_extra_args(false);
    c->add_option("--input", given_.inputs, "With --bucket: contents of an input; repeatable, default: random")
        ->option_text("NAME=FILE.npy|random")
        ->allow_extra_args(false);
    c.placing().output();
  }
  void add_replay() {
    command& c = add("replay", replay_placements, "Place networks on published or modelled costs, without measuring",
                     "Example:\n  collage replay nasnet-a-paper --json");
    c->add_option("NETWORK", given_.networks, "Networks to replay; default: all")->option_text("...");
    c->add_option("--costs", given_.costs_file, "File of costs to use instead of the built-in ones")
        ->option_text("FILE");
    c->add_option("--data", given_.data_folder, "Folder of costs and placements to use instead of the built-in ones")
        ->option_text("FOLDER");
    c.output();
  }
  void add_store() {
    command& c = add("store", store, "List, check and clean the store of measured costs",
                     "Examples:\n  collage store list --backend onednn\n  collage store check\n\n"
                     "`collage store COMMAND --help` lists the options of a command.");
    store_names_ = add_store_commands(*c.operator->(), given_);
  }

  CLI::App& program_;
  options& given_;
  std::vector<command> list_;
  std::vector<std::string> store_names_;
};

/// The place of a mistake, for messages: the command, and the words that print its help page with --help.
struct location {
  std::string where, help;
};

[[noreturn]] void refuse(const std::string& what, const location& at) {
  throw collage::error(collage::error_kind::invalid_argument, what, at.where, "see " + at.help + " --help");
}

/// The names as "a, b".
std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}
bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void refuse_without_command(const std::vector<std::string>& commands, const location& at) {
  refuse("no command is given; the commands are " + joined(commands), at);
}

[[noreturn]] void refuse_command(const std::string& word, const std::vector<std::string>& commands,
                                 const location& at) {
  refuse("there is no command " + word + "; the commands are " + joined(commands), at);
}

[[noreturn]] void refuse_early_option(const std::string& word, const location& at) {
  refuse("there is no option " + word + " before the command", at);
}

/// Throws for the first word of the command line that the parser did not recognise, if there is one.
void refuse_extras(const CLI::App& app, const location& at) {
  for (const std::string& word : app.remaining(true))
    refuse((word.rfind('-', 0) == 0 ? "there is no option " : "unexpected argument ") + word, at);
}

/// Checks the word that chooses the command. Returns the place of mistakes in the words that follow.
location check_command(const std::vector<std::string>& commands, int argc, char** argv) {
  const location at{"command line", "collage"};
  if (argc < 2) refuse_without_command(commands, at);
  const std::string word = argv[1];
  if (contains(commands, word)) return {word, "collage " + word};
  if (word.rfind('-', 0) != 0) refuse_command(word, commands, at);
  if (word != "-h" && word != "--help" && word != "--version") refuse_early_option(word, at);
  return at;
}

/// The same for the word after `collage store`.
location check_store_command(const std::vector<std::string>& commands, const location& at, int argc, char** argv) {
  const std::string word = argc > 2 ? argv[2] : "";
  if (contains(commands, word)) return {at.where + " " + word, at.help + " " + word};
  if (word.empty()) refuse_without_command(commands, at);
  if (word.front() != '-') refuse_command(word, commands, at);
  if (word != "-h" && word != "--help") refuse_early_option(word, at);
  return at;
}

/// Reads the words after `collage --version`.
command_line version_line(int argc, char** argv) {
  command_line line;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--verbose") line.given.verbose = true;
    else if (word == "--json") line.given.json = true;
    else
      refuse((word.rfind('-', 0) == 0 ? "there is no option " : "unexpected argument ") + word,
             {"--version", "collage"});
  }
  if (line.given.json && !line.given.verbose) refuse("--json needs --verbose", {"--version", "collage"});
  line.command = show_version;
  return line;
}

/// Sets the program's own options and the layout of the help pages. `version_line` reads --version.
void describe(CLI::App& app) {
  app.set_help_flag("-h,--help", "Print this page");
  app.add_flag_function(
      "--version", [](std::int64_t) {}, "Print the version; with --verbose, also how collage was built");
  app.get_formatter()->column_width(24);
  app.get_formatter()->label("OPTIONS", "OPTION");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Positionals", "Arguments");
  app.footer(program_footer);
  app.require_subcommand(1);
}

}  // namespace

command_line parse(int argc, char** argv) {
  command_line line;
  CLI::App app("Finds, by measurement, which library runs which part of a neural network, and runs it that way.",
               "collage");
  describe(app);
  const command_list commands(app, line.given);
  // Checked before parsing: CLI11 would report only that a command is missing.
  location at = check_command(commands.names(), argc, argv);
  if (std::string(argv[1]) == "--version") return version_line(argc, argv);
  if (at.where == "store") at = check_store_command(commands.store_names(), at, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // help
    std::ostringstream out, err;
    line.exit_code = app.exit(e, out, err);
    print(out.str());
    return line;
  } catch (const CLI::ExtrasError&) { refuse_extras(app, at); } catch (const CLI::ArgumentMismatch& e) {
    const std::string text = e.what();  // "--plan: 1 required TEXT missing"
    refuse(text.substr(0, text.find(':')) + " needs one value", at);
  } catch (const CLI::ParseError& e) {
    refuse_extras(app, at);  // first: if an option is misspelt, CLI11 reports that a required one is missing
    refuse(e.what(), at);
  }
  if (const command* const chosen = commands.chosen(); chosen != nullptr) {
    line.command = chosen->run();
    line.computes = chosen->computes();
  }
  return line;
}

}  // namespace program
