// The ONNX files in benchmarks/workloads: their weights, and that the built-in networks of the same names compute the
// same. Where this build cannot read ONNX there is nothing to test.
#ifdef COLLAGE_HAS_ONNX
#include <collage/backends/reference.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/onnx.hpp>
#include <collage/run/tensor.hpp>
#include <collage/zoo/all.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <ostream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace zoo_workloads_test {

namespace c = collage;

const std::string folder = COLLAGE_TEST_DATA "/../../benchmarks/workloads/";

/// One line of checksums.txt.
struct checksums {
  std::string file;
  std::size_t tensors = 0, bytes = 0;
  std::string crc, first_tensor;
  float first = 0, last = 0;

  friend std::ostream& operator<<(std::ostream& to, const checksums& line) { return to << line.file; }
};

/// Those of the files for which `which` holds.
template <class Which>
std::vector<checksums> stored_checksums(const Which& which) {
  std::vector<checksums> list;
  std::ifstream file(folder + "checksums.txt");
  for (std::string line; std::getline(file, line);) {
    checksums found;
    std::istringstream words(line);
    if (line.empty() || line[0] == '#') continue;
    words >> found.file >> found.tensors >> found.bytes >> found.crc >> found.first_tensor >> found.first >> found.last;
    EXPECT_FALSE(words.fail()) << line;
    if (which(found)) list.push_back(found);
  }
  return list;
}

/// A test's name from a file's or a network's.
std::string test_name(std::string name) {
  name = name.substr(0, name.find('.'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// CRC-32 as in zlib, over several pieces.
class crc32 {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes)
      state_ = (state_ >> 8) ^ table()[(state_ ^ std::to_integer<std::uint32_t>(b)) & 255];
  }
  std::string text() const {
    std::ostringstream digits;
    digits << std::hex << std::setw(8) << std::setfill('0') << ~state_;
    return digits.str();
  }

 private:
  static const std::array<std::uint32_t, 256>& table() {
    static const auto made = [] {
      std::array<std::uint32_t, 256> entries{};
      for (std::uint32_t i = 0; i < 256; ++i) {
        entries[i] = i;
        for (int bit = 0; bit < 8; ++bit) entries[i] = (entries[i] >> 1) ^ (0xEDB88320U & (0U - (entries[i] & 1U)));
      }
      return entries;
    }();
    return made;
  }
  std::uint32_t state_ = 0xFFFFFFFFU;
};

void compare_weights(const checksums& expected) {
  c::graph network = c::onnx::load(folder + expected.file);
  std::vector<std::uint32_t> filled;
  for (std::uint32_t v = 0; v < network.values().size(); ++v)
    if (network.at(v).role == c::value_role::constant && network.constant(v).bytes == nullptr) filled.push_back(v);
  c::fill_constants(network);
  std::sort(filled.begin(), filled.end(),
            [&](std::uint32_t a, std::uint32_t b) { return network.value_name(a) < network.value_name(b); });
  ASSERT_EQ(filled.size(), expected.tensors);
  ASSERT_EQ(network.value_name(filled[0]), expected.first_tensor);
  const std::span<const std::byte> contents = network.bytes_of(filled[0]);
  float first = 0, last = 0;
  std::memcpy(&first, contents.data(), 4);
  std::memcpy(&last, contents.last(4).data(), 4);
  EXPECT_EQ(first, expected.first);
  EXPECT_EQ(last, expected.last);
  std::size_t bytes = 0;
  crc32 sum;
  for (const std::uint32_t v : filled) {
    bytes += network.bytes_of(v).size();
    sum.add(network.bytes_of(v));
  }
  EXPECT_EQ(bytes, expected.bytes);
  EXPECT_EQ(sum.text(), expected.crc);
}

class workloads : public testing::TestWithParam<checksums> {};
class workloads_long : public testing::TestWithParam<checksums> {};

TEST_P(workloads, weights_are_filled_by_the_rule) { compare_weights(GetParam()); }
TEST_P(workloads_long, weights_are_filled_by_the_rule) { compare_weights(GetParam()); }

constexpr std::size_t few_bytes = std::size_t{32} << 20;
const auto file_name = [](const auto& tested) { return test_name(tested.param.file); };
INSTANTIATE_TEST_SUITE_P(small, workloads,
                         testing::ValuesIn(stored_checksums([](const checksums& f) { return f.bytes <= few_bytes; })),
                         file_name);
INSTANTIATE_TEST_SUITE_P(large, workloads_long,
                         testing::ValuesIn(stored_checksums([](const checksums& f) { return f.bytes > few_bytes; })),
                         file_name);

TEST(workload_files, are_eleven) {
  EXPECT_EQ(stored_checksums([](const checksums&) { return true; }).size(), 11U);
  for (const c::zoo::network& n : c::zoo::networks)
    EXPECT_EQ(stored_checksums([&](const checksums& f) { return f.file == std::string(n.name) + ".onnx"; }).size(), 1U);
}

TEST(workload_files, small_tensors_keep_their_values) {
  const c::graph network = c::onnx::load(folder + "bert-paper.onnx");
  std::set<std::string> found;
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    const std::string& name = network.value_name(v);
    if (name != "0.q.bias" && name != "0.n1.weight") continue;
    found.insert(name);
    float first = 0;
    std::memcpy(&first, network.bytes_of(v).data(), 4);
    EXPECT_EQ(first, name == "0.q.bias" ? -0.0610489249F : 1.0F) << name;
  }
  EXPECT_EQ(found.size(), 2U);
}

