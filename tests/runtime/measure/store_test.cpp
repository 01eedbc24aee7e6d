// The store of measured costs: what is put is found, by any process and after any death; a file that is no store of
// ours, or a damaged one, gives a sentence or a right answer.
#include <collage/error.hpp>
#include <collage/measure/store.hpp>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "support/effort.hpp"
#include "support/files.hpp"

namespace measure_store_test {

namespace c = collage;
namespace fs = std::filesystem;
using collage_test::bytes_of;
using collage_test::write_file;

c::stored_key key(std::uint64_t i) {
  c::stored_key k;
  k.machine = "a processor (avx512)";
  k.threads = 2;
  k.waiting = "passive";
  k.precision = "fp32";
  k.backend = i % 2 == 0 ? "eigen" : "onednn";
  k.library = "3.2.0, compiled for x86-64-v4";
  k.pattern = "conv_relu";
  k.choice = c::configuration(i % 3);
  k.computes = {i, ~i, 0, 0xFFFFFFFFFFFFFFFF};
  for (std::uint64_t w = 0; w < i % 50; ++w) k.computes.push_back(w * w);
  return k;
}

c::stored_cost cost(std::uint64_t i, std::int64_t when_s = 1'700'000'000) {
  const double ms = 0.1 + static_cast<double>(i) / 7;
  c::stored_cost v{.label = "conv+relu 1x64x56x" + std::to_string(i),
                   .kernel = "jit:avx512",
                   .refusal = {},
                   .median_ms = ms,
                   .low_ms = ms * 0.9,
                   .high_ms = ms * 1.1,
                   .sure_low_ms = ms * 0.99,
                   .sure_high_ms = ms * 1.01,
                   .samples = i,
                   .how = "in a worker, warm",
                   .when_s = when_s};
  if (i % 10 == 9) v = {.label = v.label, .refusal = "wrong result: élément 3", .how = v.how, .when_s = when_s};
  return v;
}

c::stored_run_key run_key(std::uint64_t i) {
  return {.network = 0xFEDCBA9876543210 + i,
          .placement = "eigen:conv_relu:0;" + std::to_string(i),
          .machine = "a processor (avx512)",
          .threads = 2,
          .waiting = "passive",
          .precision = "fp32",
          .libraries = "eigen 3.4.0; onednn 3.2.0"};
}

c::stored_run run(std::uint64_t i, std::int64_t when_s = 1'700'000'000) {
  const double ms = 10.0 + static_cast<double>(i) / 3;
  return {.label = "zoo:resnet50",
          .name = i == 0 ? "search" : "eigen",
          .median_ms = ms,
          .low_ms = ms - 1,
          .high_ms = ms + 1,
          .runs = 30,
          .against = "onednn",
          .ratio = 1.25,
          .ratio_low = 1.125,
          .ratio_high = 1.5,
          .plan = "{\"a plan\": [" + std::to_string(i) + "]}",
          .when_s = when_s};
}

class cost_store : public testing::Test {
 protected:
  std::string path(const std::string& name = "costs.db") const { return files_.path(name); }
  const fs::path& folder() const { return files_.folder(); }

 private:
  const collage_test::temporary_folder files_{collage_test::folder_in_memory()};
};
using cost_store_long = cost_store;

/// What an action's error says; empty without one.
std::string error_of(const std::function<void()>& action, c::error_kind kind = c::error_kind::invalid_argument) {
  try {
    action();
  } catch (const c::error& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind)) << e.what();
    EXPECT_NE(std::string(e.what()).find("; "), std::string::npos) << "no remedy: " << e.what();
    return e.what();
  }
  return {};
}

/// A store for the while of a statement.
void open(const std::string& path, c::store_mode mode = c::store_mode::read_write) {
  const c::cost_store store(path, mode);
}

#define EXPECT_SAYS(action, kind, part)                                                   \
  EXPECT_NE(error_of([&] { action; }, c::error_kind::kind).find(part), std::string::npos) \
      << error_of([&] { action; }, c::error_kind::kind)

/// Runs SQL on a file as another program would.
void sql(const std::string& path, const std::string& text) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  sqlite3_busy_timeout(db, 10'000);
  char* why = nullptr;
  EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, &why), SQLITE_OK) << (why == nullptr ? "" : why);
  sqlite3_free(why);
  sqlite3_close(db);
}

/// Another process; what it throws ends it with 99.
pid_t start(const std::function<int()>& work) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process can be started");  // to kill -1 would be to kill everything
  if (child != 0) return child;
  int result = 99;
  try {
    result = work();
  } catch (const std::exception& e) { std::fprintf(stderr, "in another process: %s\n", e.what()); }
  std::fflush(nullptr);
  ::_exit(result);
}

int end_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// Root may do everything: it becomes somebody else for the while.
class unprivileged {
 public:
  unprivileged() {
    if (::geteuid() != 0) return;
    is_ = ::setegid(65534) == 0 && ::seteuid(65534) == 0;
    EXPECT_TRUE(is_);
  }
  unprivileged(const unprivileged&) = delete;
  unprivileged& operator=(const unprivileged&) = delete;
  ~unprivileged() {
    if (is_) { EXPECT_TRUE(::seteuid(0) == 0 && ::setegid(0) == 0); }
  }

 private:
  bool is_ = false;
};

// ---- What is put is found -----------------------------------------------------------------------------------------

TEST_F(cost_store, finds_what_was_put) {
  {
    c::cost_store store(path());
    EXPECT_TRUE(store.writable());
    EXPECT_EQ(store.path(), path());
    EXPECT_EQ(store.find(key(1)), std::nullopt);
    for (std::uint64_t i = 0; i < 100; ++i) store.put(key(i), cost(i));
    for (std::uint64_t i = 0; i < 5; ++i) store.put(run_key(i), run(i));
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(store.find(key(i)), cost(i));
    store.put(key(7), cost(70));
  }
  for (const c::store_mode mode : {c::store_mode::read_write, c::store_mode::read_only}) {
    const c::cost_store store(path(), mode);
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(store.find(key(i)), cost(i == 7 ? 70 : i));
    for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(store.find(run_key(i)), run(i));
    EXPECT_EQ(store.find(key(100)), std::nullopt);
    const c::store_report report = store.check();
    EXPECT_EQ(report.problems, std::vector<std::string>{});
    EXPECT_EQ(report.entries.costs, 100U);
    EXPECT_EQ(report.entries.runs, 5U);
    EXPECT_EQ(report.refused, 10U);
    EXPECT_EQ(report.damaged + store.damaged(), 0U);
    EXPECT_EQ(report.journal, "wal");
    EXPECT_EQ(report.schema, 1);
    EXPECT_GE(report.bytes, 4096U);
  }
}

TEST_F(cost_store, every_part_of_the_key_counts) {
  c::cost_store store(path());
  store.put(key(1), cost(1));
  std::vector<c::stored_key> others(12, key(1));
  others[0].machine += ' ';
  others[1].threads = 1;
  others[2].waiting = "active";
  others[3].precision = "bf16";
  others[4].backend = "eigen";
  others[5].library = "3.2.1";
  others[6].pattern = "conv";
  others[7].choice = c::configuration(7);
  others[8].computes.push_back(0);
  others[9].computes[0] = 2;
  others[10].computes = {};
  std::swap(others[11].backend, others[11].library);
  for (const c::stored_key& k : others) EXPECT_EQ(store.find(k), std::nullopt);
  for (std::size_t i = 0; i < others.size(); ++i) store.put(others[i], cost(i));
  for (std::size_t i = 0; i < others.size(); ++i) EXPECT_EQ(store.find(others[i]), cost(i));
  EXPECT_EQ(store.list().size(), 13U);

  std::vector<c::stored_run_key> runs(7, run_key(1));
  runs[0].network = 1;
  runs[1].placement += 'x';
  runs[2].machine = "";
  runs[3].threads = 3;
  runs[4].waiting = "";
  runs[5].precision = "";
  runs[6].libraries = "";
  store.put(run_key(1), run(1));
  for (const c::stored_run_key& k : runs) EXPECT_EQ(store.find(k), std::nullopt);
}

// Files of other builds and machines are read by these: another digest or seal would make them look damaged.
TEST_F(cost_store, the_digest_and_the_seal_of_an_entry_never_change) {
  c::cost_store store(path());
  store.put(key(3), cost(3));
  store.put(run_key(3), run(3));
  EXPECT_EQ(store.list().at(0).id, "322fb33d331179a49cf4a84f85ac6b38");
  EXPECT_EQ(store.list_runs().at(0).id, "1529ca7ca44958fd4ebeebdb85eb2933");
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
  const auto seal = [&](const char* table) {
    sqlite3_stmt* s = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, (std::string("SELECT seal FROM ") + table).c_str(), -1, &s, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(s), SQLITE_ROW);
    const std::int64_t read = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return read;
  };
  EXPECT_EQ(seal("costs"), 1355645616848044801);
  EXPECT_EQ(seal("runs"), -6957426141553258120);
  sqlite3_close(db);
}

