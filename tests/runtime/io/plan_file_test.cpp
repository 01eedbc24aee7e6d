// Plan files: what is written is read back, everything that is wrong with a file is said in one sentence, and a plan runs only
// where it fits.
#include <collage/backend_set.hpp>
#include <collage/backends/portable.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/op/control.hpp>
#include <collage/ops.hpp>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/plan_fit.hpp>
#include <collage/run/processor.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/files.hpp"
#include "support/random_graph.hpp"
#include "support/random_numbers.hpp"

namespace io_plan_file_test {

namespace c = collage;
namespace op = collage::ops;
namespace fs = std::filesystem;
using collage_test::write_file;

class plan_file : public testing::Test {
 protected:
  std::string path(const std::string& name = "network.plan.json") const { return files_.path(name); }
  const fs::path& folder() const { return files_.folder(); }

 private:
  const collage_test::temporary_folder files_;
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
  p.algorithms = c::algorithms::all;
  p.threads = 3;
  p.precision = "fp32";
  p.processor = "some processor";
  p.waiting = "spin 300";
  p.backends = {{"one", "1.2.3", "details of one"}, {"two", "", ""}};
  p.chosen.name = "plan";
  p.chosen.cost_ms = 0.625;
  c::plan_group first{c::kernel_step{"one", "conv_relu", "2"},
                      "kernel a",
                      "plain",
                      {0, 1},
                      0.5,
                      0.25,
                      0.75,
                      0.375,
                      0.0625,
                      {},
                      0.125,
                      "two conv, two relu",
                      "the best placement without it costs more; it uses two relu",
                      {},
                      0};
  first.runners_up = {{"two", "conv_relu", "kernel b", 1.5}, {"two", "other", "c", 2}};
  c::plan_group view, last;
  view.step = c::view_step{"plain"};
  view.kernel = "view";
  view.nodes = {2};
  last.step = c::kernel_step{"two", "tanh", "fast 2x8"};
  last.kernel = "kernel d";
  last.nodes = {3};
  last.cost_ms = 0.125;
  last.low_ms = 0.0625;
  last.high_ms = 0.25;
  last.algorithm = "F(4,3)";
  last.error_bound = 0.00125;
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
    EXPECT_TRUE(c::same_step(x.step, y.step));
    EXPECT_EQ(x.kernel, y.kernel);
    EXPECT_EQ(x.layout, y.layout);
    EXPECT_EQ(x.nodes, y.nodes);
    EXPECT_EQ(x.cost_ms, y.cost_ms);
    EXPECT_EQ(x.low_ms, y.low_ms);
    EXPECT_EQ(x.high_ms, y.high_ms);
    EXPECT_EQ(x.alone_ms, y.alone_ms);
    EXPECT_EQ(x.switch_ms, y.switch_ms);
    EXPECT_EQ(x.switch_ms, y.switch_ms);
    EXPECT_EQ(x.regret_ms, y.regret_ms);
    EXPECT_EQ(x.algorithm, y.algorithm);
    EXPECT_EQ(x.error_bound, y.error_bound);
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
  EXPECT_EQ(before.waiting, after.waiting);
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
  EXPECT_NE(text.find("{\"nodes\": [[0, \"conv_0\"], [1, \"relu_1\"]], \"step\": \"kernel\""), std::string::npos)
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
  expect_refused(folder().string(), g, "is a folder");
  const auto refused = [&](const std::string& text, const std::string& words) {
    write_file(path(), text);
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
  refused("{\"format\": \"collage plan\", \"version\": 2}", "has version 2 of the plan format, which is not version 7");
  refused("{\"format\": \"collage plan\", \"version\": 7, \"version\": 7}", "has an object with two members version");
  refused("{\"format\": \"collage plan\", \"version\": 7, \"a\": [{\"b\": 1}, {\"b\": 1}]}", "network is missing");
  refused("{\"format\": \"collage plan\", \"version\": \"1\"}", "version is not a whole number");
}

TEST_F(plan_file, tells_the_network_it_is_for) {
  const c::graph g = network();
  c::plan p = example(g);
  p.network = "zoo:something";
  c::save_plan(p, g, path());
  c::graph_builder other;
  other.output("out", other(op::tanh, other.input("x", {c::dtype::f32, {1, 4, 8, 8}})));
  expect_refused(path(), other.finish(), "is a plan for another network, zoo:something");
  expect_refused(
      path(), network(16),
      "is a plan for other shapes: input x is float32[1x4x8x8] in the plan, but float32[1x4x16x8] in the network; "
      "load the network with the plan's shapes, or make a new plan for the network's shapes");
  c::graph_builder named;
  named.output("out", named(op::tanh, named.input("y", {c::dtype::f32, {1, 4, 16, 8}})));
  expect_refused(path(), named.finish(), "is a plan for another network");
}

TEST_F(plan_file, names_the_place_of_every_mistake) {
  const c::graph g = network();
  const c::json good = c::plan_to_json(example(g), g);
  const auto refused = [&](const std::function<void(c::json&)>& spoil, const std::string& words) {
    c::json bad = good;
    spoil(bad);
    write_file(path(), c::to_text(bad));
    expect_refused(path(), g, words);
  };
  // Every member of the file, of a group and of the other records: missing, and of a type that is never right.
  const auto every_member = [&](const std::string& place, const std::function<c::json&(c::json&)>& at) {
    c::json copy = good;
    for (const auto& item : at(copy).items()) {
      const std::string key = item.key();
      if (place.empty() && key == "format") continue;
      const std::string full = (place.empty() ? "" : place + ".") + key;
      if (key != "algorithms")  // older plans have none
        refused([&](c::json& j) { at(j).erase(key); }, full + " is missing");
      if (key != "regret_ms")  // null where it is not known
        refused([&](c::json& j) { at(j)[key] = nullptr; }, full + " is n");
      const bool is_object = item.value().is_object();
      refused([&](c::json& j) { at(j)[key] = is_object ? c::json::array() : c::json::object(); }, full + " is n");
    }
  };
  every_member("", [](c::json& j) -> c::json& { return j; });
  every_member("backends[1]", [](c::json& j) -> c::json& { return j["backends"][1]; });
  every_member("inputs[0]", [](c::json& j) -> c::json& { return j["inputs"][0]; });
  every_member("runs[0]", [](c::json& j) -> c::json& { return j["runs"][0]; });
  every_member("chosen", [](c::json& j) -> c::json& { return j["chosen"]; });
  every_member("singles[0]", [](c::json& j) -> c::json& { return j["singles"][0]; });
  every_member("chosen.groups[0]", [](c::json& j) -> c::json& { return j["chosen"]["groups"][0]; });
  every_member("chosen.groups[0].runners_up[1]",
               [](c::json& j) -> c::json& { return j["chosen"]["groups"][0]["runners_up"][1]; });

  refused([](c::json& j) { j["chosen"]["groups"][0]["regret_ms"] = -1; }, "chosen.groups[0].regret_ms is negative");
  const auto group_is = [&](const char* member, const c::json& value, const char* words) {
    refused([&](c::json& j) { j["chosen"]["groups"][0][member] = value; },
            "chosen.groups[0]." + std::string(member) + ' ' + words);
  };
  group_is("layout", "nChw16c", "is nChw16c; known are plain, channels-last, blocked-8, blocked-16");
  group_is("layout", "plain to spiral", "is spiral; known are plain, channels-last, blocked-8, blocked-16");
  for (const char* time : {"cost_ms", "low_ms", "high_ms", "alone_ms", "switch_ms"})
    group_is(time, -0.5, "is negative");
  refused([](c::json& j) { j["runs"][1]["ratio"] = -1; }, "runs[1].ratio is negative");
  refused([](c::json& j) { j["first_cost_ms"] = -1; }, "first_cost_ms is negative");
  refused([](c::json& j) { j["inputs"][0]["shape"][1] = -4; }, "inputs[0].shape[1] is not a whole number");
  refused(
      [](c::json& j) { j["inputs"][0]["shape"][1] = 5; },
      "inputs do not fit the network: input x is float32[1x5x8x8] in the plan, but float32[1x4x8x8] in the network");
  refused([](c::json& j) { j["algorithms"] = "all"; }, "algorithms is all; known are direct, accurate, any");
  refused([](c::json& j) { j["chosen"]["groups"][2].erase("error_bound"); }, "chosen.groups[2].error_bound is missing");
  refused([](c::json& j) { j["chosen"]["groups"][2]["error_bound"] = -1; }, "chosen.groups[2].error_bound is negative");
  refused([](c::json& j) { j["threads"] = 0; }, "threads is not a whole number from 1 to 1024");
  refused([](c::json& j) { j["threads"] = 1.5; }, "threads is not a whole number");
  refused([](c::json& j) { j["threads"] = 1000000; }, "threads is not a whole number");
  refused([](c::json& j) { j["chosen"]["groups"][0]["configuration"] = -1; },
          "chosen.groups[0].configuration is not a string");
  refused([](c::json& j) { j["chosen"]["groups"][0]["step"] = "spell"; },
          "chosen.groups[0].step is spell; known are kernel, group, view, control");
  refused([](c::json& j) { j["chosen"]["groups"][0] = 1; }, "chosen.groups[0] is not an object");
  refused([](c::json& j) { j["chosen"]["borrowed"] = {1}; }, "chosen.borrowed[0] is not a string");
}

TEST_F(plan_file, checks_nodes_against_the_network) {
  const c::graph g = network();
  const c::json good = c::plan_to_json(example(g), g);
  const auto refused = [&](const std::function<void(c::json&)>& spoil, const std::string& words) {
    c::json bad = good;
    spoil(bad["chosen"]["groups"]);
    write_file(path(), c::to_text(bad));
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
  refused([](c::json& j) { j[2].update({{"step", "view"}, {"form", "plain"}}); },
          "treats node tanh_3 as a view, which it is not");
  refused([](c::json& j) { j[1]["form"] = "spiral"; },
          "chosen.groups[1].form is spiral; known are plain, channels-last, blocked-8, blocked-16");
  refused([](c::json& j) { j[1]["form"] = "blocked-8"; }, "as a view in blocked-8, which it is not");
  refused([](c::json& j) { j[2].update({{"step", "control"}, {"bodies", c::json::array()}}); },
          "treats node tanh_3 as control flow, which it is not");
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
  refused(folder().string(), "it is a folder");
  refused("", "it has no file name");
  write_file(path("file"), "");
  refused(path("file/below"), "Not a directory");
  fs::remove(path("file"));

  // The check leaves nothing; a file that is replaced keeps its permissions, and a link to it stays a link.
  c::check_writable(path());
  EXPECT_TRUE(fs::is_empty(folder()));
  write_file(path("real"), "old");
  fs::permissions(path("real"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(path("real"), path());
  c::save_plan(p, g, path());
  EXPECT_TRUE(fs::is_symlink(path()));
  EXPECT_EQ(fs::status(path("real")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_NO_THROW(c::load_plan(path("real"), g));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 2);

  // Devices are written to, not replaced; a full one is an error.
  c::check_writable("/dev/null");
  c::save_plan(p, g, "/dev/null");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  if (fs::exists("/dev/full")) { EXPECT_THROW(c::save_plan(p, g, "/dev/full"), c::error); }
}

TEST_F(plan_file, that_is_read_is_not_replaced) {
  write_file(path("read"), "old");
  fs::create_symlink(path("read"), path("link"));
  fs::create_hard_link(path("read"), path("second"));
  write_file(path("other"), "old");
  for (const char* name : {"read", "./read", "link", "second"}) {
    try {
      c::check_replaces_no_input(path(name), path("read"), "the network");
      ADD_FAILURE() << name;
    } catch (const c::error& e) {
      EXPECT_EQ(e.exit_code(), 2);
      EXPECT_EQ(e.what(),
                path(name) + ": this is the file of the network, which would be replaced; name another file to write");
    }
  }
  for (const char* name : {"other", "new", ""}) c::check_replaces_no_input(path(name), path("read"), "the network");
  c::check_replaces_no_input(path("new"), path("new"), "the network");  // there is nothing to replace yet
  c::check_replaces_no_input(path("read"), "", "the network");
  c::check_replaces_no_input("/dev/null", "/dev/null", "the network");
}

TEST_F(plan_file, many_write_one_path_at_the_same_time) {
  const std::string texts[] = {std::string(100'000, 'a'), std::string(70'000, 'b')};
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) try {
          c::check_writable(path());
          c::write_file(path(), texts[t % 2]);
          const std::string read = c::read_file(path());
          if (read != texts[0] && read != texts[1]) ++failures;
        } catch (const c::error&) { ++failures; }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1);
}

TEST_F(plan_file, left_overs_of_killed_processes_go) {
  const auto make = [&](const std::string& name, std::chrono::hours age) {
    write_file(path(name), "cut sho");
    fs::last_write_time(path(name), fs::file_time_type::clock::now() - age);
  };
  using std::chrono::hours;
  const std::vector<std::string> stays = {
      "p.collage-0123456789ac.tmp",  // a process may still be writing it
      "p.collage-0123456789aX.tmp",  // names of others
      "p.collage-0123456789a.tmp",  "q.collage-0123456789ab.tmp", "p.1.tmp",
  };
  make(stays[0], hours(0));
  for (std::size_t i = 1; i < stays.size(); ++i) make(stays[i], hours(2));
  make("p.collage-0123456789ab.tmp", hours(2));
  fs::create_directory(path("p.collage-0123456789ad.tmp"));
  c::write_file(path("p"), "new");
  EXPECT_FALSE(fs::exists(path("p.collage-0123456789ab.tmp")));
  EXPECT_TRUE(fs::exists(path("p.collage-0123456789ad.tmp")));
  for (const std::string& name : stays) EXPECT_TRUE(fs::exists(path(name))) << name;

  // A name as long as a folder allows.
  const std::string longest(255, 'n');
  c::write_file(path(longest), "new");
  EXPECT_EQ(c::read_file(path(longest)), "new");
}

TEST_F(plan_file, has_the_permissions_of_other_new_files) {
  const mode_t before = ::umask(027);
  c::write_file(path("p"), "new");
  ::umask(before);
  EXPECT_EQ(fs::status(path("p")).permissions(), fs::perms{0640});
}

TEST_F(plan_file, a_signal_handler_can_remove_what_is_not_finished) {
  {
    c::detail::unfinished_file file(path("p"));
    file.write("some");
    EXPECT_FALSE(fs::is_empty(folder()));
    c::remove_unfinished_files();
    EXPECT_TRUE(fs::is_empty(folder()));
    EXPECT_THROW(file.finish(), c::error);
  }
  c::remove_unfinished_files();
  c::write_file(path("p"), "whole");
  c::remove_unfinished_files();
  EXPECT_EQ(c::read_file(path("p")), "whole");
}

/// A backend without patterns, as it is on the machine where the plan is to run.
c::backend_entry backend_here(const char* name, c::probe_result (*probe)()) {
  c::backend_entry b;
  b.name = name;
  b.probe = probe;
  return b;
}
c::probe_result one_here() { return {true, "1.2.3", "details of one", ""}; }
c::probe_result two_here() { return {true, "", "", ""}; }
c::probe_result newer_one() { return {true, "1.3.0", "details of one", ""}; }
c::probe_result rebuilt_one() { return {true, "1.2.3", "other details", ""}; }
c::probe_result nameless_one() { return {true, "", "", ""}; }
c::probe_result newer_two() { return {true, "2", "", ""}; }
c::probe_result lost() { return {false, "", "", "libtwo.so is not there; install two"}; }

TEST(plan_fit, only_where_it_was_made) {
  using kind = c::plan_misfit::kind;
  const c::graph g = network();
  c::plan p = example(g);
  c::plan_fit_options here{.threads = 3, .precision = "fp32", .processor = "some processor"};
  std::vector<c::backend_entry> table = {backend_here("two", two_here), backend_here("three", lost),
                                         backend_here("one", one_here)};
  const auto fits = [&] {
    EXPECT_NO_THROW(c::check_plan_fits(p, g, table, here));
    return !c::misfit_of(p, g, table, here);
  };
  const auto refused = [&](kind of, const std::string& words, const c::graph& to) {
    const auto wrong = c::misfit_of(p, to, table, here);
    ASSERT_TRUE(wrong) << words;
    EXPECT_EQ(wrong->of, of) << words;
    try {
      c::check_plan_fits(p, to, table, here, "network.json");
      ADD_FAILURE() << "it was taken; expected: " << words;
    } catch (const c::error& e) {
      EXPECT_EQ(e.exit_code(), 2);
      EXPECT_EQ(e.what(), "network.json: " + words);
    }
  };
  EXPECT_TRUE(fits());

  refused(
      kind::network,
      "is a plan for another network, an example, with \"quotes\" and \n a line; load that network, or place this one",
      network(16));
  here.precision = c::fp32_non_finite;
  refused(kind::precision, "is a plan in fp32, not in fp32 with NaN and infinity kept; place the network again", g);
  here.precision = "fp32";
  here.threads = 2;
  refused(kind::threads, "is a plan for 3 threads, not 2; run it with 3, or place the network again for 2", g);
  here.threads = 0;
  EXPECT_TRUE(fits());
  here.processor = "another processor";
  here.accept_version_change = true;
  refused(
      kind::processor,
      "was measured on some processor; this is another processor, for which its costs do not hold; place the network again "
      "here",
      g);
  here.processor = "some processor";
  here = {.processor = "some processor"};
  EXPECT_TRUE(c::misfit_of(p, g, table, {}));  // by default, the processor that this is

  const struct {
    c::probe_result (*probe)();
    const char* words;
  } changes[] = {
      {newer_one, "was made with one 1.2.3, but 1.3.0 is installed"},
      {nameless_one, "was made with one 1.2.3, but an unknown version is installed"},
      {rebuilt_one, "was made with one 1.2.3 (details of one), but the installed build is another (other details)"},
  };
  for (const auto& [probe, words] : changes) {
    table[2].probe = probe;
    here.accept_version_change = false;
    refused(kind::version, words + std::string("; place the network again, or accept the change of version"), g);
    here.accept_version_change = true;
    EXPECT_TRUE(fits());
  }
  table[0].probe = newer_two;  // all are told at once
  table[2].probe = newer_one;
  here.accept_version_change = false;
  refused(
      kind::version,
      "was made with one 1.2.3, but 1.3.0 is installed; with two of an unknown version, but 2 is installed; place the network again, or accept "
      "the change of version",
      g);
  here.accept_version_change = true;
  EXPECT_TRUE(fits());

  // Whoever accepts other versions accepts nothing else.
  table[0].probe = lost;
  refused(
      kind::backend,
      "needs backend two, which is not available here: libtwo.so is not there; install two; place the network again "
      "without it",
      g);
  table[0].name = "other";
  refused(
      kind::backend,
      "needs backend two, which is not in this program's set; build the program with it, or place the network again "
      "without it",
      g);
  table[0] = backend_here("two", two_here);
  p.backends.pop_back();
  refused(kind::backend, "does not say with which version of backend two it was made; place the network again", g);
}

TEST(plan_fit, backends_that_run_nothing_count_where_it_is_asked) {
  const c::graph g = network();
  c::plan p = example(g);
  p.backends.push_back({"three", "3", ""});
  const std::vector<c::backend_entry> table = {backend_here("one", one_here), backend_here("two", two_here)};
  EXPECT_FALSE(c::misfit_of(p, g, table, {.processor = "some processor"}));
  const auto wrong = c::misfit_of(p, g, table, {.processor = "some processor", .all_backends = true});
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->what, "needs backend three, which is not in this program's set");
  // What runs inside a branch is run as well.
  c::placement body;
  body.groups.resize(1);
  body.groups[0].step = c::kernel_step{"three", "relu"};
  p.chosen.groups[2].step = c::control_step{{body}};
  EXPECT_TRUE(c::misfit_of(p, g, table, {.processor = "some processor"}));
}

using portable_set = c::backend_set<c::portable>;

/// A network with a branch, as small as it can be.
c::graph branching() {
  std::vector<std::shared_ptr<const c::graph>> sides;
  for (const bool first : {true, false}) {
    c::graph_builder side;
    const auto x = side.input("x", {c::dtype::f32, {2, 3}});
    side.output("y", first ? side(op::add, x, x) : side(op::neg, side(op::relu, x)));
    sides.push_back(std::make_shared<const c::graph>(side.finish()));
  }
  c::graph_builder g;
  const c::value operands[] = {g.input("condition", {c::dtype::boolean, {}}), g.input("x", {c::dtype::f32, {2, 3}})};
  const auto y = g.add(c::kind_of<decltype(op::branch)>, operands, {}, "choice", sides);
  g.output("z", g(op::tanh, g(op::reshape, g(op::add, y, y), {.dims = {3, 2}})));
  return g.finish();
}

c::plan placed(const c::graph& g) {
  return c::place<portable_set>(g, {.threads = 1, .costs = c::placing_costs::none, .comparing = {.seconds = 0.01}});
}

TEST_F(plan_file, loads_without_measuring_and_selects_the_same) {
  const c::graph g = branching();
  const c::plan made = placed(g);
  c::save_plan(made, g, path());
  const c::plan read = c::load_plan<portable_set>(path(), g, {.threads = 1});
  EXPECT_TRUE(c::same_steps(read.chosen, made.chosen));
  // Writing it again changes no byte, so that plans can be pinned and compared by any tool.
  c::save_plan(read, g, path("again"));
  EXPECT_EQ(c::read_file(path()), c::read_file(path("again")));
  try {
    c::load_plan<portable_set>(path(), g, {.threads = 2});
    ADD_FAILURE() << "it was taken for another number of threads";
  } catch (const c::error& e) {
    EXPECT_EQ(std::string(e.what()).find(path() + ": is a plan for 1 thread, not 2"), 0U) << e.what();
  }
}

/// Spoils the text of a plan in ways that hands, disks and programs do.
class spoiler {
 public:
  explicit spoiler(std::uint64_t seed) : random_(seed) {}

  std::string spoilt(const std::string& good) {
    std::string text = good;
    for (std::size_t changes = pick(4) == 0 ? 1 + pick(4) : 1; changes > 0; --changes)
      text = pick(2) == 0 ? with_other_value(text) : with_other_bytes(text);
    return text;
  }

 private:
  std::size_t pick(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }

  void list_places(c::json& at, std::vector<c::json*>& to) {
    to.push_back(&at);
    if (at.is_structured())
      for (c::json& inner : at) list_places(inner, to);
  }
  c::json other_value() {
    c::json deep = c::json::array();
    switch (pick(8)) {
      case 0:
        for (std::size_t depth = 1 + pick(1000); depth > 0; --depth) deep = c::json::array({std::move(deep)});
        return deep;
      case 1: return std::string(1 + pick(100000), 'x');
      default: break;
    }
    const c::json values[] = {nullptr,
                              true,
                              false,
                              0,
                              -1,
                              1.5,
                              -0.0,
                              1e308,
                              -1e308,
                              5e-324,
                              1U << 31,
                              0x7FFFFFFFFFFFFFFF,
                              ~std::uint64_t{0},
                              "",
                              "NaN",
                              "alias",
                              "view",
                              "group",
                              "control",
                              "portable",
                              "by rule",
                              "plain",
                              "\u0000",
                              c::json::array(),
                              c::json::object()};
    return values[pick(std::size(values))];
  }
  std::string with_other_value(const std::string& text) {
    c::json plan = c::json::parse(text, nullptr, false);
    if (plan.is_discarded()) return text;
    std::vector<c::json*> places;
    list_places(plan, places);
    c::json& one = *places[pick(places.size())];
    c::json& other = *places[pick(places.size())];
    switch (pick(4)) {
      case 0:
        if (one.is_array() && !one.empty()) one.erase(pick(one.size()));
        else if (one.is_object() && !one.empty())
          one.erase(std::next(one.begin(), static_cast<std::ptrdiff_t>(pick(one.size()))));
        else one = other_value();
        break;
      case 1:
        if (one.is_array() && !one.empty()) one.push_back(c::json(one[pick(one.size())]));
        else one = other_value();
        break;
      case 2: one = c::json(other); break;
      default: one = other_value(); break;
    }
    return plan.dump();
  }
  std::string with_other_bytes(std::string text) {
    const std::string pieces[] = {
        "null",     "-1",        "1e308",   "1e999", "{}", "[]", "\"\"", "18446744073709551616",
        "NaN",      "-Infinity", "\\u0000", "\xff",  ",",  "\"", "}",    "true",
        "1.0e-999", "00"};
    const std::size_t at = pick(text.size() + 1), length = pick(12);
    switch (pick(8)) {
      case 0: return text.substr(0, at);
      case 1: return text.insert(at, pick(4) == 0 ? 200000 : pick(200), pick(2) == 0 ? '[' : '{');
      case 2: return text.replace(at, std::min(length, text.size() - at), pieces[pick(std::size(pieces))]);
      case 3: return text.erase(at, length);
      case 4: return text.insert(at, text.substr(pick(text.size() + 1), length));
      case 5: {  // a member twice, the second time as it may be elsewhere
        const std::size_t key = text.find('"', at), colon = text.find(':', at), comma = text.find(',', at);
        if (key < colon && colon < comma && comma != std::string::npos)
          return text.insert(comma, ", " + text.substr(key, comma - key));
        return text;
      }
      default:
        if (at < text.size()) text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << pick(8)));
        return text;
    }
  }

