// The built-in networks against descriptions made from ONNX files of the same networks.
#include <collage/graph/graph.hpp>
#include <collage/zoo/all.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::zoo {

// For GoogleTest: what a parameter is called.
void PrintTo(const network& which, std::ostream* to) { *to << which.name; }

}  // namespace collage::inline v0::zoo

namespace zoo_zoo_test {

namespace c = collage;

std::string text_of(const c::shape& list) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(list[i]);
  return text + "]";
}

std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", number);
  return text;
}

void append_attribute(void* text, const c::attribute_value& a) {
  using tag = c::attribute_value::tag;
  std::string& line = *static_cast<std::string*>(text);
  line += std::string(" ") + a.name + "=";
  switch (a.what) {
    case tag::boolean: line += a.integer != 0 ? "true" : "false"; break;
    case tag::integer: line += std::to_string(a.integer); break;
    case tag::real: line += text_of(a.real); break;
    case tag::list: line += text_of(a.list); break;
    case tag::reals:
      for (const double number : a.reals) line += (line.back() == '=' ? "[" : ",") + text_of(number);
      line += a.reals.empty() ? "[]" : "]";
      break;
    case tag::text: line += a.text.text; break;
  }
}

// The form of the files in tests/data/zoo, described at the head of each.
std::vector<std::string> description(const c::graph& g) {
  const c::graph_view view = g.view();
  std::map<std::uint32_t, std::size_t> constants;  // numbered by first use
  const auto operand = [&](std::uint32_t v) {
    const c::value_record& record = g.at(v);
    if (record.role == c::value_role::input) return g.value_name(v);
    if (record.role == c::value_role::computed) return "%" + std::to_string(record.producer);
    const std::size_t number = constants.emplace(v, constants.size()).first->second;
    std::string text = "c" + std::to_string(number) + text_of(record.type.dims);
    if (record.type.rank() == 0) text += "=" + text_of(record.scalar);
    return text;
  };
  const auto list = [&](std::span<const std::uint32_t> values) {
    std::string text;
    for (const std::uint32_t v : values) text += (text.empty() ? "" : ", ") + operand(v);
    return text;
  };

  std::vector<std::string> lines;
  for (const std::uint32_t v : g.inputs()) lines.push_back(g.value_name(v) + " " + text_of(g.type_of(v).dims));
  for (std::uint32_t n = 0; n < view.node_count(); ++n) {
    std::string line = std::to_string(n) + " " + g.node(n).kind->name;
    g.node(n).kind->list(view.words_of(n), {&line, append_attribute});
    lines.push_back(line + " | " + list(view.inputs_of(n)) + " -> " + text_of(g.type_of(view.output_of(n)).dims));
  }
  for (std::size_t i = 0; i < g.outputs().size(); ++i)
    lines.push_back(g.output_name(i) + " " + operand(g.outputs()[i]));
  return lines;
}

std::vector<std::string> stored_description(const std::string& name) {
  std::vector<std::string> lines;
  std::ifstream file(std::string(COLLAGE_TEST_DATA "/zoo/") + name + ".txt");
  for (std::string line; std::getline(file, line);)
    if (line.empty() || line[0] != '#') lines.push_back(line);
  return lines;
}

c::graph build(const char* name) {
  c::graph_builder builder;
  EXPECT_TRUE(c::zoo::build(name, builder)) << name;
  return builder.finish();
}

class zoo : public testing::TestWithParam<c::zoo::network> {};

TEST_P(zoo, equals_the_onnx_file) {
  const std::vector<std::string> expected = stored_description(GetParam().name);
  ASSERT_FALSE(expected.empty()) << "no description of " << GetParam().name;
  const std::vector<std::string> built = description(build(GetParam().name));
  for (std::size_t i = 0; i < expected.size() && i < built.size(); ++i)
    ASSERT_EQ(built[i], expected[i]) << "the first difference, in line " << i + 1;
  ASSERT_EQ(built.size(), expected.size()) << "one goes on where the other ends";
}

TEST_P(zoo, constants_differ) {
  const c::graph g = build(GetParam().name);
  for (std::uint32_t v = 0; v < g.values().size(); ++v) {
    if (g.at(v).role != c::value_role::constant) continue;
    EXPECT_GT(g.at(v).uses, 0U) << g.value_name(v) << " is never read";
    if (g.at(v).type.rank() == 0) continue;
    const c::uniform range = g.constant(v).fill;
    EXPECT_LT(range.low, range.high) << g.value_name(v);
    // Labels cut what is too long, and then two layers could get the same weights.
    EXPECT_LT(g.value_name(v).size(), c::label::capacity);
  }
}

INSTANTIATE_TEST_SUITE_P(all, zoo, testing::ValuesIn(c::zoo::networks), [](const auto& tested) {
  std::string name = tested.param.name;
  for (char& letter : name)
    if (letter == '-') letter = '_';
  return name;
});

TEST(zoo_table, has_the_eight_networks_once) {
  std::set<std::string> names;
  for (const c::zoo::network& entry : c::zoo::networks) {
    names.insert(entry.name);
    EXPECT_STRNE(entry.about, "");
  }
  EXPECT_EQ(names, (std::set<std::string>{"bert-paper", "dcgan-paper", "nasnet-a-paper", "resnet50-3d-paper",
                                          "resnext50-paper", "resnet50", "mobilenet-v2", "bert-base-128"}));
}

TEST(zoo_table, unknown_names_build_nothing) {
  for (const char* name : {"", "resnet", "resnet50 ", "RESNET50", "bert-paper-"}) {
    c::graph_builder builder;
    EXPECT_FALSE(c::zoo::build(name, builder)) << name;
    EXPECT_TRUE(builder.finish().values().empty());
  }
}

}  // namespace zoo_zoo_test
