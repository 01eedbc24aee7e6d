// How Einsum and quantised products are lowered, against sums over all indices; and what their rules refuse.
#ifdef COLLAGE_HAS_ONNX
#include <algorithm>
#include <cmath>
#include <collage/io/onnx.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "support/reference_check.hpp"
#include "writer.hpp"

namespace onnx_lower_algebra_test {

using namespace collage_test;
using namespace collage_test::reference;
using proto::TensorProto;

/// A model of one node whose operands, all float64, are inputs.
proto::ModelProto model_of(const std::string& operator_type, const std::vector<shape>& operands,
                           const std::vector<proto::AttributeProto>& attributes, std::int64_t opset = 17) {
  proto::ModelProto model = new_model(opset);
  std::vector<std::string> names;
  for (const shape& dims : operands) {
    names.push_back("x" + std::to_string(names.size()));
    add_input(*model.mutable_graph(), names.back(), {dims.begin(), dims.end()}, TensorProto::DOUBLE);
  }
  add_node(*model.mutable_graph(), operator_type, names, {"y"}, attributes);
  add_output(*model.mutable_graph(), "y", {}, TensorProto::DOUBLE);
  return model;
}

oracle_value computed(const proto::ModelProto& model, const std::vector<oracle_value>& inputs) {
  const model_folder folder;
  const collage::graph network = collage::onnx::load(folder.write(model));
  std::vector<collage::const_tensor_view> views;
  for (const oracle_value& x : inputs) views.push_back({x.real.data(), x.type});
  return collage::evaluate(network, views).at(0);
}

bool is_refused(const proto::ModelProto& model) {
  const model_folder folder;
  return message_of([&] { (void)collage::onnx::load(folder.write(model)); }) != "no error";
}

/// Sums over every index of every label. Terms and result are spelled without ellipses.
oracle_value summed(const std::vector<std::string>& terms, const std::string& result,
                    const std::vector<oracle_value>& x) {
  std::map<char, std::int64_t> extents;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t d = 0; d < terms[k].size(); ++d) {
      std::int64_t& extent = extents.emplace(terms[k][d], 1).first->second;
      if (extent == 1) extent = x[k].type.dims[d];
    }
  shape all, result_dims;
  std::string labels;
  for (const auto& [label, extent] : extents) {
    labels += label;
    all.push_back(extent);
  }
  for (const char label : result) result_dims.push_back(extents.at(label));
  oracle_value y(collage::tensor_type{dtype::f64, result_dims});
  for_each_index(all, [&](const multi_index& i) {
    const auto index_of = [&](const std::string& term) {
      multi_index index;
      for (const char label : term) index.push_back(i[labels.find(label)]);
      return index;
    };
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k) product *= x[k].real[at(x[k].type.dims, index_of(terms[k]))];
    y.real[at(result_dims, index_of(result))] += product;
  });
  return y;
}

struct equation_case {
  const char* equation;
  std::vector<std::string> terms;  ///< the same without ellipses, which stand for XY here
  std::string result;
};

TEST(onnx_einsum, agrees_with_sums_over_all_indices) {
  random_source random;
  const equation_case cases[] = {{"ij,jk->ik", {"ij", "jk"}, "ik"},
                                 {"ij,jk", {"ij", "jk"}, "ik"},
                                 {"ba", {"ba"}, "ab"},
                                 {"ii", {"ii"}, ""},
                                 {"ii->i", {"ii"}, "i"},
                                 {"iji->j", {"iji"}, "j"},
                                 {"ijij -> ji", {"ijij"}, "ji"},
                                 {"iii->i", {"iii"}, "i"},
                                 {"ij->", {"ij"}, ""},
                                 {"i,j->ij", {"i", "j"}, "ij"},
                                 {"ij,ij->ij", {"ij", "ij"}, "ij"},
                                 {"ij,ij", {"ij", "ij"}, ""},
                                 {"bhqk,bkhd->bqhd", {"bhqk", "bkhd"}, "bqhd"},
                                 {"bhid,bhjd->bhij", {"bhid", "bhjd"}, "bhij"},
                                 {"kb,kc->bc", {"kb", "kc"}, "bc"},
                                 {"ab,bc,cd->ad", {"ab", "bc", "cd"}, "ad"},
                                 {"a,a,a->a", {"a", "a", "a"}, "a"},
                                 {"a,b,ab->", {"a", "b", "ab"}, ""},
                                 {"aab,bcc->ac", {"aab", "bcc"}, "ac"},
                                 {"bi,bj,bij->b", {"bi", "bj", "bij"}, "b"},
                                 {"Ba,aB->B", {"Ba", "aB"}, "B"},
                                 {"...ij,...jk->...ik", {"XYij", "XYjk"}, "XYik"},
                                 {"i...,j...", {"iXY", "jXY"}, "XYij"},
                                 {"i...i->...", {"iXYi"}, "XY"},
                                 {",a->a", {"", "a"}, "a"}};
  for (int round = 0; round < 4; ++round)
    for (const equation_case& c : cases) {
      std::map<char, std::int64_t> extents;
      std::vector<shape> dims;
      std::vector<oracle_value> x;
      for (const std::string& term : c.terms) {
        shape own;
        std::map<char, std::int64_t> used;  // a repeated label has one extent
        for (const char label : term) {
          const std::int64_t extent =
              extents.emplace(label, random.chance(0.05) ? 0 : random.number(1, 4)).first->second;
          own.push_back(used.emplace(label, random.chance(0.15) ? 1 : extent).first->second);
        }
        dims.push_back(own);
        x.push_back(random.tensor(own, dtype::f64));
      }
      SCOPED_TRACE(c.equation);
      expect_same(computed(model_of("Einsum", dims, {attribute("equation", c.equation)}), x),
                  summed(c.terms, c.result, x), c.equation);
    }
}