TEST_F(cost_store, puts_several_at_once_or_none) {
  c::cost_store store(path());
  store.put({{key(1), cost(1)}, {key(2), cost(2)}});
  EXPECT_EQ(store.find(key(1)), cost(1));
  EXPECT_EQ(store.find(key(2)), cost(2));
  c::stored_cost wrong = cost(4);
  wrong.median_ms = -1;
  EXPECT_THROW(store.put({{key(3), cost(3)}, {key(4), wrong}}), c::error);
  EXPECT_EQ(store.find(key(3)), std::nullopt);
  store.put(key(3), cost(3));
  EXPECT_EQ(store.find(key(3)), cost(3));
}

TEST_F(cost_store, says_when) {
  c::cost_store store(path());
  const std::time_t before = std::time(nullptr);
  store.put(key(1), cost(1, 0));
  const std::int64_t when = store.find(key(1))->when_s;
  EXPECT_GE(when, before);
  EXPECT_LE(when, std::time(nullptr));
}

TEST_F(cost_store, refuses_values_that_no_measurement_has) {
  c::cost_store store(path());
  store.put(key(1), cost(1));
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {nan, infinity, -infinity, -1.0, -1e-300})
    for (double c::stored_cost::* member :
         {&c::stored_cost::median_ms, &c::stored_cost::low_ms, &c::stored_cost::high_ms, &c::stored_cost::sure_low_ms,
          &c::stored_cost::sure_high_ms}) {
      c::stored_cost v = cost(2);
      v.*member = wrong;
      EXPECT_SAYS(store.put(key(1), v), invalid_argument, "_ms is ");
    }
  c::stored_cost early = cost(2);
  early.when_s = -1;
  EXPECT_SAYS(store.put(key(1), early), invalid_argument, "when_s is -1");
  c::stored_cost many = cost(2);
  many.samples = ~std::uint64_t{0};
  EXPECT_SAYS(store.put(key(1), many), invalid_argument, "samples");
  c::stored_run ratio = run(1);
  ratio.ratio = nan;
  EXPECT_SAYS(store.put(run_key(1), ratio), invalid_argument, "ratio");
  for (const int threads : {0, -1, 65537}) {
    c::stored_key k = key(1);
    k.threads = threads;
    EXPECT_SAYS(store.put(k, cost(1)), invalid_argument, "threads is ");
    EXPECT_SAYS(store.find(k), invalid_argument, "threads is ");
  }
  for (const std::string& wrong :
       {std::string("\xff"), std::string("a\0b", 3), std::string("\xc3"), std::string("\xed\xa0\x80"),
        std::string("\xc0\xaf"), std::string("\xf5\x80\x80\x80"), std::string("\xe0\x80\x80")}) {
    c::stored_key k = key(1);
    k.library = wrong;
    EXPECT_SAYS(store.put(k, cost(1)), invalid_argument, "library is not text in UTF-8");
  }
  c::stored_key large = key(1);
  large.computes.assign(3U << 20, 1);
  EXPECT_SAYS(store.put(large, cost(1)), invalid_argument, "cannot hold an entry of");
  EXPECT_EQ(store.find(key(1)), cost(1));
  EXPECT_EQ(store.list().size(), 1U);

  large.computes.resize(1U << 20);  // 8 MiB are held
  store.put(large, cost(2));
  EXPECT_EQ(store.find(large), cost(2));
}

TEST_F(cost_store, makes_texts_for_people_right) {
  c::cost_store store(path());
  c::stored_cost v = cost(1);
  v.label = std::string("node \xff\0\xc3", 8) + "é€😀";
  v.refusal = "\xed\xa0\x80";
  v.median_ms = -0.0;
  store.put(key(1), v);
  const c::stored_cost found = store.find(key(1)).value();
  EXPECT_EQ(found.label, "node ???é€😀");
  EXPECT_EQ(found.refusal, "???");
  EXPECT_FALSE(std::signbit(found.median_ms));
  v = cost(2);
  v.median_ms = 5e-324;
  v.high_ms = std::numeric_limits<double>::max();
  v.low_ms = 1e15;
  v.label = "";
  store.put(key(2), v);
  EXPECT_EQ(store.find(key(2)), v);
}

TEST_F(cost_store, lists_and_removes_what_a_filter_means) {
  c::cost_store store(path());
  for (std::uint64_t i = 0; i < 20; ++i) store.put(key(i), cost(i, 1000 + static_cast<std::int64_t>(i)));
  c::stored_key foreign = key(1);
  foreign.machine = "another processor";
  store.put(foreign, cost(1, 1));
  for (std::uint64_t i = 0; i < 3; ++i) store.put(run_key(i), run(i, 1000));
  const auto count = [&](const c::store_filter& which) {
    return std::pair{store.list(which).size(), store.list_runs(which).size()};
  };
  using counts = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(count({}), counts(21, 3));
  EXPECT_EQ(count({.backend = "eigen"}), counts(10, 0));
  EXPECT_EQ(count({.backend = "ei"}), counts(0, 0));
  EXPECT_EQ(count({.machine = "another processor"}), counts(1, 0));
  EXPECT_EQ(count({.other_than_machine = "another processor"}), counts(20, 3));
  EXPECT_EQ(count({.refused = true}), counts(2, 0));
  EXPECT_EQ(count({.backend = "eigen", .refused = true}), counts(0, 0));
  EXPECT_EQ(count({.before_s = 1010}), counts(11, 3));
  EXPECT_EQ(count({.text = "56x1"}), counts(12, 0));
  EXPECT_EQ(count({.text = "resnet"}), counts(0, 3));
  EXPECT_EQ(count({.text = "' OR 1=1 --"}), counts(0, 0));
  const std::string id = store.list({.backend = "eigen"}).at(3).id;
  EXPECT_EQ(id.size(), 32U);
  EXPECT_EQ(store.list({.text = id}).size(), 1U);
  EXPECT_EQ(store.list({.text = id.substr(0, 12)}).at(0).id, id);

  const std::vector<c::stored_entry> all = store.list();
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, [](const c::stored_entry& e) {
    return std::tuple(e.key.backend, e.cost.label, e.key.pattern, e.key.choice);
  }));

  c::store_count gone = store.remove({.backend = "eigen"});
  EXPECT_EQ(gone.costs, 10U);
  EXPECT_EQ(gone.runs, 0U);
  gone = store.remove({.other_than_machine = "a processor (avx512)"});
  EXPECT_EQ(gone.costs, 1U);
  EXPECT_EQ(gone.runs, 0U);
  gone = store.remove({.before_s = 1005});
  EXPECT_EQ(gone.costs, 2U);
  EXPECT_EQ(gone.runs, 3U);
  EXPECT_EQ(store.remove({.refused = true}).costs, 2U);
  EXPECT_EQ(count({}), counts(6, 0));
  EXPECT_EQ(store.find(key(5)), cost(5, 1005));
  EXPECT_EQ(store.find(key(3)), std::nullopt);
  EXPECT_EQ(store.forget({key(5), key(3)}), 1U);
  EXPECT_EQ(store.find(key(5)), std::nullopt);
  EXPECT_EQ(count({}), counts(5, 0));
  EXPECT_SAYS(store.forget({key(7), c::stored_key{.threads = 0}}), invalid_argument, "cannot hold this key");
  EXPECT_EQ(count({}), counts(5, 0));
}

TEST_F(cost_store, is_exported_and_imported_exactly) {
  c::cost_store store(path());
  for (std::uint64_t i = 0; i < 30; ++i) store.put(key(i), cost(i));
  for (std::uint64_t i = 0; i < 3; ++i) store.put(run_key(i), run(i));
  const std::string text = store.export_json();
  c::cost_store other(path("other.db"));
  c::store_merge became = other.import_json(text, "f.json");
  EXPECT_EQ(became.added, 33U);
  EXPECT_EQ(became.replaced + became.kept + became.damaged, 0U);
  for (std::uint64_t i = 0; i < 30; ++i) EXPECT_EQ(other.find(key(i)), cost(i));
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(other.find(run_key(i)), run(i));
  EXPECT_EQ(other.export_json(), text);
  became = other.import_json(text, "f.json");
  EXPECT_EQ(became.kept, 33U);
  EXPECT_EQ(became.added + became.replaced, 0U);
}

// ---- Configurations -----------------------------------------------------------------------------------------------

c::stored_key configured(std::string_view text) {
  c::stored_key k = key(1);
  k.choice = c::configuration::of(text).value();
  return k;
}

