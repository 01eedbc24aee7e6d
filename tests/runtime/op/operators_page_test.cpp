// docs/operators.md lists every operator kind as it is described in code.
#include <collage/op/built_in.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

namespace op_operators_page_test {

namespace c = collage;

std::string name_of(c::fusion_kind kind) {
  switch (kind) {
    case c::fusion_kind::elementwise: return "elementwise";
    case c::fusion_kind::broadcast: return "broadcast";
    case c::fusion_kind::injective: return "injective";
    case c::fusion_kind::reduction: return "reduction";
    case c::fusion_kind::anchor: return "anchor";
    case c::fusion_kind::tuple: return "tuple";
    case c::fusion_kind::opaque: return "opaque";
  }
  return "?";
}

std::string operands_of(const c::kind_info& kind) {
  if (kind.inputs.most == c::any_number) return std::to_string(kind.inputs.least) + " or more";
  if (kind.inputs.most == kind.inputs.least) return std::to_string(kind.inputs.least);
  return std::to_string(kind.inputs.least) + " to " + std::to_string(kind.inputs.most);
}

/// The record of a kind's default attributes is not kept in its description; every field reads as zero or empty from
/// zeros, which is enough to learn the names.
std::string attributes_of(const c::kind_info& kind) {
  std::string names;
  const std::uint64_t zeros[c::max_attribute_words] = {};
  const c::attribute_sink sink{&names, [](void* to, const c::attribute_value& value) {
                                 auto& text = *static_cast<std::string*>(to);
                                 text += (text.empty() ? "`" : " `") + std::string(value.name) + "`";
                               }};
  kind.list(std::span<const std::uint64_t>(zeros), sink);
  return names;
}

std::string row_of(const c::kind_info& kind) {
  return "| `" + std::string(kind.name) + "` | " + operands_of(kind) + (kind.commutative ? ", commutative" : "") +
         " | " + attributes_of(kind) + " | " + name_of(kind.fusion) + " |";
}

TEST(operators_page, lists_every_kind) {
  const auto page = std::filesystem::path(COLLAGE_TEST_DATA).parent_path().parent_path() / "docs" / "operators.md";
  std::stringstream text;
  text << std::ifstream(page).rdbuf();
  for (const c::kind_info* kind : c::built_in_kinds)
    EXPECT_NE(text.str().find(row_of(*kind) + "\n"), std::string::npos) << "docs/operators.md lacks this row:\n"
                                                                        << row_of(*kind);
}

TEST(operators_page, every_kind_can_be_evaluated_and_inferred) {
  for (const c::kind_info* kind : c::built_in_kinds) {
    EXPECT_NE(kind->infer, nullptr) << kind->name;
    EXPECT_TRUE(kind->body != nullptr || kind->reference != nullptr)
        << kind->name << " has neither a body nor a reference";
  }
}

}  // namespace op_operators_page_test