TEST(onnx_einsum, refuses_equations_that_say_nothing) {
  const std::vector<shape> two{{2, 3}, {3, 4}};
  for (const char* equation : {"", ",", "ij,jk->ik->i", "ij;jk", "ij,jk,kl->il", "ij->ij", "ijk,jk->i", "i,jk->i",
                               "ij,jk->ii", "ij,jk->iz", "i.j,jk->ik", "..ij,jk->ik", "......ij,jk->ik",
                               "...ij,jk->ik...j...", "1j,jk->k", "ij,ik->j", "->", "\xFF,jk->k"})
    EXPECT_TRUE(is_refused(model_of("Einsum", two, {attribute("equation", equation)}))) << equation;
  EXPECT_TRUE(is_refused(model_of("Einsum", {{2, 3, 4}, {3}}, {attribute("equation", "...a,a->a")})));
  EXPECT_TRUE(is_refused(model_of("Einsum", {{2, 3}}, {attribute("equation", "ii->i")})));
  const shape four{1, 1, 1, 1};
  EXPECT_TRUE(
      is_refused(model_of("Einsum", {four, four, four}, {attribute("equation", "abcd,efgh,ijkl->abcdefghijkl")})));
}

TEST(onnx_transforms, invert_each_other) {
  random_source random;
  for (const std::int64_t length : {1, 2, 7, 12}) {
    const oracle_value x = random.tensor({2, length, 3, 2}, dtype::f64);
    const auto transform = [&](const oracle_value& of, std::int64_t inverse) {
      return computed(model_of("DFT", {of.type.dims}, {attribute("axis", 1), attribute("inverse", inverse)}), {of});
    };
    const oracle_value spectrum = transform(x, 0);
    expect_same(transform(spectrum, 1), x, "length " + std::to_string(length));
    // Parseval: as much energy in the spectrum as in the signal.
    double signal = 0, transformed = 0;
    for (const double number : x.real) signal += number * number;
    for (const double number : spectrum.real) transformed += number * number;
    EXPECT_NEAR(transformed, signal * static_cast<double>(length), 1e-9 * transformed);
  }
}

/// Half of the spectrum of a real signal gives the signal back.
TEST(onnx_transforms, invert_half_of_a_spectrum) {
  random_source random;
  for (const std::int64_t length : {2, 7, 12, 13}) {
    const oracle_value x = random.tensor({2, 3, length, 1}, dtype::f64);
    const std::vector<proto::AttributeProto> half{attribute("axis", 2), attribute("onesided", 1)};
    const oracle_value spectrum = computed(model_of("DFT", {x.type.dims}, half), {x});
    EXPECT_EQ(spectrum.type.dims, (shape{2, 3, length / 2 + 1, 2}));
    std::vector<proto::AttributeProto> back = half;
    back.push_back(attribute("inverse", 1));
    proto::ModelProto model = model_of("DFT", {spectrum.type.dims}, back);
    add_initializer(*model.mutable_graph(), tensor_of<std::int64_t>("length", {}, {length}));
    model.mutable_graph()->mutable_node(0)->add_input("length");
    expect_same(computed(model, {spectrum}), x, "length " + std::to_string(length));
    if (length % 2 == 0)  // the length that is meant if none is given
      expect_same(computed(model_of("DFT", {spectrum.type.dims}, back), {spectrum}), x, "usual length");
  }
  EXPECT_TRUE(is_refused(model_of("DFT", {{1, 8, 1}}, {attribute("onesided", 1), attribute("inverse", 1)})));
}

TEST(onnx_transforms, refuse_what_has_no_meaning) {
  const auto refused = [](const shape& dims, const std::vector<proto::AttributeProto>& attributes) {
    return is_refused(model_of("DFT", {dims}, attributes));
  };
  EXPECT_FALSE(refused({1, 8, 1}, {}));
  EXPECT_TRUE(refused({1, 8, 3}, {}));
  EXPECT_TRUE(refused({1, 8, 1}, {attribute("axis", 2)}));
  EXPECT_TRUE(refused({1, 8, 1}, {attribute("axis", 7)}));
  EXPECT_TRUE(refused({1, 0, 1}, {}));
  EXPECT_TRUE(refused({8}, {attribute("axis", 0)}));
  EXPECT_TRUE(refused({1, 8, 2}, {attribute("onesided", 1)}));
  EXPECT_TRUE(refused({1, 100000, 1}, {}));
}

TEST(onnx_quantised_products, are_exact) {
  // 300 products of 255 * 255 are beyond what float32 holds exactly.
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  std::vector<std::uint8_t> row(300, 255), column(300, 255);
  row[0] = 254;
  add_initializer(g, tensor_of<std::uint8_t>("a", {1, 300}, row));
  add_initializer(g, tensor_of<std::uint8_t>("b", {300, 1}, column));
  add_node(g, "MatMulInteger", {"a", "b"}, {"y"});
  add_output(g, "y", {}, TensorProto::INT32);
  EXPECT_EQ(computed(model, {}).integer, std::vector<std::int64_t>{300 * 255 * 255 - 255});
}

}  // namespace onnx_lower_algebra_test
#endif
