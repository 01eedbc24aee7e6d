// Plan files: what is written is read back, and everything that is wrong with a file is said in one sentence.
#include <collage/io/plan_file.hpp>
#include <collage/ops.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <system_error>
#include <utility>

namespace {

namespace c = collage;
namespace op = collage::ops;
namespace fs = std::filesystem;

/// A folder of the test's own, gone with it.
class plan_file : public testing::Test {
 protected:
  plan_file() : folder_(fs::temp_directory_path() / ("collage_plan_file_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~plan_file() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string path(const char* name = "network.plan.json") const { return (folder_ / name).string(); }

  fs::path folder_;
};

c::graph network(std::int64_t width = 8) {
  c::graph_builder g;
  const auto x = g.input("x", {c::dtype::f32, {1, 4, width, 8}});
  const auto w = g.constant("w", {c::dtype::f32, {4, 4, 1, 1}}, {-1, 1});
  auto y = g(op::relu, g(op::conv, x, w));
  y = g(op::reshape, y, {.dims = {1, -1}});
  g.output("out", g(op::tanh, y));
  return g.finish();
}

c::plan example(const c::graph& g) {
  c::plan p;
  p.network = "an example, with \"quotes\" and \n a line";
  p.fingerprint = g.fingerprint();
  p.threads = 3;
  p.precision = "fp32";
  p.processor = "some processor";
  p.backends = {{"one", "1.2.3", "details of one"}, {"two", "", ""}};
  p.chosen.name = "plan";
  p.chosen.cost_ms = 0.625;
  c::plan_group first{"one",
                      "conv_relu",
                      2,
                      "kernel a",
                      {0, 1},
                      0.5,
                      0.25,
                      0.75,
                      0.375,
                      {},
                      0.125,
                      "two conv, two relu",
                      "without it the network costs more",
                      {}};
  first.runners_up = {{"two", "conv_relu", "kernel b", 1.5}, {"two", "other", "c", 2}};
  c::plan_group view, last;
  view.backend = c::alias_backend;
  view.pattern = "reshape";
  view.kernel = "view";
  view.nodes = {2};
  last.backend = "two";
  last.pattern = "tanh";
  last.kernel = "kernel d";
  last.nodes = {3};
  last.cost_ms = 0.125;
  last.low_ms = 0.0625;
  last.high_ms = 0.25;
  p.chosen.groups = {first, view, last};
  c::placement single = p.chosen;
  single.name = "one";
  single.borrowed = {"tanh_3"};
  p.singles = {single};
  p.lower_bound_ms = 0.5;
  p.optimal = true;
  p.first_cost_ms = 0.75;
  p.runs = {{"plan", 1.5, 1.25, 2, 20, 1, 1, 1}, {"one", 2.5, 2.25, 3, 20, 1.5, 1.25, 2}};
  p.origin = "one";
  return p;
}

void expect_equal(const c::placement& a, const c::placement& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.cost_ms, b.cost_ms);
  EXPECT_EQ(a.borrowed, b.borrowed);
  ASSERT_EQ(a.groups.size(), b.groups.size());
  for (std::size_t i = 0; i < a.groups.size(); ++i) {
    const c::plan_group& x = a.groups[i];
    const c::plan_group& y = b.groups[i];
    EXPECT_EQ(x.backend, y.backend);
    EXPECT_EQ(x.pattern, y.pattern);
    EXPECT_EQ(x.choice, y.choice);
    EXPECT_EQ(x.kernel, y.kernel);
    EXPECT_EQ(x.nodes, y.nodes);
    EXPECT_EQ(x.cost_ms, y.cost_ms);
    EXPECT_EQ(x.low_ms, y.low_ms);
    EXPECT_EQ(x.high_ms, y.high_ms);
    EXPECT_EQ(x.alone_ms, y.alone_ms);
    EXPECT_EQ(x.regret_ms, y.regret_ms);
    EXPECT_EQ(x.instead, y.instead);
    EXPECT_EQ(x.why, y.why);
    ASSERT_EQ(x.runners_up.size(), y.runners_up.size());
    for (std::size_t r = 0; r < x.runners_up.size(); ++r) {
      EXPECT_EQ(x.runners_up[r].backend, y.runners_up[r].backend);
      EXPECT_EQ(x.runners_up[r].pattern, y.runners_up[r].pattern);
      EXPECT_EQ(x.runners_up[r].kernel, y.runners_up[r].kernel);
      EXPECT_EQ(x.runners_up[r].cost_ms, y.runners_up[r].cost_ms);
    }
  }
}

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// Loading must fail as the user's mistake, in one line that names the file and holds `words`.
void expect_refused(const std::string& path, const c::graph& g, const std::string& words) {
  try {
    c::load_plan(path, g);
    ADD_FAILURE() << "it was taken; expected: " << words;
  } catch (const c::error& e) {
    const std::string text = e.what();
    EXPECT_EQ(e.exit_code(), 2) << text;
    EXPECT_NE(text.find(path), std::string::npos) << text;
    EXPECT_NE(text.find(words), std::string::npos) << text << "\nexpected: " << words;
  }
}

TEST_F(plan_file, holds_everything) {
  const c::graph g = network();
  const c::plan before = example(g);
  c::save_plan(before, g, path());
  const c::plan after = c::load_plan(path(), g);
  EXPECT_EQ(before.network, after.network);
  EXPECT_EQ(before.fingerprint, after.fingerprint);
  EXPECT_EQ(before.threads, after.threads);
  EXPECT_EQ(before.precision, after.precision);
  EXPECT_EQ(before.processor, after.processor);
  ASSERT_EQ(before.backends.size(), after.backends.size());
  for (std::size_t i = 0; i < before.backends.size(); ++i) {
    EXPECT_EQ(before.backends[i].name, after.backends[i].name);
    EXPECT_EQ(before.backends[i].version, after.backends[i].version);
    EXPECT_EQ(before.backends[i].details, after.backends[i].details);
  }
  expect_equal(before.chosen, after.chosen);
  ASSERT_EQ(before.singles.size(), after.singles.size());
  expect_equal(before.singles[0], after.singles[0]);
  EXPECT_EQ(before.lower_bound_ms, after.lower_bound_ms);
  EXPECT_EQ(before.optimal, after.optimal);
  ASSERT_EQ(before.runs.size(), after.runs.size());
  for (std::size_t i = 0; i < before.runs.size(); ++i) {
    EXPECT_EQ(before.runs[i].name, after.runs[i].name);
    EXPECT_EQ(before.runs[i].median_ms, after.runs[i].median_ms);
    EXPECT_EQ(before.runs[i].low_ms, after.runs[i].low_ms);
    EXPECT_EQ(before.runs[i].high_ms, after.runs[i].high_ms);
    EXPECT_EQ(before.runs[i].runs, after.runs[i].runs);
    EXPECT_EQ(before.runs[i].ratio, after.runs[i].ratio);
    EXPECT_EQ(before.runs[i].ratio_low, after.runs[i].ratio_low);
    EXPECT_EQ(before.runs[i].ratio_high, after.runs[i].ratio_high);
  }
  EXPECT_EQ(before.origin, after.origin);
}

TEST_F(plan_file, reads_like_text) {
  const c::graph g = network();
  c::plan p = example(g);
  p.chosen.groups[0].cost_ms = 0.1234567890123;
  const std::string text = c::to_text(c::plan_to_json(p, g));
  EXPECT_NE(text.find("{\"nodes\": [[0, \"conv_0\"], [1, \"relu_1\"]], \"backend\": \"one\""), std::string::npos)
      << text;
  EXPECT_NE(text.find("\"cost_ms\": 0.123457,"), std::string::npos) << text;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    EXPECT_LE(end - at, 121U) << text.substr(at, end - at);
  }
  // Bytes that are not UTF-8, as a library's version may hold, neither throw nor make the file unreadable.
  p.processor = "\xff\xfe";
  c::save_plan(p, g, path());
  EXPECT_NO_THROW(c::load_plan(path(), g));
}

TEST_F(plan_file, refuses_files_that_are_no_plans) {
  const c::graph g = network();
  expect_refused(path("nowhere"), g, "No such file");
  expect_refused(folder_.string(), g, "is a folder");
  const auto refused = [&](const std::string& text, const std::string& words) {
    write(path(), text);
    expect_refused(path(), g, words);
  };
  refused("", "is not JSON");
  refused("{", "is not JSON");
  refused("{\"format\": 1e999}", "is not JSON: a number is out of range");
  refused(std::string(100000, '['), "is not JSON");
  refused("[]", "is not a plan");
  refused("null", "is not a plan");
  refused("{}", "is not a plan");
  refused("{\"format\": 3}", "is not a plan");
  refused("{\"format\": \"collage plan\"}", "version is missing");
  refused("{\"format\": \"collage plan\", \"version\": 1}", "has version 1 of the plan format, which is not version 2");
  refused("{\"format\": \"collage plan\", \"version\": \"1\"}", "version is not a whole number");
}

TEST_F(plan_file, tells_the_network_it_is_for) {
  const c::graph g = network(), other = network(16);
  c::plan p = example(g);
  p.network = "zoo:something";
  c::save_plan(p, g, path());
  expect_refused(path(), other, "is a plan for another network, zoo:something");
}

TEST_F(plan_file, names_the_place_of_every_mistake) {
  const c::graph g = network();
  const c::json good = c::plan_to_json(example(g), g);
  const auto refused = [&](const std::function<void(c::json&)>& spoil, const std::string& words) {
    c::json bad = good;
    spoil(bad);
    write(path(), c::to_text(bad));
    expect_refused(path(), g, words);
  };
  // Every member of the file, of a group and of the other records: missing, and of a type that is never right.
  const auto every_member = [&](const std::string& place, const std::function<c::json&(c::json&)>& at) {
    c::json copy = good;
    for (const auto& item : at(copy).items()) {
      const std::string key = item.key();
      if (place.empty() && key == "format") continue;
      const std::string full = (place.empty() ? "" : place + ".") + key;
      refused([&](c::json& j) { at(j).erase(key); }, full + " is missing");
      if (key != "regret_ms")  // null where it is not known
        refused([&](c::json& j) { at(j)[key] = nullptr; }, full + " is n");
      const bool is_object = item.value().is_object();
      refused([&](c::json& j) { at(j)[key] = is_object ? c::json::array() : c::json::object(); }, full + " is n");
    }
  };
  every_member("", [](c::json& j) -> c::json& { return j; });
  every_member("backends[1]", [](c::json& j) -> c::json& { return j["backends"][1]; });
  every_member("runs[0]", [](c::json& j) -> c::json& { return j["runs"][0]; });
  every_member("chosen", [](c::json& j) -> c::json& { return j["chosen"]; });
  every_member("singles[0]", [](c::json& j) -> c::json& { return j["singles"][0]; });
  every_member("chosen.groups[0]", [](c::json& j) -> c::json& { return j["chosen"]["groups"][0]; });
  every_member("chosen.groups[0].runners_up[1]",
               [](c::json& j) -> c::json& { return j["chosen"]["groups"][0]["runners_up"][1]; });

  refused([](c::json& j) { j["chosen"]["groups"][0]["regret_ms"] = -1; }, "chosen.groups[0].regret_ms is negative");
  refused([](c::json& j) { j["threads"] = 0; }, "threads is not a whole number from 1 to 1024");
  refused([](c::json& j) { j["threads"] = 1.5; }, "threads is not a whole number");
  refused([](c::json& j) { j["threads"] = 1000000; }, "threads is not a whole number");
  refused([](c::json& j) { j["chosen"]["groups"][0]["choice"] = -1; }, "chosen.groups[0].choice is not a whole number");
  refused([](c::json& j) { j["chosen"]["groups"][0] = 1; }, "chosen.groups[0] is not an object");
  refused([](c::json& j) { j["chosen"]["borrowed"] = {1}; }, "chosen.borrowed[0] is not a string");
}

TEST_F(plan_file, checks_nodes_against_the_network) {
  const c::graph g = network();
  const c::json good = c::plan_to_json(example(g), g);
  const auto refused = [&](const std::function<void(c::json&)>& spoil, const std::string& words) {
    c::json bad = good;
    spoil(bad["chosen"]["groups"]);
    write(path(), c::to_text(bad));
    expect_refused(path(), g, words);
  };
  refused([](c::json& j) { j[0]["nodes"][1][0] = 4; },
          "chosen.groups[0].nodes[1][0] is not a whole number from 0 to 3");
  refused([](c::json& j) { j[0]["nodes"][1][0] = -1; },
          "chosen.groups[0].nodes[1][0] is not a whole number from 0 to 3");
  refused([](c::json& j) { j[0]["nodes"][1] = 1; }, "chosen.groups[0].nodes[1] is not a list");
  refused([](c::json& j) { j[0]["nodes"][1] = c::json::array({1}); }, "chosen.groups[0].nodes[1][1] is missing");
  refused([](c::json& j) { j[0]["nodes"][1][1] = "sigmoid_1"; },
          "chosen.groups[0].nodes[1][1] is sigmoid_1, but the network's node 1 is relu_1");
  refused([](c::json& j) { j[0]["nodes"] = c::json::array(); }, "chosen.groups[0].nodes is empty");
  refused([](c::json& j) { j[2]["nodes"] = j[0]["nodes"]; },
          "chosen.groups do not fit the network (plan: runs node conv_0 twice)");
  refused([](c::json& j) { j.erase(2); }, "chosen.groups do not fit the network (plan: does not run node tanh_3)");
  refused([](c::json& j) { std::swap(j[0], j[2]); }, "before it is computed");
  refused([](c::json& j) { j[2]["backend"] = c::alias_backend; },
          "takes node tanh_3 for a view, which only a reshape is");
}

TEST_F(plan_file, is_written_whole_or_not_at_all) {
  const c::graph g = network();
  const c::plan p = example(g);
  const auto refused = [&](const std::string& to, const std::string& words) {
    for (const auto& attempt : {std::function<void()>([&] { c::check_writable(to); }),
                                std::function<void()>([&] { c::save_plan(p, g, to); })}) {
      try {
        attempt();
        ADD_FAILURE() << to << " was written";
      } catch (const c::error& e) {
        EXPECT_EQ(e.exit_code(), 2);
        EXPECT_NE(std::string(e.what()).find("cannot be written: " + words), std::string::npos) << e.what();
      }
    }
  };
  refused(path("no/such/folder"), "No such file or directory");
  refused(folder_.string(), "it is a folder");
  refused("", "it has no file name");
  write(path("file"), "");
  refused(path("file/below"), "Not a directory");
  fs::remove(path("file"));

  // The check leaves nothing; a file that is replaced keeps its permissions, and a link to it stays a link.
  c::check_writable(path());
  EXPECT_TRUE(fs::is_empty(folder_));
  write(path("real"), "old");
  fs::permissions(path("real"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(path("real"), path());
  c::save_plan(p, g, path());
  EXPECT_TRUE(fs::is_symlink(path()));
  EXPECT_EQ(fs::status(path("real")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_NO_THROW(c::load_plan(path("real"), g));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);

  // Devices are written to, not replaced; a full one is an error.
  c::check_writable("/dev/null");
  c::save_plan(p, g, "/dev/null");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  if (fs::exists("/dev/full")) { EXPECT_THROW(c::save_plan(p, g, "/dev/full"), c::error); }
}

// Whatever is in the file, it is taken or refused with an error of ours.
TEST_F(plan_file, survives_damage) {
  const c::graph g = network();
  const std::string good = c::to_text(c::plan_to_json(example(g), g));
  const unsigned seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937 random(seed);
  const std::string pieces[] = {"null",    "-1",   "1e308", "{}", "[]", "\"\"", "18446744073709551616",
                                "\\u0000", "\xff", ",",     "\"", "}",  "true"};
  std::size_t taken = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      const std::size_t length = random() % 12;
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, length); break;
        case 2: text.replace(at, std::min(length, text.size() - at), pieces[random() % std::size(pieces)]); break;
        default: text.insert(at, text.substr(random() % text.size(), length)); break;
      }
    }
    write(path(), text);
    try {
      c::load_plan(path(), g);
      ++taken;
    } catch (const c::error& e) { EXPECT_EQ(e.exit_code(), 2) << "seed " << seed << ": " << e.what(); }
  }
  EXPECT_LT(taken, 3000U) << "seed " << seed;
}

}  // namespace