TEST_F(cost_store, keys_of_numbered_variants_stay_as_they_were_before_there_were_texts) {
  const std::string text = R"json({"format": "collage costs", "version": 1, "runs": [], "costs": [
    {"machine": "AMD EPYC 9R14 (avx512)", "threads": 2, "waiting": "passive", "precision": "fp32", "backend": "onednn",
     "library": "3.2.0, compiled for znver3+avx512f", "pattern": "conv_chain", "choice": 0,
     "computes": "00000000000000a100000000000000b2", "label": "", "kernel": "", "refusal": "", "median_ms": 1, "low_ms": 1,
     "high_ms": 1, "sure_low_ms": 1, "sure_high_ms": 1, "samples": 30, "how": "", "when_s": 1795330000},
    {"machine": "AMD EPYC 9R14 (avx512)", "threads": 2, "waiting": "passive", "precision": "fp32", "backend": "eigen",
     "library": "3.4.0, compiled for znver3+avx512f", "pattern": "conv_relu", "choice": 1,
     "computes": "00000000000000a100000000000000b2", "label": "", "kernel": "", "refusal": "no", "median_ms": 0, "low_ms": 0,
     "high_ms": 0, "sure_low_ms": 0, "sure_high_ms": 0, "samples": 0, "how": "", "when_s": 1795330000}]})json";
  c::cost_store store(path());
  EXPECT_EQ(store.import_json(text, "f.json").added, 2U);
  const auto all = store.list();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].id, "42701b00fc877a593e6e62586299ce25");
  EXPECT_EQ(all[1].id, "5beb7351ba6ccaec281c7b2840af0cde");
}

TEST_F(cost_store, keeps_configurations_apart) {
  const char* const texts[] = {"0", "1", "4294967295", "loop unroll 4", "loop unroll 40", "x", "inf", "e1", "NULL"};
  c::cost_store store(path());
  for (std::size_t i = 0; i < std::size(texts); ++i) store.put(configured(texts[i]), cost(i));
  c::cost_store again(path());
  for (std::size_t i = 0; i < std::size(texts); ++i) EXPECT_EQ(again.find(configured(texts[i])), cost(i)) << texts[i];
  EXPECT_EQ(again.find(configured("loop unroll 8")), std::nullopt);
  EXPECT_EQ(again.list().size(), std::size(texts));
  EXPECT_EQ(again.check().problems, std::vector<std::string>{});
  // Through JSON, where numbers are numbers.
  const std::string exported = again.export_json();
  EXPECT_NE(exported.find("\"choice\": 4294967295"), std::string::npos);
  EXPECT_NE(exported.find("\"choice\": \"loop unroll 4\""), std::string::npos);
  c::cost_store other(path("other.db"));
  EXPECT_EQ(other.import_json(exported, "f.json").added, std::size(texts));
  EXPECT_EQ(other.merge_from(path()).kept, std::size(texts));
  EXPECT_EQ(other.export_json(), exported);
  EXPECT_EQ(other.forget({configured("loop unroll 4")}), 1U);
  EXPECT_EQ(other.find(configured("loop unroll 4")), std::nullopt);
  EXPECT_EQ(other.find(configured("loop unroll 40")), cost(4));
  const auto refused = [&](const std::string& choice, const std::string& part) {
    std::string text = exported;
    const std::size_t at = text.find("\"choice\": 0");
    ASSERT_NE(at, std::string::npos);
    EXPECT_SAYS(other.import_json(text.replace(at + 10, 1, choice), "f.json"), invalid_argument, part);
  };
  refused("-1", "costs[0].choice is not a whole number from 0 to 4294967295");
  refused("4294967296", "costs[0].choice is not a whole number from 0 to 4294967295");
  refused("\"\"", "costs[0].choice is , which is no configuration: it is empty");
  refused("\"a\\tb\"",
          "costs[0].choice is a?b, which is no configuration: it has a character that is not printable ASCII");
}

TEST_F(cost_store, never_answers_a_changed_configuration) {
  for (const char* change : {"choice = 'loop unroll 8'", "choice = 4", "choice = ''", "choice = 'a' || char(10)",
                             "choice = x'6C'", "choice = 1.5"}) {
    fs::remove(path());
    c::cost_store store(path());
    store.put(configured("loop unroll 4"), cost(1));
    sql(path(), "UPDATE costs SET " + std::string(change));
    EXPECT_EQ(store.find(configured("loop unroll 4")), std::nullopt) << change;
    EXPECT_EQ(store.check().damaged, 1U) << change;
  }
}

TEST_F(cost_store, refuses_to_import_what_is_no_export) {
  c::cost_store store(path());
  store.put(key(3), cost(3));
  const std::string good = c::cost_store(path()).export_json();
  const auto refused = [&](const std::string& text, const char* part) {
    EXPECT_SAYS(store.import_json(text, "f.json"), invalid_argument, part);
  };
  const auto spoiled = [&](const std::string& from, const std::string& to, const char* part) {
    std::string text = good;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in\n" << good;
    refused(text.replace(at, from.size(), to), part);
  };
  refused("", "f.json: is not JSON: error at byte 1");
  refused(good.substr(0, good.size() / 2), "is not JSON: error at byte");
  refused("1e999", "a number is out of range");
  refused("[]", "is not an export of a store");
  refused(R"({"format": "collage plan"})", "is not an export of a store");
  spoiled("\"version\": 1", "\"version\": 2", "has version 2 of the export format");
  spoiled("\"median_ms\": ", "\"median_ms\": -", "costs[0].median_ms is not a finite number of at least 0");
  spoiled("\"median_ms\": ", "\"median\": ", "costs[0].median_ms is missing");
  spoiled("\"threads\": 2", "\"threads\": 0", "costs[0].threads is not a whole number from 1 to 65536");
  spoiled("\"threads\": 2", "\"threads\": \"2\"", "costs[0].threads is not a whole number");
  spoiled("\"when_s\": ", "\"when_s\": -", "costs[0].when_s");
  spoiled("\"computes\": \"", "\"computes\": \"0", "costs[0].computes is not made of words");
  spoiled("\"computes\": \"0", "\"computes\": \"g", "costs[0].computes is not made of words");
  spoiled("\"computes\": \"0", "\"computes\": \"-", "costs[0].computes is not made of words");
  spoiled("\"backend\": \"onednn\"", "\"backend\": \"one\\u0000dnn\"", "costs[0].backend has a zero byte");
  spoiled("\"runs\": []", "\"runs\": {}", "runs is not a list");
  spoiled("\"runs\": []", "\"runs\": [{}]", "runs[0].network is missing");
  EXPECT_EQ(store.list().size(), 1U);
  // All of a file or nothing, and the store goes on.
  c::cost_store other(path("other.db"));
  for (const std::uint64_t i : {2U, 5U}) other.put(key(i), cost(i));
  std::string large = other.export_json();
  large.insert(large.rfind("\"label\": \"") + 10, std::string(17U << 20, 'x'));
  refused(large, "cannot hold an entry of 17");
  EXPECT_EQ(store.list().size(), 1U);
  EXPECT_EQ(c::cost_store(path()).merge_from(path("other.db")).added, 2U);
  store.put(key(6), cost(6));
  EXPECT_EQ(store.list().size(), 4U);
  // Deep nesting must not use up the stack.
  refused(std::string(2'000'000, '['), "is not JSON");
}

TEST_F(cost_store, merges_and_the_newer_stays) {
  c::cost_store ours(path()), theirs(path("theirs.db"));
  for (std::uint64_t i = 0; i < 10; ++i) ours.put(key(i), cost(i, 1000));
  for (std::uint64_t i = 5; i < 15; ++i) theirs.put(key(i), cost(i + 100, i < 8 ? 999 : 1001));
  ours.put(run_key(1), run(1, 1000));
  theirs.put(run_key(1), run(2, 1001));
  theirs.put(run_key(2), run(2, 1));
  for (int again = 0; again < 2; ++again) {
    const c::store_merge became = ours.merge_from(path("theirs.db"));
    EXPECT_EQ(became.added, again == 0 ? 6U : 0U);
    EXPECT_EQ(became.replaced, again == 0 ? 3U : 0U);
    EXPECT_EQ(became.kept, again == 0 ? 3U : 12U);
    EXPECT_EQ(became.damaged, 0U);
    for (std::uint64_t i = 0; i < 15; ++i) EXPECT_EQ(ours.find(key(i)), i < 8 ? cost(i, 1000) : cost(i + 100, 1001));
    EXPECT_EQ(ours.find(run_key(1)), run(2, 1001));
    EXPECT_EQ(ours.find(run_key(2)), run(2, 1));
  }
  EXPECT_EQ(ours.merge_from(path()).kept, 17U);  // with itself
  EXPECT_SAYS(ours.merge_from(path("none.db")), invalid_argument, "none.db: cannot be read: No such file");
  EXPECT_FALSE(fs::exists(path("none.db")));
  sql(path("theirs.db"), "UPDATE costs SET median_ms = median_ms + 1 WHERE rowid = 1");
  c::cost_store third(path("third.db"));
  const c::store_merge became = third.merge_from(path("theirs.db"));
  EXPECT_EQ(became.added, 11U);
  EXPECT_EQ(became.damaged, 1U);
}