// The built-in networks -----------------------------------------------------------------------------------------------

/// Gives a built-in network the constants of a file, node by node.
void take_constants(c::graph& built, const c::graph& file) {
  ASSERT_EQ(built.nodes().size(), file.nodes().size());
  for (std::uint32_t n = 0; n < built.nodes().size(); ++n) {
    ASSERT_STREQ(built.node(n).kind->name, file.node(n).kind->name) << built.node_name(n);
    const std::span<const std::uint32_t> mine = built.view().inputs_of(n), its = file.view().inputs_of(n);
    ASSERT_EQ(mine.size(), its.size()) << built.node_name(n);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      ASSERT_EQ(built.view().is_constant(mine[i]), file.view().is_constant(its[i])) << built.node_name(n);
      if (!built.view().is_constant(mine[i])) continue;
      ASSERT_EQ(built.type_of(mine[i]), file.type_of(its[i])) << built.value_name(mine[i]);
      const c::constant_data &old = built.constant(mine[i]), &given = file.constant(its[i]);
      if (old.bytes == nullptr) {
        built.set_bytes(mine[i], given.bytes);
      } else {  // a number of the network's own, or shared by several nodes
        const std::size_t bytes = built.bytes_of(mine[i]).size();
        EXPECT_EQ(std::memcmp(old.bytes.get(), given.bytes.get(), bytes), 0) << built.value_name(mine[i]);
      }
    }
  }
}

void compare_results(const std::string& name) {
  c::graph_builder builder;
  ASSERT_TRUE(c::zoo::build(name.c_str(), builder));
  c::graph built = builder.finish(), file = c::onnx::load(folder + name + ".onnx");
  c::fill_constants(file);
  ASSERT_NO_FATAL_FAILURE(take_constants(built, file));
  c::tensor input(built.type_of(built.inputs()[0]));
  ASSERT_EQ(input.type(), file.type_of(file.inputs()[0]));
  c::fill_uniform(input.as<float>(), "input", {-1, 1});
  const std::vector<c::const_tensor_view> views = {input};
  const std::vector<double> a = evaluate(built, views)[0].real, b = evaluate(file, views)[0].real;
  ASSERT_EQ(a.size(), b.size());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(std::isfinite(b[i]));
    largest = std::max(largest, std::abs(b[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(difference, 1e-9 * largest);
}

class zoo_workloads : public testing::TestWithParam<const char*> {};
class zoo_workloads_long : public testing::TestWithParam<const char*> {};

TEST_P(zoo_workloads, compute_what_the_file_computes) { compare_results(GetParam()); }
TEST_P(zoo_workloads_long, compute_what_the_file_computes) { compare_results(GetParam()); }

std::vector<const char*> built_in() {
  std::vector<const char*> names;
  for (const c::zoo::network& n : c::zoo::networks) names.push_back(n.name);
  return names;
}
const auto network_name = [](const auto& tested) { return test_name(tested.param); };
INSTANTIATE_TEST_SUITE_P(small, zoo_workloads, testing::Values("bert-paper", "mobilenet-v2"), network_name);
INSTANTIATE_TEST_SUITE_P(all, zoo_workloads_long, testing::ValuesIn(built_in()), network_name);

}  // namespace zoo_workloads_test
#endif
