#include "command_line.hpp"

#include "commands.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/fwd.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace program {

namespace {

constexpr const char* program_footer =
    R"(NET is zoo:NAME or FILE.onnx. Without --plan, run, bench, explain and verify place it first.

Examples:
  collage zoo                                           the built-in networks
  collage tune zoo:resnext50-paper --plan resnext.json  measure, place, keep the plan
  collage explain zoo:resnext50-paper --plan resnext.json    who runs what, and why
  collage bench zoo:resnext50-paper --plan resnext.json      the plan against every library
  collage diff resnext.json other.json                       two plans of one network
  collage verify zoo:bert-paper --backends onednn,eigen      place now, then check
  collage inspect model.onnx --shape image=1x3x224x224       what a file holds

Results are on standard output, progress and errors on standard error. Exit status: 0 done,
1 failure, 2 mistake in the call. `collage COMMAND --help` tells a command's options.)";

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
std::string read_seconds(std::string& text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto end = std::from_chars(text.data(), last, number);
  const std::string_view unit(end.ptr, static_cast<std::size_t>(last - end.ptr));
  if (unit == "min") number *= 60;
  if (end.ec != std::errc() || (!unit.empty() && unit != "s" && unit != "min") || !(number >= 0 && number <= 3600))
    return "'" + text + "' is not a number of seconds from 0 to 3600, as 90, 90s or 1.5min";
  char exact[32];  // with all digits: rounded to 0, it would mean no limit
  text.assign(exact, std::to_chars(exact, exact + sizeof exact, number).ptr);
  return {};
}
CLI::Validator seconds() { return CLI::Validator(read_seconds, ""); }

/// The names in "a,b". A list of CLI11 would also take the next argument of the command line.
std::vector<std::string> split(const std::string& text) {
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

  command& network() {
    app_->add_option("NET", given_.network, "The network: zoo:NAME (see collage zoo), or a file of ONNX")
        ->required()
        ->option_text(" ");
    app_->add_option("--shape", given_.shapes, "The extents of an input that the file leaves open; once for each")
        ->option_text("NAME=1x3x224x224")
        ->allow_extra_args(false);
    app_->add_option("--bind", given_.bindings, "Make an input a constant before all else is decided; once for each")
        ->option_text("NAME=FILE.npy")
        ->allow_extra_args(false);
    return *this;
  }
  command& plan() {
    app_->add_option("--plan", given_.plan_file, "A plan from collage tune; without it, the network is placed first")
        ->option_text("FILE");
    app_->add_flag("--accept-version-change", given_.accept_version_change,
                   "Take a plan that was made with other versions of the libraries");
    return *this;
  }
  command& placing() {
    app_->add_option_function<std::string>(
            "--backends", [this](const std::string& text) { given_.backends = split(text); },
            "Use these alone, as in onednn,eigen (see collage backends)")
        ->option_text("A,B");
    app_->add_option("--threads", given_.threads, "How many; as many as the process may use if not given")
        ->option_text("N")
        ->check(whole_number(1, 1024));
    app_->add_option_function<std::string>(
            "--place", [this](const std::string& how) { given_.measure = how == "measure"; },
            "By measuring, or by the order of the backends, where no plan is given")
        ->option_text("measure|priority")
        ->check(CLI::IsMember({"measure", "priority"}).description(""));
    app_->add_option("--store", given_.store_file, "Where costs are kept; among the user's caches if not given")
        ->option_text("FILE|none");
    app_->add_option("--pin", given_.pins, "A node, operator or pattern for this backend alone; once for each")
        ->option_text("WHAT=BACKEND")
        ->allow_extra_args(false);
    app_->add_option("--exclude", given_.exclusions, "A node, operator or pattern not for this backend; once for each")
        ->option_text("WHAT=BACKEND")
        ->allow_extra_args(false);
    app_->add_option("--budget", given_.budget_s, "Seconds for placing; then the best so far is taken")
        ->option_text("S")
        ->transform(seconds());
    app_->add_option("--regions", given_.regions_s, "Seconds for the search over regions; 30 if not given, 0 for none")
        ->option_text("S")
        ->transform(seconds());
    app_->add_flag("--complete", given_.complete, "Measure every kernel, not only those that can be part of the best");
    app_->add_flag("--keep-non-finite", given_.keep_non_finite,
                   "Leave out kernels that do not treat NaN and infinity as the reference does");
    app_->add_flag("--recheck", given_.recheck, "Compare end to end again what the store has compared before");
    app_->add_option("--seed", given_.seed, "Of the random inputs; 1 if not given")
        ->option_text("N")
        ->check(whole_number(std::uint64_t{0}, ~std::uint64_t{0}));
    return *this;
  }
  command& output() {
    app_->add_flag("--json", given_.json, "Print JSON");
    app_->add_flag("--quiet", given_.quiet, "No progress and no notes on standard error");
    return *this;
  }
  CLI::App* operator->() { return app_; }
  bool chosen() const { return app_->parsed(); }
  std::string name() const { return app_->get_name(); }
  auto run() const { return run_; }

 private:
  CLI::App* app_;
  options& given_;
  int (*run_)(const options&);
};

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
    part->add_option("--store", given.store_file, "Which store; collage/costs.db under the user's caches if not given")
        ->option_text("FILE");
    return part;
  };
  const auto filter = [&](CLI::App* part) {
    part->add_option("--backend", given.store_backend, "Costs of this backend alone")->option_text("B");
    part->add_flag("--refused", given.refused, "Costs that are refusals alone");
    return part;
  };
  const auto file = [&](CLI::App* part, const char* about) {
    part->add_option("FILE", given.store_word, about)->required()->option_text(" ");
  };
  filter(add("list", "List what was measured", "Example:\n  collage store list --backend onednn"))
      ->add_option("TEXT", given.store_word, "Part of a label, a kernel or a pattern, or how an id begins")
      ->option_text(" ");
  add("show", "Print all that is known of some entries", "Example:\n  collage store show 322fb33d")
      ->add_option("TEXT", given.store_word, "How an id begins, or part of a label, a kernel or a pattern")
      ->required()
      ->option_text(" ");
  CLI::App* prune =
      filter(add("prune", "Remove entries that meet every condition given; asks nothing",
                 "Examples:\n  collage store prune --older-than 90\n  collage store prune --backend onednn "
                 "--refused"));
  prune->add_option("--older-than", given.older_than_days, "Measured more than so many days ago")
      ->option_text("DAYS")
      ->check(whole_number(0, 36500));
  prune->add_flag("--other-machines", given.other_machines, "Measured on another processor than this machine's");
  prune->add_flag("--damaged", given.damaged, "Also every entry that cannot be trusted, see collage store check");
  file(add("export", "Write everything to a file of JSON", "Example:\n  collage store export costs.json"),
       "The file to write");
  file(add("import", "Add what an exported file has; the newer of two stays",
           "Example:\n  collage store import costs.json"),
       "The file to read");
  file(add("merge", "Add what another store has; the newer of two stays",
           "Example:\n  collage store merge other/costs.db"),
       "The other store");
  add("check", "Read all of the store and say whether it is sound", "Exit status 1 says that it is not.");
  for (CLI::App* part : store.get_subcommands({})) {
    part->add_flag("--json", given.json, "Print JSON");
    part->add_flag("--quiet", given.quiet, "No progress and no notes on standard error");
  }
  return names;
}