TEST_F(cost_store, is_used_by_several_threads) {
  c::cost_store store(path());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 50; ++i) {
        store.put(key(t * 50 + i), cost(i));
        if (store.find(key(t * 50 + i)) != cost(i)) ++wrong;
        if (i % 10 == 0 && store.list().empty()) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store.list().size(), 200U);
  EXPECT_EQ(store.check().problems, std::vector<std::string>{});
}

TEST_F(cost_store, can_be_moved) {
  c::cost_store store(path());
  store.put(key(1), cost(1));
  c::cost_store moved(std::move(store));
  EXPECT_EQ(moved.find(key(1)), cost(1));
  moved = c::cost_store(path("other.db"));
  EXPECT_EQ(moved.find(key(1)), std::nullopt);
}

// ---- Paths --------------------------------------------------------------------------------------------------------

TEST_F(cost_store, says_what_is_wrong_with_a_path) {
  EXPECT_SAYS(open(""), invalid_argument, "has no name");
  EXPECT_SAYS(open(folder().string()), invalid_argument, "is a folder");
  EXPECT_SAYS(open(folder().string() + "/"), invalid_argument, "is a folder");
  EXPECT_SAYS(open(path("none/costs.db")), invalid_argument, "its folder does not exist");
  EXPECT_SAYS(open(path("none/")), invalid_argument, "has no file name");
  EXPECT_SAYS(open(path(), c::store_mode::read_only), invalid_argument, "cannot be read: No such file");
  EXPECT_FALSE(fs::exists(path()));
  write_file(path("file"), "");
  EXPECT_SAYS(open(path("file/costs.db")), invalid_argument, "its folder does not exist");
  EXPECT_SAYS(open(path("file"), c::store_mode::read_only), invalid_argument, "is empty");
  c::cost_store(path("file")).put(key(1), cost(1));  // an empty file is an empty store
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_SAYS(open(path("pipe")), invalid_argument, "is a device or pipe");
  EXPECT_SAYS(open("/dev/null"), invalid_argument, "is a device or pipe");
  EXPECT_SAYS(open(path(std::string(300, 'x'))), invalid_argument, "File name too long");
  std::string deep = path("deep");
  for (int i = 0; i < 6; ++i) fs::create_directory(deep), deep += "/" + std::string(100, 'd');
  EXPECT_SAYS(open(deep + ".db"), invalid_argument, "has a path of more than 480 bytes");
}

TEST_F(cost_store, takes_any_name_for_a_file) {
  const fs::path before = fs::current_path();
  fs::current_path(folder());
  for (const char* name : {":memory:", "file:x?mode=memory", "a b%20c#?.db", "été.db", "-x"}) {
    c::cost_store(name).put(key(1), cost(1));
    EXPECT_TRUE(fs::exists(folder() / name)) << name;
    EXPECT_EQ(c::cost_store(name, c::store_mode::read_only).find(key(1)), cost(1)) << name;
  }
  fs::current_path(before);
  fs::create_symlink("-x", path("link"));
  EXPECT_EQ(c::cost_store(path("link")).find(key(1)), cost(1));
  const c::measuring_lock held = c::cost_store(path("link")).measuring();
  EXPECT_TRUE(held);
  EXPECT_FALSE(c::cost_store(path("-x")).measuring([](const c::measuring_process&) { return false; }));
}