  std::mt19937_64 random_;
};

/// Whatever is in a file, loading it answers a clear error, or a plan that the engine takes or refuses with one.
void load_spoilt_plans(const std::string& path, std::size_t count) {
  const std::uint64_t seed = collage_test::fresh_seed();
  const c::graph networks[] = {network(), branching()};
  const std::string good[] = {
      c::to_text(c::plan_to_json(example(networks[0]), networks[0])),
      c::to_text(c::plan_to_json(placed(networks[1]), networks[1])),
  };
  std::size_t taken = 0, run = 0;
  for (std::size_t i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    const std::size_t which = i % 4 == 0 ? 0 : 1;  // most of the one that can run
    const c::graph& g = networks[which];
    // One file, overwritten: where loading ends the process, the one at fault is left behind.
    write_file(path, spoiler(seed + i * 0x9E3779B97F4A7C15).spoilt(good[which]));
    const std::string where = "file " + std::to_string(i);
    c::plan read;
    try {
      read = c::load_plan(path, g);
      ++taken;
    } catch (const c::error& e) {
      EXPECT_EQ(e.exit_code(), 2) << where << ": " << e.what();
      EXPECT_EQ(std::string(e.what()).find(path + ": "), 0U) << where << ": " << e.what();
      continue;
    } catch (const std::exception& e) {
      ADD_FAILURE() << where << " threw something else: " << e.what();
      continue;
    }
    EXPECT_NO_THROW(c::detail::check_cover(g, read.chosen)) << where;
    for (const c::placement& single : read.singles) EXPECT_NO_THROW(c::detail::check_cover(g, single)) << where;
    EXPECT_EQ(c::plan_to_json(read, g), c::plan_to_json(c::plan_from_json(c::plan_to_json(read, g), g, path), g))
        << where;
    try {
      c::check_plan_fits<portable_set>(read, g, {.threads = 1});
      const c::dynamic_engine engine(g, read.chosen, c::table_of<portable_set>, read.threads);
      c::run_buffers memory(g);
      memory.randomise(1);
      engine.context().run(memory.inputs, memory.outputs);
      ++run;
    } catch (const c::error& e) {
      EXPECT_EQ(e.exit_code(), 2) << where << ": " << e.what();
    } catch (const std::exception& e) { ADD_FAILURE() << where << " threw something else: " << e.what(); }
  }
  std::cout << taken << " of " << count << " were read, " << run << " ran\n";
  // Mutations that spoil nothing, or everything, test nothing.
  EXPECT_GT(taken, 0U);
  if (count >= 1000) { EXPECT_GT(run, count / 50); }
  EXPECT_LT(taken, count * 9 / 10);
}

using plan_file_long = plan_file;
TEST_F(plan_file, a_plan_or_a_clear_error) { load_spoilt_plans(path(), 100); }
TEST_F(plan_file_long, a_plan_or_a_clear_error) { load_spoilt_plans(path(), 1000); }

}  // namespace io_plan_file_test
