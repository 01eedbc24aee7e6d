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
  collage explain zoo:resnext50-paper --plan resnext.json    which kernel runs what, and why
  collage bench zoo:resnext50-paper --plan resnext.json      the plan and each backend alone
  collage diff resnext.json other.json                       two plans of one network
  collage verify zoo:bert-paper --backends onednn,eigen      place now, then check
  collage inspect model.onnx --shape image=1x3x224x224       nodes and shapes of a file

Results are on standard output, progress and errors on standard error. Exit status: 0 done,
1 failure, 2 wrong usage. `collage COMMAND --help` lists the options of a command.)";

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
    return "'" + text + "' is not a number of seconds from 0 to 3600; write 90, 90s or 1.5min";
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
    app_->add_option("NET", given_.network, "The network: zoo:NAME (see collage zoo), or an ONNX file")
        ->required()
        ->option_text(" ");
    app_->add_option("--shape", given_.shapes, "The shape of an input that the file leaves open; repeatable")
        ->option_text("NAME=1x3x224x224")
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
  command& placing() {
    app_->add_option_function<std::string>(
            "--backends", [this](const std::string& text) { given_.backends = split(text); },
            "Use only these backends, as in onednn,eigen (see collage backends)")
        ->option_text("A,B");
    app_->add_option("--threads", given_.threads, "Number of threads; default: all processors that the process may use")
        ->option_text("N")
        ->check(whole_number(1, 1024));
    app_->add_option_function<std::string>(
            "--place", [this](const std::string& how) { given_.measure = how == "measure"; },
            "How to place without a plan: by measuring, or by the order of the backends")
        ->option_text("measure|priority")
        ->check(CLI::IsMember({"measure", "priority"}).description(""));
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
    app_->add_option("--regions", given_.regions_s,
                     "Time limit for the search over regions; default: 30, 0: no such search")
        ->option_text("S")
        ->transform(seconds());
    app_->add_flag("--complete", given_.complete,
                   "Measure every kernel, not only those that the best placement may contain");
    app_->add_flag("--keep-non-finite", given_.keep_non_finite,
                   "Refuse kernels that do not treat NaN and infinity as the reference does");
    app_->add_flag("--recheck", given_.recheck, "Run end-to-end comparisons again even if the store has their results");
    app_->add_option("--seed", given_.seed, "Seed of the random inputs; default: 1")
        ->option_text("N")
        ->check(whole_number(std::uint64_t{0}, ~std::uint64_t{0}));
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

[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& help) {
  throw collage::error(collage::error_kind::invalid_argument, what, where, "see " + help + " --help");
}

/// Throws for the first word of the command line that the parser did not recognise, if there is one.
void refuse_extras(const CLI::App& app, const std::string& where, const std::string& help) {
  for (const std::string& word : app.remaining(true))
    refuse((word.rfind('-', 0) == 0 ? "there is no option " : "unexpected argument ") + word, where, help);
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
  add("backends", show_backends, "List the backends: version, patterns, or why they are unavailable",
      "With --json, every pattern is described in words.")
      .output()
      ->add_flag("--coverage", given.coverage, "Instead, print which operators each backend declares");
  commands.back()->add_flag("--all", given.all,
                            "Include backends that this program was built without, and how to add them");
  add("zoo", show_zoo, "List the built-in networks", "Example:\n  collage zoo").output();
  add("inspect", inspect, "Print a network: its nodes, shapes and size",
      "Example:\n  collage inspect zoo:dcgan-paper --dot dcgan.dot && dot -Tsvg dcgan.dot > dcgan.svg")
      .network()
      ->add_option("--dot", given.dot_file, "Instead, write the network as a Graphviz file")
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
  run_command->add_option("--input", given.inputs, "Contents of an input; repeatable, default: random")
      ->option_text("NAME=FILE.npy|random")
      ->allow_extra_args(false);
  run_command->add_option("--output", given.output_folder, "Write each output to FOLDER/NAME.npy")
      ->option_text("FOLDER");
  run_command->add_flag("--profile", given.profile, "Print the time of each step");
  run_command.placing().output();
  add("bench", bench, "Run the plan and each backend alone in turns, and compare the times",
      "A backend alone: the same search with its kernels only. Nodes that it refuses go to the next\n"
      "backend that runs them.\n\n"
      "Example:\n  collage bench zoo:resnext50-paper --plan resnext.json --seconds 30")
      .network()
      .plan()
      ->add_option("--seconds", given.seconds, "Seconds to run, approximately; default: 10")
      ->option_text("S")
      ->transform(seconds());
  commands.back().placing().output();
  add("explain", explain, "Print which kernel runs what, its time, and the alternatives",
      "Example:\n  collage explain zoo:resnext50-paper --plan resnext.json | less")
      .network()
      .plan()
      ->add_option("--dot", given.dot_file, "Also write the placed network as a Graphviz file")
      ->option_text("FILE");
  commands.back()->add_flag("--program", given.program, "Instead, print the engine's instructions and their memory");
  commands.back().placing().output();
  command& diff_command =
      add("diff", diff, "Compare two plans of one network: kernels and costs",
          "The network's file is not needed. Exit status 0: the plans were compared, even if they differ.\n"
          "With --json, `same` is true if the same kernels run everything.\n\n"
          "Example:\n  collage diff before.json after.json");
  diff_command->add_option("PLAN", given.plan_file, "A plan from collage tune")->required()->option_text(" ");
  diff_command->add_option("OTHER", given.other_plan_file, "Another plan of the same network")
      ->required()
      ->option_text(" ");
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
  replay_command->add_option("NETWORK", given.networks, "Networks to replay; default: all")->option_text("...");
  replay_command->add_option("--costs", given.costs_file, "File of costs to use instead of the built-in ones")
      ->option_text("FILE");
  replay_command
      ->add_option("--data", given.data_folder, "Folder of costs and placements to use instead of the built-in ones")
      ->option_text("FOLDER");
  replay_command.output();
  command& store_command = add("store", store, "List, check and clean the store of measured costs",
                               "Examples:\n  collage store list --backend onednn\n  collage store check\n\n"
                               "`collage store COMMAND --help` lists the options of a command.");
  const std::vector<std::string> store_commands = add_store_commands(*store_command.operator->(), given);

  // Checked before parsing: CLI11 would report only that a command is missing.
  std::string names;
  bool known = false;
  const std::string first = argc > 1 ? argv[1] : "";
  for (const command& c : commands) {
    names += (names.empty() ? "" : ", ") + c.name();
    known = known || c.name() == first;
  }
  if (argc < 2) refuse("no command is given; the commands are " + names, "command line", "collage");
  if (!known && first.rfind('-', 0) != 0)
    refuse("there is no command " + first + "; the commands are " + names, "command line", "collage");
  if (!known && first != "-h" && first != "--help" && first != "--version")
    refuse("there is no option " + first + " before the command", "command line", "collage");

  std::string where = known ? first : "command line";
  std::string help = known ? "collage " + first : "collage";
  if (first == "store") {
    const std::string second = argc > 2 ? argv[2] : "";
    const bool is_command = std::find(store_commands.begin(), store_commands.end(), second) != store_commands.end();
    std::string list;
    for (const std::string& name : store_commands) list += (list.empty() ? "" : ", ") + name;
    if (second.empty()) refuse("no command is given; the commands are " + list, where, help);
    if (!is_command && second != "-h" && second != "--help")
      refuse((second.front() == '-' ? "there is no option " + second + " before the command"
                                    : "there is no command " + second + "; the commands are " + list),
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