TEST_F(cost_store, the_default_is_under_the_users_caches) {
  // In a process of its own, as the environment is shared.
  const pid_t child = start([&] {
    ::setenv("XDG_CACHE_HOME", path("caches").c_str(), 1);
    ::setenv("HOME", path("home").c_str(), 1);
    EXPECT_EQ(c::default_store_path(), path("caches/collage/costs.db"));
    c::cost_store(c::default_store_path()).put(key(1), cost(1));  // its folder is made
    EXPECT_TRUE(fs::exists(path("caches/collage/costs.db")));
    for (const char* none : {"", "relative"}) {
      ::setenv("XDG_CACHE_HOME", none, 1);
      EXPECT_EQ(c::default_store_path(), path("home/.cache/collage/costs.db"));
    }
    ::unsetenv("XDG_CACHE_HOME");
    EXPECT_EQ(c::default_store_path(), path("home/.cache/collage/costs.db"));
    for (const char* none : {"", "home"}) {
      ::setenv("HOME", none, 1);
      EXPECT_SAYS(c::default_store_path(), environment, "neither XDG_CACHE_HOME nor HOME");
      EXPECT_EQ(c::cost_store(path()).find(key(1)), std::nullopt);  // others do not need it
    }
    write_file(path("file"), "");
    ::setenv("XDG_CACHE_HOME", path("file").c_str(), 1);
    EXPECT_SAYS(open(c::default_store_path()), environment, "cannot be created: Not a directory");
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(end_of(child), 0);
}

// ---- Files that are none of ours ----------------------------------------------------------------------------------

TEST_F(cost_store, refuses_what_is_no_store) {
  const auto refused = [&](const std::string& name, const char* part) {
    const std::string before = bytes_of(path(name));
    EXPECT_SAYS(open(path(name)), invalid_argument, part);
    EXPECT_SAYS(open(path(name), c::store_mode::read_only), invalid_argument, part);
    EXPECT_TRUE(bytes_of(path(name)) == before) << name;  // and leaves it as it was
  };
  write_file(path("text.db"), std::string(5000, 'x'));
  refused("text.db", "not a file of SQLite");
  for (const char* text : {"x", "SQLite format 3", "# notes\n"}) {
    write_file(path("short.db"), text);
    refused("short.db", "not a file of SQLite");
  }
  sql(path("other.db"), "CREATE TABLE costs (x)");
  refused("other.db", "is another program's database");
  sql(path("version.db"), "PRAGMA user_version=1");
  refused("version.db", "is another program's database");
  sql(path("id.db"), "PRAGMA application_id=252006673");
  refused("id.db", "is another program's database");
  c::cost_store(path("newer.db")).put(key(1), cost(1));
  sql(path("newer.db"), "PRAGMA user_version=2");
  refused("newer.db", "its schema is 2, and this one knows 1");
}

TEST_F(cost_store, refuses_tables_that_are_not_ours) {
  const auto damaged = [&](const std::string& change, const char* part) {
    fs::remove(path());
    c::cost_store(path()).put(key(1), cost(1));
    sql(path(), change);
    EXPECT_SAYS(open(path()), environment, part);
  };
  damaged("DROP TABLE runs", "its table runs has another definition than this version creates");
  damaged("DROP TABLE costs; CREATE VIEW costs AS SELECT 1 AS digest",
          "its table costs has another definition than this version creates");
  damaged("ALTER TABLE costs ADD COLUMN more", "its table costs has another definition than this version creates");
  damaged("PRAGMA user_version=0", "its schema is 0");
  damaged("PRAGMA user_version=-3", "its schema is -3");
  // What else is in it is never run.
  fs::remove(path());
  c::cost_store(path()).put(key(1), cost(1));
  sql(path(), "CREATE TRIGGER t AFTER INSERT ON costs BEGIN DELETE FROM costs; END");
  c::cost_store store(path());
  store.put(key(2), cost(2));
  EXPECT_EQ(store.find(key(1)), cost(1));
}

// ---- Entries that were changed ------------------------------------------------------------------------------------

TEST_F(cost_store, never_answers_a_changed_entry) {
  for (const char* change : {"median_ms = 1e-9",
                             "median_ms = 'fast'",
                             "median_ms = 9e999",
                             "median_ms = -1",
                             "samples = 2",
                             "samples = x'00'",
                             "label = 'other'",
                             "label = 5",
                             "label = CAST(x'ff' AS TEXT)",
                             "label = CAST(x'610062' AS TEXT)",
                             "label = x'61'",
                             "refusal = 'no'",
                             "kernel = ''",
                             "threads = 3",
                             "threads = 0",
                             "threads = 2.5",
                             "choice = 5000000000",
                             "computes = x'0011'",
                             "computes = 7",
                             "computes = x'0000000000000000'",
                             "machine = 'mine'",
                             "when_s = when_s + 1",
                             "when_s = -1",
                             "seal = seal + 1",
                             "seal = 'x'",
                             "how = zeroblob(100000)"}) {
    fs::remove(path());
    c::cost_store store(path());
    store.put(key(1), cost(1));
    store.put(key(2), cost(2));
    sql(path(), "UPDATE costs SET " + std::string(change) + " WHERE samples = 1");
    EXPECT_EQ(store.find(key(1)), std::nullopt) << change;
    EXPECT_EQ(store.damaged(), 1U) << change;
    EXPECT_EQ(store.find(key(2)), cost(2)) << change;
    EXPECT_EQ(store.list().size(), 1U) << change;
    const c::store_report report = store.check();
    EXPECT_EQ(report.damaged, 1U) << change;
    ASSERT_EQ(report.problems.size(), 1U) << change;
    EXPECT_NE(report.problems[0].find("1 entry is damaged"), std::string::npos);
    store.put(key(1), cost(10));  // measured again
    EXPECT_EQ(store.find(key(1)), cost(10)) << change;
    EXPECT_EQ(store.check().problems, std::vector<std::string>{}) << change;
  }
}

TEST_F(cost_store, removes_changed_entries) {
  c::cost_store store(path());
  for (std::uint64_t i = 0; i < 10; ++i) store.put(key(i), cost(i));
  store.put(run_key(1), run(1));
  sql(path(),
      "UPDATE costs SET median_ms = 7 WHERE rowid IN (2, 5); UPDATE runs SET ratio = 9; "
      "UPDATE costs SET digest = x'00112233445566778899AABBCCDDEEFF' WHERE rowid = 7");
  EXPECT_EQ(store.check().damaged, 4U);
  EXPECT_EQ(store.remove_damaged(), 4U);
  EXPECT_EQ(store.remove_damaged(), 0U);
  EXPECT_EQ(store.check().problems, std::vector<std::string>{});
  EXPECT_EQ(store.list().size(), 7U);
}

// ---- Where nothing can be written ---------------------------------------------------------------------------------

void is_readable_alone(c::cost_store& store, const char* why) {
  EXPECT_FALSE(store.writable());
  EXPECT_NE(store.why_not_writable().find(why), std::string::npos) << store.why_not_writable();
  EXPECT_EQ(store.find(key(1)), cost(1));
  EXPECT_EQ(store.find(key(2)), std::nullopt);
  EXPECT_EQ(store.list().size(), 1U);
  const std::string text = store.export_json();
  EXPECT_SAYS(store.put(key(1), cost(2)), invalid_argument, why);
  EXPECT_SAYS(store.put(run_key(1), run(2)), invalid_argument, why);
  EXPECT_SAYS(store.forget({key(1)}), invalid_argument, why);
  EXPECT_SAYS(store.remove({}), invalid_argument, why);
  EXPECT_SAYS(store.remove_damaged(), invalid_argument, why);
  EXPECT_SAYS(store.import_json(text, "f.json"), invalid_argument, why);
  EXPECT_SAYS(store.merge_from(store.path()), invalid_argument, why);
  EXPECT_EQ(store.check().problems, std::vector<std::string>{});
  EXPECT_TRUE(store.measuring());
  EXPECT_FALSE(fs::exists(store.path() + "-measuring"));
}

TEST_F(cost_store, is_opened_to_be_read_alone) {
  c::cost_store(path()).put(key(1), cost(1));
  c::cost_store store(path(), c::store_mode::read_only);
  is_readable_alone(store, "is opened read-only");
  c::cost_store writer(path());
  writer.put(key(3), cost(3));
  EXPECT_EQ(store.find(key(3)), cost(3));  // what others put meanwhile is seen
}

TEST_F(cost_store, is_read_where_the_file_cannot_be_written) {
  c::cost_store(path()).put(key(1), cost(1));
  fs::permissions(path(), fs::perms{0444});
  const unprivileged for_now;
  c::cost_store store(path());
  is_readable_alone(store, "cannot be written: Permission denied");
}

TEST_F(cost_store, is_read_where_the_folder_cannot_be_written) {
  c::cost_store(path()).put(key(1), cost(1));
  fs::permissions(path(), fs::perms{0666});
  fs::permissions(folder(), fs::perms{0555});
  {
    const unprivileged for_now;
    c::cost_store store(path());
    is_readable_alone(store, "its folder is not writable");
    EXPECT_NE(store.check().notes.at(0).find("no program changes it"), std::string::npos);
    EXPECT_SAYS(open(path("new.db")), invalid_argument, "its folder is not writable: Permission denied");
  }
  fs::permissions(folder(), fs::perms{0755});
}

TEST_F(cost_store, is_read_where_another_user_writes) {
  c::cost_store writer(path());
  writer.put(key(1), cost(1));
  fs::permissions(folder(), fs::perms{0555});
  {
    const unprivileged for_now;
    c::cost_store store(path());
    is_readable_alone(store, "cannot be written");
  }
  writer.put(key(2), cost(2));
  {
    const unprivileged for_now;
    EXPECT_EQ(c::cost_store(path()).find(key(2)), cost(2));
  }
  fs::permissions(folder(), fs::perms{0755});
}

TEST_F(cost_store, says_when_it_cannot_be_read) {
  c::cost_store(path()).put(key(1), cost(1));
  fs::permissions(path(), fs::perms{0});
  {
    const unprivileged for_now;
    EXPECT_SAYS(open(path()), invalid_argument, "cannot be read: Permission denied");
  }
  fs::permissions(path(), fs::perms{0644});
}

TEST_F(cost_store, tells_of_a_log_that_cannot_be_read) {
  const pid_t child = start([&] {
    c::cost_store store(path());
    store.put(key(1), cost(1));
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  EXPECT_EQ(end_of(child), 1000 + SIGKILL);
  ASSERT_TRUE(fs::exists(path() + "-wal"));
  fs::remove(path() + "-shm");
  fs::permissions(folder(), fs::perms{0555});
  {
    const unprivileged for_now;
    EXPECT_SAYS(open(path()), invalid_argument, "was left open by a process that ended early");
  }
  fs::permissions(folder(), fs::perms{0755});
  EXPECT_EQ(c::cost_store(path(), c::store_mode::read_only).find(key(1)), cost(1));
  EXPECT_EQ(c::cost_store(path()).find(key(1)), cost(1));
}

TEST_F(cost_store, is_read_where_a_newer_sqlite_alone_may_write) {
  c::cost_store(path()).put(key(1), cost(1));
  std::string pages = bytes_of(path());
  pages.at(18) = 3;  // the "file format write version"
  write_file(path(), pages);
  c::cost_store store(path());
  is_readable_alone(store, "can be written only by a newer SQLite");
}

TEST_F(cost_store, says_when_its_file_was_removed_or_replaced) {
  c::cost_store store(path());
  store.put(key(1), cost(1));
  fs::rename(path(), path("moved.db"));
  EXPECT_SAYS(store.put(key(2), cost(2)), environment, "was moved, removed or replaced");
  c::cost_store(path()).put(key(3), cost(3));
  EXPECT_SAYS(store.put(key(2), cost(2)), environment, "was moved, removed or replaced");
  EXPECT_EQ(c::cost_store(path()).list().size(), 1U);
}

/// A VFS of SQLite's that has no shared memory, as on some file systems, is the default for the while.
class without_shared_memory {
 public:
  explicit without_shared_memory(const char* vfs = "unix-dotfile") : usual_(sqlite3_vfs_find(nullptr)) {
    sqlite3_vfs_register(sqlite3_vfs_find(vfs), 1);
  }
  without_shared_memory(const without_shared_memory&) = delete;
  without_shared_memory& operator=(const without_shared_memory&) = delete;
  ~without_shared_memory() { sqlite3_vfs_register(usual_, 1); }

 private:
  sqlite3_vfs* usual_;
};

TEST_F(cost_store, does_without_a_write_ahead_log) {
  c::cost_store(path("logged.db")).put(key(1), cost(1));
  c::cost_store(path("read.db")).put(key(1), cost(1));
  const without_shared_memory for_now;
  for (const char* name : {"new.db", "logged.db"}) {
    c::cost_store store(path(name));
    store.put(key(1), cost(1));
    store.put(key(2), cost(2));
    EXPECT_EQ(store.find(key(1)), cost(1));
    EXPECT_EQ(c::cost_store(path(name)).find(key(2)), cost(2));
    const c::store_report report = store.check();
    EXPECT_EQ(report.journal, "delete");
    ASSERT_EQ(report.notes.size(), 1U);
    EXPECT_NE(report.notes[0].find("no write-ahead log"), std::string::npos) << report.notes[0];
    EXPECT_EQ(report.problems, std::vector<std::string>{});
  }
  c::cost_store read(path("read.db"), c::store_mode::read_only);
  is_readable_alone(read, "is opened read-only");
}

// ---- Full disks ---------------------------------------------------------------------------------------------------

/// An export of two megabytes, of keys that the tests of full disks do not put.
std::string large_export(const std::string& path) {
  c::cost_store store(path);
  store.put(key(200'000), cost(0));
  const std::string one = store.export_json();
  const std::size_t begin = one.find('[') + 1, end = one.find(']', begin);
  const std::size_t choice = one.find("\"choice\": "), after = one.find(',', choice);
  EXPECT_LT(after, end) << one;
  std::string text = one.substr(0, begin);
  for (int i = 1; i <= 3000; ++i)
    text += (i == 1 ? "" : ",") + one.substr(begin, choice - begin) + "\"choice\": 77" + std::to_string(i) +
            one.substr(after, end - after);
  return text + one.substr(end);
}

/// Puts until there is no more room; everything put before is there, and after that as well.
int fill_up(const std::string& path, const std::string& more, const std::function<void()>& make_room) {
  std::uint64_t put = 0;
  {
    c::cost_store store(path);
    std::string said;
    try {
      for (; put < 100'000; ++put) store.put(key(put), cost(put));
    } catch (const c::error& e) {
      EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(c::error_kind::environment));
      said = e.what();
    }
    EXPECT_NE(said.find("cannot be written: its disk is full"), std::string::npos) << said;
    EXPECT_GT(put, 10U);
    for (std::uint64_t i = 0; i < put; ++i) EXPECT_EQ(store.find(key(i)), cost(i));
    EXPECT_SAYS(store.import_json(more, "f.json"), environment, "cannot be written: its disk is full");
    EXPECT_EQ(store.list().size(), put);  // all of an import or nothing
    make_room();
    store.put(key(put), cost(put));
    EXPECT_EQ(store.import_json(more, "f.json").added, 3000U);
    EXPECT_EQ(store.check().problems, std::vector<std::string>{});
  }
  const c::cost_store store(path);
  for (std::uint64_t i = 0; i <= put; ++i) EXPECT_EQ(store.find(key(i)), cost(i));
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST_F(cost_store, keeps_what_it_has_where_files_may_not_grow) {
  const std::string more = large_export(path("more.db"));
  const pid_t child = start([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit before = limit;
    limit.rlim_cur = 300'000;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return fill_up(path(), more, [&] { ::setrlimit(RLIMIT_FSIZE, &before); });
  });
  EXPECT_EQ(end_of(child), 0);
}

TEST_F(cost_store, keeps_what_it_has_on_a_full_disk) {
  fs::create_directory(path("disk"));
  if (::mount("none", path("disk").c_str(), "tmpfs", 0, "size=600k") != 0)
    GTEST_SKIP() << "no right to mount a small disk";
  EXPECT_EQ(fill_up(path("disk/costs.db"), large_export(path("more.db")),
                    [&] { EXPECT_EQ(::mount("none", path("disk").c_str(), "tmpfs", MS_REMOUNT, "size=9m"), 0); }),
            0);
  fs::remove(path("disk/costs.db"));
  EXPECT_EQ(::mount("none", path("disk").c_str(), "tmpfs", MS_REMOUNT, "size=9m"), 0);
  {
    std::ofstream all(path("disk/all"));
    all << std::string(9U << 20, 'x');
  }
  EXPECT_SAYS(open(path("disk/costs.db")), environment, "its disk is full");
  EXPECT_EQ(::umount(path("disk").c_str()), 0);
}

// ---- Several processes, and their deaths --------------------------------------------------------------------------

void kill_while_putting(const std::string& path, int rounds) {
  std::mt19937_64 random(20260101);
  std::uint64_t next = 0;
  std::size_t acknowledged = 0;
  for (int round = 0; round < rounds; ++round) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t child = start([&] {
      ::close(told[0]);
      c::cost_store store(path);
      for (std::uint64_t i = next;; ++i) {
        store.put(key(i), cost(i));
        if (i % 5 == 0) store.put(run_key(i), run(i));
        if (::write(told[1], &i, sizeof(i)) != sizeof(i)) return 1;
      }
    });
    ::close(told[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 25'000));
    ::kill(child, SIGKILL);
    EXPECT_EQ(end_of(child), 1000 + SIGKILL);
    std::vector<std::uint64_t> done;
    for (std::uint64_t i = 0; ::read(told[0], &i, sizeof(i)) == sizeof(i);) done.push_back(i);
    ::close(told[0]);
    acknowledged += done.size();

    const c::cost_store store(path);
    for (const std::uint64_t i : done) {
      ASSERT_EQ(store.find(key(i)), cost(i)) << "round " << round;
      if (i % 5 == 0) { ASSERT_EQ(store.find(run_key(i)), run(i)) << "round " << round; }
    }
    if (!done.empty()) next = done.back() + 2;  // the one under way may be there or not
    if (round % 10 == 0) { EXPECT_EQ(store.check().problems, std::vector<std::string>{}); }
  }
  const c::cost_store store(path);
  const c::store_report report = store.check();
  EXPECT_EQ(report.problems, std::vector<std::string>{});
  EXPECT_GE(report.entries.costs, acknowledged);
  EXPECT_LE(report.entries.costs, acknowledged + static_cast<std::size_t>(rounds));
  EXPECT_GT(acknowledged, static_cast<std::size_t>(rounds));  // the kills came in the middle
}

TEST_F(cost_store, loses_nothing_when_its_writer_is_killed) { kill_while_putting(path(), collage_test::cases(100)); }

TEST_F(cost_store, loses_nothing_when_its_writer_is_killed_without_a_log) {
  // The one with lock files takes its own lock for that of a living writer, and leaves the journal of a dead one alone.
  const without_shared_memory for_now("unix-none");
  for (int i = 0; i < 10; ++i) {
    const std::string name = path("costs" + std::to_string(i));
    const pid_t child = start([&] {
      c::cost_store store(name);
      for (std::uint64_t k = 0;; ++k) store.put(key(k), cost(k));
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + 7 * i));
    ::kill(child, SIGKILL);
    EXPECT_EQ(end_of(child), 1000 + SIGKILL);
    const c::cost_store store(name);
    EXPECT_EQ(store.check().problems, std::vector<std::string>{});
    const std::size_t entries = store.list().size();
    for (std::uint64_t k = 0; k < entries; ++k) EXPECT_EQ(store.find(key(k)), cost(k));
  }
}

TEST_F(cost_store, is_made_by_several_processes_at_once) {
  for (int round = 0; round < 20; ++round) {
    const std::string name = path("costs" + std::to_string(round));
    std::vector<pid_t> children;
    for (std::uint64_t p = 0; p < 4; ++p)
      children.push_back(start([&, p] {
        c::cost_store store(name);
        store.put(key(p), cost(p));
        return store.check().journal == "wal" ? 0 : 1;
      }));
    for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
    const c::cost_store store(name);
    for (std::uint64_t p = 0; p < 4; ++p) EXPECT_EQ(store.find(key(p)), cost(p));
  }
}

TEST_F(cost_store, takes_puts_of_four_processes_at_once) {
  std::vector<pid_t> children;
  for (std::uint64_t p = 0; p < 4; ++p)
    children.push_back(start([&, p] {
      c::cost_store store(path());
      for (std::uint64_t i = 0; i < 200; ++i) {
        store.put(key(p * 200 + i), cost(i));
        if (store.find(key(p * 200 + i)) != cost(i)) return 2;
      }
      return 0;
    }));
  for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
  const c::cost_store store(path());
  for (std::uint64_t i = 0; i < 800; ++i) EXPECT_EQ(store.find(key(i)), cost(i % 200));
  EXPECT_EQ(store.check().problems, std::vector<std::string>{});
}

TEST_F(cost_store, four_processes_measure_nothing_twice) {
  constexpr std::uint64_t places = 40;
  std::vector<pid_t> children;
  for (unsigned p = 0; p < 4; ++p)
    children.push_back(start([&, p] {
      c::cost_store store(path());
      std::vector<std::uint64_t> order(places);
      for (std::uint64_t i = 0; i < places; ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), std::mt19937(p));
      const int log = ::open(path("measured").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      for (const std::uint64_t i : order) {
        if (store.find(key(i))) continue;
        const c::measuring_lock held = store.measuring();
        if (!held) return 2;
        if (store.find(key(i))) continue;
        const auto byte = static_cast<char>(i);
        if (::write(log, &byte, 1) != 1) return 3;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        store.put(key(i), cost(i));
      }
      return 0;
    }));
  for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
  std::string measured = bytes_of(path("measured"));
  EXPECT_EQ(measured.size(), places);
  std::ranges::sort(measured);
  EXPECT_EQ(std::ranges::adjacent_find(measured), measured.end());
  EXPECT_EQ(c::cost_store(path()).list().size(), places);
}

TEST_F(cost_store, one_measures_and_others_wait_and_say_for_whom) {
  c::cost_store store(path());
  int told[2], go[2];
  ASSERT_EQ(::pipe(told), 0);
  ASSERT_EQ(::pipe(go), 0);
  const auto hold = [&] {
    const pid_t child = start([&] {
      c::cost_store other(path());
      const c::measuring_lock held = other.measuring();
      char byte = held ? 'h' : 'n';
      if (::write(told[1], &byte, 1) != 1) return 1;
      return ::read(go[0], &byte, 1) == 1 ? 0 : 2;
    });
    char byte = 0;
    EXPECT_EQ(::read(told[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'h');
    return child;
  };
  pid_t child = hold();
  std::vector<c::measuring_process> seen;
  const c::measuring_lock none = store.measuring([&](const c::measuring_process& other) {
    seen.push_back(other);
    return seen.size() < 4;
  });
  EXPECT_FALSE(none);
  ASSERT_EQ(seen.size(), 4U);
  for (const c::measuring_process& other : seen) EXPECT_EQ(other.pid, child);
  EXPECT_GT(seen.back().waited_s, 0.1);
  EXPECT_THROW(store.measuring([](const c::measuring_process&) -> bool { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(bytes_of(path() + "-measuring"), std::to_string(child) + "\n");  // who gave up left it alone

  // Granted once the other is done, and once it is dead.
  for (const bool dies : {false, true}) {
    if (dies) child = hold();
    bool waited = false;
    const c::measuring_lock held = store.measuring([&](const c::measuring_process&) {
      if (!waited && dies) ::kill(child, SIGKILL);
      if (!waited && !dies) { EXPECT_EQ(::write(go[1], "g", 1), 1); }
      return waited = true;
    });
    EXPECT_TRUE(held);
    EXPECT_TRUE(waited);
    EXPECT_EQ(end_of(child), dies ? 1000 + SIGKILL : 0);
    EXPECT_EQ(bytes_of(path() + "-measuring"), std::to_string(::getpid()) + "\n");
  }
  c::measuring_lock held = store.measuring();
  c::measuring_lock moved = std::move(held);
  EXPECT_FALSE(held);
  EXPECT_TRUE(moved);
  EXPECT_FALSE(store.measuring([](const c::measuring_process&) { return false; }));
  moved = {};
  EXPECT_TRUE(store.measuring([](const c::measuring_process&) { return false; }));
  for (const int file : {told[0], told[1], go[0], go[1]}) ::close(file);
}

TEST_F(cost_store, workers_do_not_inherit_the_lock) {
  const c::cost_store store(path());
  const auto start_worker = [] {
    pid_t worker = 0;
    const char* arguments[] = {"sleep", "60", nullptr};
    EXPECT_EQ(::posix_spawnp(&worker, "sleep", nullptr, nullptr, const_cast<char**>(arguments), environ), 0);
    return worker;
  };
  pid_t worker = 0;
  {
    const c::measuring_lock held = store.measuring();
    worker = start_worker();
  }
  EXPECT_TRUE(store.measuring([](const c::measuring_process&) { return false; }));
  ::kill(worker, SIGKILL);
  EXPECT_EQ(end_of(worker), 1000 + SIGKILL);

  // Nor do they keep it when their master dies.
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t master = start([&] {
    const c::cost_store other(path());
    const c::measuring_lock held = other.measuring();
    const pid_t started = start_worker();
    if (::write(told[1], &started, sizeof(started)) != sizeof(started)) return 1;
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  EXPECT_EQ(::read(told[0], &worker, sizeof(worker)), static_cast<ssize_t>(sizeof(worker)));
  EXPECT_EQ(end_of(master), 1000 + SIGKILL);
  EXPECT_TRUE(store.measuring([](const c::measuring_process& other) { return other.waited_s < 10; }));
  EXPECT_EQ(::kill(worker, 0), 0);
  ::kill(worker, SIGKILL);
  ::close(told[0]);
  ::close(told[1]);
}

TEST_F(cost_store, says_what_is_wrong_with_its_lock) {
  const c::cost_store store(path());
  fs::create_directory(path() + "-measuring");
  EXPECT_SAYS(store.measuring(), environment, "Is a directory");
  fs::remove(path() + "-measuring");
  write_file(path() + "-measuring", "no number");
  const c::measuring_lock held = store.measuring();
  EXPECT_TRUE(held);
  write_file(path() + "-measuring", "-12345678901234567890123456789");
  EXPECT_FALSE(store.measuring([](const c::measuring_process& other) {
    EXPECT_EQ(other.pid, 0);
    return false;
  }));
}

TEST_F(cost_store_long, says_when_another_process_never_lets_go) {
  c::cost_store store(path());
  store.put(key(1), cost(1));
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(error_of([&] { store.put(key(2), cost(2)); }, c::error_kind::environment),
            path() + ": has been in use by another process for 10 seconds; wait for that process or end it");
  EXPECT_EQ(store.find(key(1)), cost(1));
  sqlite3_close(db);
  store.put(key(2), cost(2));
}

// ---- Damaged files ------------------------------------------------------------------------------------------------

/// The files of a store as a dead process leaves them.
struct image {
  std::string pages, log;
};

/// Every answer must be what was put, or none, or an error.
class damage {
 public:
  explicit damage(std::string path) : path_(std::move(path)) {
    {
      c::cost_store store(path_);
      for (std::uint64_t i = 0; i < entries; ++i) store.put(key(i), cost(i));
      for (std::uint64_t i = 0; i < runs; ++i) store.put(run_key(i), run(i));
    }
    closed_ = {bytes_of(path_), ""};
    c::cost_store store(path_);
    for (std::uint64_t i = 0; i < 30; ++i) store.put(key(entries + i), cost(entries + i));
    left_ = {bytes_of(path_), bytes_of(path_ + "-wal")};
  }

  void check(int cases, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < cases && !testing::Test::HasFatalFailure(); ++i) {
      image files = random() % 2 == 0 ? closed_ : left_;
      const std::string what = spoil(files, random);
      SCOPED_TRACE("case " + std::to_string(i) + ": " + what);
      for (const char* part : {"", "-wal", "-shm", "-journal"}) fs::remove(path_ + part);
      write_file(path_, files.pages);
      if (!files.log.empty()) write_file(path_ + "-wal", files.log);
      const auto begun = std::chrono::steady_clock::now();
      use(random() % 4 == 0 ? c::store_mode::read_only : c::store_mode::read_write);
      EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60));  // on a busy machine
    }
    std::printf("%zu refused to open, %zu failed later, %zu incomplete, %zu with damaged entries, %zu right\n",
                refused_, failed_, incomplete_, with_damaged_, right_);
    EXPECT_GT(refused_, 0U);
    EXPECT_GT(failed_, 0U);
    EXPECT_GT(incomplete_, 0U);
    EXPECT_GT(with_damaged_, 0U);
    EXPECT_GT(right_, 0U);
  }

 private:
  static constexpr std::uint64_t entries = 150, runs = 12;

  static std::string spoil(image& files, std::mt19937_64& random) {
    std::string& bytes = !files.log.empty() && random() % 2 == 0 ? files.log : files.pages;
    const std::string where = &bytes == &files.log ? " of the log" : " of the file";
    const std::size_t at = random() % bytes.size();
    switch (random() % 7) {
      case 0: bytes.resize(at); return "cut at byte " + std::to_string(at) + where;
      case 1: {
        const std::size_t page = at / 4096 * 4096, end = std::min(page + 4096, bytes.size());
        std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(page), bytes.begin() + static_cast<std::ptrdiff_t>(end),
                  '\0');
        return "no page at " + std::to_string(page) + where;
      }
      case 2: {
        const std::size_t page = at / 4096 * 4096, other = random() % bytes.size() / 4096 * 4096;
        for (std::size_t i = 0; i < 4096 && std::max(page, other) + i < bytes.size(); ++i)
          bytes[page + i] = bytes[other + i];
        return "page " + std::to_string(other) + " at " + std::to_string(page) + where;
      }
      case 3: {
        const std::size_t count = 1 + random() % 64;
        for (std::size_t i = 0; i < count && at + i < bytes.size(); ++i) bytes[at + i] = static_cast<char>(random());
        return std::to_string(count) + " bytes at " + std::to_string(at) + where;
      }
      case 4: {  // what leads from page to page
        const std::size_t page = at / 4096 * 4096,
                          byte = std::min(page + (page == 0 ? 100U : 0U) + random() % 32, bytes.size() - 1);
        bytes[byte] = static_cast<char>(random());
        return "header byte " + std::to_string(byte) + where;
      }
      case 5: {
        const std::size_t byte = random() % std::min<std::size_t>(100, bytes.size());
        bytes[byte] = static_cast<char>(random());
        return "first bytes: " + std::to_string(byte) + where;
      }
      default: {
        const std::size_t count = 1 + random() % 8;
        for (std::size_t i = 0; i < count; ++i)
          bytes[random() % bytes.size()] ^= static_cast<char>(1U << (random() % 8));
        return std::to_string(count) + " bits" + where;
      }
    }
  }

  /// Whether the action ended without an error. An error must be a sentence of ours.
  bool tries(const std::function<void()>& action) {
    try {
      action();
    } catch (const c::error& e) {
      const std::string said = e.what();
      EXPECT_EQ(said.rfind(path_, 0), 0U) << said;
      EXPECT_NE(said.find("; "), std::string::npos) << said;
      EXPECT_EQ(said.find("please report"), std::string::npos) << said;
      any_failed_ = true;
      return false;
    }
    return true;
  }

  void use(c::store_mode mode) {
    any_failed_ = false;
    std::optional<c::cost_store> store;
    if (!tries([&] { store.emplace(path_, mode); })) {
      ++refused_;
      return;
    }
    std::size_t found = 0;
    for (std::uint64_t i = 0; i < entries + 30; ++i)
      tries([&] {
        const std::optional<c::stored_cost> answer = store->find(key(i));
        if (answer) { EXPECT_EQ(answer, cost(i)); }
        found += answer.has_value() ? 1U : 0U;
      });
    for (std::uint64_t i = 0; i < runs; ++i)
      tries([&] {
        const std::optional<c::stored_run> answer = store->find(run_key(i));
        if (answer) { EXPECT_EQ(answer, run(i)); }
        found += answer.has_value() ? 1U : 0U;
      });
    tries([&] {
      for (const c::stored_entry& e : store->list()) {
        EXPECT_LT(e.key.computes.at(0), entries + 30);
        EXPECT_EQ(e.key, key(e.key.computes.at(0)));
        EXPECT_EQ(e.cost, cost(e.key.computes.at(0)));
      }
      for (const c::stored_run_entry& e : store->list_runs()) EXPECT_EQ(e.run, run(e.key.network - run_key(0).network));
    });
    bool sound = false;
    std::size_t damaged = 0;
    tries([&] {
      const c::store_report report = store->check();
      sound = report.problems.empty();
      damaged = report.damaged;
    });
    std::string text;
    tries([&] { text = store->export_json(); });
    if (store->writable()) {
      for (std::uint64_t i = 0; i < 20; ++i)
        tries([&] {
          store->put(key(1000 + i), cost(i));
          const std::optional<c::stored_cost> answer = store->find(key(1000 + i));
          // An index that is damaged may not lead there.
          if (answer) { EXPECT_EQ(answer, cost(i)); }
          if (sound) { EXPECT_TRUE(answer.has_value()); }
        });
      tries([&] { store->remove({.refused = true}); });
      tries([&] { store->remove_damaged(); });
      if (!text.empty()) tries([&] { store->import_json(text, path_); });
    }
    if (sound) { EXPECT_FALSE(any_failed_); }
    if (damaged != 0) ++with_damaged_;
    if (any_failed_) ++failed_;
    else if (found < entries + runs) ++incomplete_;
    else ++right_;
    store.reset();
    tries([&] { c::cost_store(path_).find(key(1)); });
  }

  std::string path_;
  image closed_, left_;
  bool any_failed_ = false;
  std::size_t refused_ = 0, failed_ = 0, incomplete_ = 0, with_damaged_ = 0, right_ = 0;
};

TEST_F(cost_store, a_damaged_file_gives_a_sentence_or_a_right_answer) {
  damage(path()).check(collage::detail::is_watched ? 50 : 100, 1);
}
TEST_F(cost_store_long, a_damaged_file_gives_a_sentence_or_a_right_answer) { damage(path()).check(1000, 2); }

// Each page of a chain names the next one hundreds of times: to read all that would take years.
TEST_F(cost_store, pages_that_lead_to_the_same_pages_end) {
  {
    c::cost_store store(path());
    for (std::uint64_t i = 0; i < 3000; ++i) store.put(key(i), cost(i));
  }
  std::string pages = bytes_of(path());
  const auto read = [&](std::size_t at, std::size_t bytes) {
    std::size_t number = 0;
    for (std::size_t i = 0; i < bytes; ++i) number = number << 8U | static_cast<unsigned char>(pages.at(at + i));
    return number;
  };
  std::vector<std::size_t> interior;  // of tables; the root comes first
  for (std::size_t page = 4096; page < pages.size(); page += 4096)
    if (read(page, 1) == 5) interior.push_back(page);
  ASSERT_FALSE(interior.empty());
  const std::size_t root = interior.front();
  EXPECT_GT(read(root + 3, 2), 100U);
  constexpr std::size_t depth = 8;
  std::vector<std::size_t> chain{root};
  for (std::size_t page = pages.size() - 4096; chain.size() < depth; page -= 4096)
    if (page != root) chain.push_back(page);
  for (std::size_t i = 1; i + 1 < depth; ++i) pages.replace(chain[i], 4096, pages.substr(root, 4096));
  std::size_t leaf = 4096;
  while (read(leaf, 1) != 13 || read(leaf + 3, 2) == 0) leaf += 4096;
  pages.replace(chain.back(), 4096, pages.substr(leaf, 4096));
  for (std::size_t i = 0; i + 1 < depth; ++i) {
    const std::size_t page = chain[i], next = chain[i + 1] / 4096 + 1;
    const auto name_next = [&](std::size_t at) {
      for (std::size_t b = 0; b < 4; ++b) pages.at(at + b) = static_cast<char>(next >> (8 * (3 - b)));
    };
    name_next(page + 8);
    for (std::size_t cell = 0; cell < read(page + 3, 2); ++cell) name_next(page + read(page + 12 + 2 * cell, 2));
  }
  write_file(path(), pages);
  c::cost_store store(path());
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_SAYS(store.list(), environment, "is damaged (");
  EXPECT_SAYS(store.remove({.text = "nothing like it"}), environment, "is damaged (");
  EXPECT_SAYS(store.export_json(), environment, "is damaged (");
  EXPECT_FALSE(store.check().problems.empty());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60));
}

TEST_F(cost_store, the_smallest_entries_are_read_and_checked) {
  std::string text = R"({"format": "collage costs", "version": 1, "runs": [], "costs": [)";
  for (int i = 1; i <= 20'000; ++i)
    text +=
        std::string(i == 1 ? "" : ",") + R"({"threads": )" + std::to_string(i) +
        R"(, "machine": "", "waiting": "", "precision": "", "backend": "", "library": "", "pattern": "", "choice": 0,
             "computes": "", "label": "", "kernel": "", "refusal": "", "median_ms": 0, "low_ms": 0, "high_ms": 0,
             "sure_low_ms": 0, "sure_high_ms": 0, "samples": 0, "how": "", "when_s": 1})";
  c::cost_store store(path());
  EXPECT_EQ(store.import_json(text + "]}", "f.json").added, 20'000U);
  EXPECT_EQ(store.list().size(), 20'000U);
  EXPECT_EQ(store.check().problems, std::vector<std::string>{});
  EXPECT_EQ(store.remove_damaged(), 0U);
  EXPECT_EQ(store.remove({.before_s = 2}).costs, 20'000U);
}

TEST_F(cost_store, pages_damaged_while_it_is_open_give_a_sentence) {
  c::cost_store store(path());
  for (std::uint64_t i = 0; i < 3000; ++i) store.put(key(i), cost(i));
  sql(path(), "PRAGMA wal_checkpoint(TRUNCATE)");
  // By its own descriptor, so that this process's locks stay. The first page stays as well.
  const pid_t child = start([&] {
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    const auto size = static_cast<std::size_t>(fs::file_size(path()));
    file.seekp(4096);
    file << std::string(size - 4096, '\x5A');
    file.close();
    return file ? 0 : 1;
  });
  ASSERT_EQ(end_of(child), 0);
  sql(path("other.db"), "CREATE TABLE t (x)");
  std::size_t failed = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    try {
      const std::optional<c::stored_cost> answer = store.find(key(i));
      if (answer) {  // from memory
        EXPECT_EQ(answer, cost(i));
      }
    } catch (const c::error& e) {
      ++failed;
      EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(c::error_kind::environment));
      EXPECT_NE(std::string(e.what()).find("is damaged ("), std::string::npos) << e.what();
    }
  }
  EXPECT_GT(failed, 0U);
  EXPECT_SAYS(store.list(), environment, "is damaged (");
  EXPECT_FALSE(store.check().problems.empty());
}

}  // namespace measure_store_test