[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& help) {
  throw collage::error(collage::error_kind::invalid_argument, what, where, "see " + help + " --help");
}

/// Throws for the first word of the command line that the parser did not recognise, if there is one.
void refuse_extras(const CLI::App& app, const std::string& where, const std::string& help) {
  for (const std::string& word : app.remaining(true))
    refuse((word.rfind('-', 0) == 0 ? "there is no option " : "there is no place for the argument ") + word, where,
           help);
}

}  // namespace

command_line parse(int argc, char** argv) {
  command_line line;
  options& given = line.given;
  CLI::App app("Finds, by measurement, which library runs which part of a neural network, and runs it that way.",
               "collage");
  app.set_help_flag("-h,--help", "Print this page");
  app.set_version_flag("--version",
                       "collage " + std::to_string(COLLAGE_VERSION_MAJOR) + "." +
                           std::to_string(COLLAGE_VERSION_MINOR) + "." + std::to_string(COLLAGE_VERSION_PATCH),
                       "Print the version");
  app.get_formatter()->column_width(24);
  app.get_formatter()->label("OPTIONS", "OPTION");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Positionals", "Arguments");
  app.footer(program_footer);
  app.require_subcommand(1);

  std::vector<command> commands;
  commands.reserve(11);  // CLI11 keeps references into the elements
  const auto add = [&](const char* name, int (*function)(const options&), const char* about,
                       const char* footer) -> command& {
    return commands.emplace_back(app, given, name, function, about, footer);
  };
  add("backends", show_backends, "List the backends: version, what they run, or why they are not there",
      "With --json, every pattern is described in words.")
      .output()
      ->add_flag("--coverage", given.coverage, "Print which operators each backend declares instead");
  commands.back()->add_flag("--all", given.all, "Also those that this program was built without, and how to get them");
  add("zoo", show_zoo, "List the built-in networks", "Example:\n  collage zoo").output();
  add("inspect", inspect, "Print a network: its nodes, shapes and size",
      "Example:\n  collage inspect zoo:dcgan-paper --dot dcgan.dot && dot -Tsvg dcgan.dot > dcgan.svg")
      .network()
      ->add_option("--dot", given.dot_file, "Write the network for Graphviz instead")
      ->option_text("FILE");
  commands.back().output();
  add("tune", tune, "Measure and place a network, and write the plan to a file",
      "Example:\n  collage tune zoo:resnext50-paper --plan resnext.json --threads 2")
      .network()
      ->add_option("--plan", given.plan_file, "Where to write the plan")
      ->option_text("FILE (required)")
      ->required();
  commands.back().placing().output();
  command& run_command = add("run", run, "Run a network on given or random inputs",
                             "Example:\n  collage run zoo:mobilenet-v2 --plan mobilenet.json --input input=photo.npy "
                             "--output results")
                             .network()
                             .plan();
  run_command->add_option("--input", given.inputs, "What an input holds; once for each, random where not given")
      ->option_text("NAME=FILE.npy|random")
      ->allow_extra_args(false);
  run_command->add_option("--output", given.output_folder, "Write each output to FOLDER/NAME.npy")
      ->option_text("FOLDER");
  run_command->add_flag("--profile", given.profile, "Tell the time of each step");
  run_command.placing().output();
  add("bench", bench, "Run the plan and every single backend in turns, and compare",
      "A backend alone is the same search restricted to it; what it refuses goes to the next that takes it.\n\n"
      "Example:\n  collage bench zoo:resnext50-paper --plan resnext.json --seconds 30")
      .network()
      .plan()
      ->add_option("--seconds", given.seconds, "For about how long; 10 if not given")
      ->option_text("S")
      ->transform(seconds());
  commands.back().placing().output();
  add("explain", explain, "Say which backend runs what, how long it takes, and what else could",
      "Example:\n  collage explain zoo:resnext50-paper --plan resnext.json | less")
      .network()
      .plan()
      ->add_option("--dot", given.dot_file, "Also write the placed network for Graphviz")
      ->option_text("FILE");
  commands.back()->add_flag("--program", given.program,
                            "Print what the engine does step by step, memory included, instead");
  commands.back().placing().output();
  command& diff_command =
      add("diff", diff, "Compare two plans of one network: who runs what, and what it costs",
          "The network need not be there. Exit status 0 says that they were compared, also where they\n"
          "differ; with --json, `same` says whether the same kernels run everything.\n\n"
          "Example:\n  collage diff before.json after.json");
  diff_command->add_option("PLAN", given.plan_file, "A plan from collage tune")->required()->option_text(" ");
  diff_command->add_option("OTHER", given.other_plan_file, "Another one")->required()->option_text(" ");
  diff_command.output();
  add("verify", verify, "Check the plan and every backend against the reference in double precision",
      "Example:\n  collage verify zoo:bert-paper --plan bert.json")
      .network()
      .plan()
      .placing()
      .output();
  command& replay_command =
      add("replay", replay_placements, "Place networks on published or modelled costs, without measuring",
          "Example:\n  collage replay nasnet-a-paper --json");
  replay_command->add_option("NETWORK", given.networks, "Which networks; all if none is given")->option_text("...");
  replay_command->add_option("--costs", given.costs_file, "Costs to use instead of those that are built in")
      ->option_text("FILE");
  replay_command->add_option("--data", given.data_folder, "Where costs and placements lie, instead of those built in")
      ->option_text("FOLDER");
  replay_command.output();
  command& store_command = add("store", store, "Look after the store of measured costs",
                               "Examples:\n  collage store list --backend onednn\n  collage store check\n\n"
                               "`collage store COMMAND --help` tells a command's options.");
  const std::vector<std::string> store_commands = add_store_commands(*store_command.operator->(), given);

  // Checked before parsing: CLI11 would report only that a command is missing.
  std::string names;
  bool known = false;
  const std::string first = argc > 1 ? argv[1] : "";
  for (const command& c : commands) {
    names += (names.empty() ? "" : ", ") + c.name();
    known = known || c.name() == first;
  }
  if (argc < 2) refuse("no command is given, and there are " + names, "command line", "collage");
  if (!known && first.rfind('-', 0) != 0)
    refuse("there is no command " + first + ", but " + names, "command line", "collage");
  if (!known && first != "-h" && first != "--help" && first != "--version")
    refuse("there is no option " + first + " before the command", "command line", "collage");

  std::string where = known ? first : "command line";
  std::string help = known ? "collage " + first : "collage";
  if (first == "store") {
    const std::string second = argc > 2 ? argv[2] : "";
    const bool is_command = std::find(store_commands.begin(), store_commands.end(), second) != store_commands.end();
    std::string list;
    for (const std::string& name : store_commands) list += (list.empty() ? "" : ", ") + name;
    if (second.empty()) refuse("no command is given, and there are " + list, where, help);
    if (!is_command && second != "-h" && second != "--help")
      refuse((second.front() == '-' ? "there is no option " + second + " before the command"
                                    : "there is no command " + second + ", but " + list),
             where, help);
    if (is_command) {
      where += " " + second;
      help += " " + second;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // help and version
    std::ostringstream out, err;
    line.exit_code = app.exit(e, out, err);
    print(out.str());
    return line;
  } catch (const CLI::ExtrasError&) { refuse_extras(app, where, help); } catch (const CLI::ArgumentMismatch& e) {
    const std::string text = e.what();  // "--plan: 1 required TEXT missing"
    refuse(text.substr(0, text.find(':')) + " needs one value", where, help);
  } catch (const CLI::ParseError& e) {
    refuse_extras(app, where, help);  // first: if an option is misspelt, CLI11 reports that a required one is missing
    refuse(e.what(), where, help);
  }
  for (const command& c : commands)
    if (c.chosen()) line.command = c.run();
  return line;
}

}  // namespace program
