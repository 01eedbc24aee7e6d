// Random models with symbols, run in a session at several shapes: the shapes of all results are those that the generator expects, and
// their elements those of the reference over the network loaded at these shapes.
#ifdef COLLAGE_HAS_ONNX
#include <gtest/gtest.h>

#include <collage/backends/reference.hpp>
#include <collage/io/onnx.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/buffers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "random_data.hpp"
#include "random_model.hpp"
#include "random_operators.hpp"
#include "running.hpp"
#include "support/effort.hpp"
#include "support/random_numbers.hpp"
#include "support/sessions.hpp"

namespace onnx_random_shapes_test {

namespace c = collage;
using namespace collage_test;

random_model drawn_model(random_numbers& random, bool has_data) {
  random_model m(random, has_data);
  const std::int64_t wanted = random.number(4, 16);
  for (std::int64_t made = 0, tries = 0; made < wanted && tries < 200; ++tries) {
    const bool by_data = has_data && (made == 1 || random.chance(0.15));
    made += by_data ? drawn::by_data[m.pick(std::size(drawn::by_data))](m)
                    : drawn::by_shapes[m.pick(std::size(drawn::by_shapes))](m);
  }
  m.finish();
  return m;
}

c::shape dims_in(const std::vector<numbers_of_runs>& dims, std::size_t run) {
  c::shape s;
  for (const numbers_of_runs& d : dims) s.push_back(d[run]);
  return s;
}

/// The contents of all inputs in a run, by name.
std::map<std::string, c::tensor> contents_in(const random_model& m, std::size_t run, std::mt19937_64& random) {
  std::map<std::string, c::tensor> all;
  for (const drawn_value& v : m.float_inputs()) {
    const c::tensor& t = all.emplace(v.name, c::tensor({c::dtype::f32, dims_in(v.dims, run)})).first->second;
    if (v.name == "data") std::copy(m.data[run].begin(), m.data[run].end(), t.as<float>().begin());
    else c::fill_random(t, random);
  }
  for (const drawn_list& l : m.wanted) {
    std::vector<std::int64_t> list;
    for (const numbers_of_runs& n : l.elements) list.push_back(n[run]);
    all.emplace(l.name, tensor_with<std::int64_t>({std::ssize(list)}, list));
  }
  return all;
}

/// What the reference computes over the network at fixed shapes. Values that decide shapes are bound; if data does, all are.
std::vector<c::oracle_value> expected_of(const std::string& file, const random_model& m, bool has_data,
                                         const std::map<std::string, c::tensor>& contents) {
  c::onnx::load_options options;
  for (const auto& [name, t] : contents) {
    const bool decides = has_data || t.type().type == c::dtype::i64;
    if (decides) options.values.push_back({name, t});
    else options.shapes.push_back({name, t.type().dims});
  }
  const c::graph network = c::onnx::load(file, options);
  std::vector<c::const_tensor_view> inputs;
  for (const std::uint32_t v : network.inputs()) inputs.emplace_back(contents.at(network.value_name(v)));
  EXPECT_EQ(network.outputs().size(), m.output_dims.size());
  return c::evaluate(network, inputs);
}

/// What the models of a test had.
struct variety {
  std::map<std::string, std::size_t> operators;
  std::size_t nodes = 0, empty = 0, staged = 0;

  void add(const random_model& m) {
    for (const auto& n : m.model.graph().node()) ++operators[n.op_type()];
    nodes += static_cast<std::size_t>(m.model.graph().node_size());
    for (const drawn_value& v : m.values)
      for (const numbers_of_runs& d : v.dims)
        if (random_model::least(d) == 0) {
          ++empty;
          return;
        }
  }
};

/// Runs a model at all its shapes, and the first again. Returns what is wrong; empty if nothing is.
std::string fault_of(const random_model& m, bool has_data, std::mt19937_64& random, variety& seen) {
  running run(m.model, {.most_engines = 3});
  for (std::size_t i = 0; i <= random_model::runs; ++i) {
    const std::size_t at = i % random_model::runs;
    const std::map<std::string, c::tensor> contents = contents_in(m, at, random);
    std::vector<c::const_tensor_view> inputs;
    for (const c::open_port& p : run.session.inputs()) inputs.emplace_back(contents.at(p.name));
    const auto outputs = run.context.run(inputs);
    const std::vector<c::oracle_value> expected = expected_of(run.folder.path("a.onnx"), m, has_data, contents);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const std::string where = "run " + std::to_string(at) + ", output " + outputs[o].name + ": ";
      if (const c::shape dims = dims_in(m.output_dims[o], at); outputs[o].contents.type.dims != dims)
        return where + "the shape is " + c::detail::to_string(outputs[o].contents.type.dims) + ", not " +
               c::detail::to_string(dims);
      if (expected[o].type != outputs[o].contents.type) return where + "the reference has another type";
      if (const c::agreement a = c::compare(outputs[o].contents, expected[o]); !a)
        return where + a.why + ": " + std::to_string(a.actual) + ", not " + std::to_string(a.expected);
    }
    for (std::size_t o = 0; o < outputs.size(); ++o)
      for (const drawn_list& l : m.lists)
        if (l.name == outputs[o].name)
          for (std::size_t e = 0; e < l.elements.size(); ++e)
            if (outputs[o].contents.as<std::int64_t>()[e] != l.elements[e][at])
              return "run " + std::to_string(at) + ": list " + l.name + " is wrong";
  }
  if (run.session.state().made > random_model::runs + 1) ++seen.staged;
  return "";
}

void run_models(std::size_t count, bool has_data) {
  const std::uint64_t seed = fresh_seed();
  variety seen;
  for (std::size_t i = 0; i < count; ++i) {
    // Each model has a seed of its own, which COLLAGE_SEED takes as well.
    random_numbers random(seed + i * 0x9E3779B97F4A7C15);
    const random_model m = drawn_model(random, has_data);
    seen.add(m);
    std::string fault;
    try {
      fault = fault_of(m, has_data, random.engine(), seen);
    } catch (const c::error& e) { fault = e.what(); }
    ASSERT_EQ(fault, "") << "COLLAGE_SEED=" << random.seed() << "\n" << text_of(m.model.graph());
  }
  std::cout << count << " models of " << seen.nodes << " nodes; " << seen.empty << " have empty values, " << seen.staged
            << " ran in stages\n";
  // Models of few operators, or of empty values alone, test little.
  if (count < 40) return;
  EXPECT_GT(seen.operators.size(), 25U);
  EXPECT_LT(seen.empty, count * 9 / 10);
  if (has_data) EXPECT_GT(seen.staged, count / 8);
}

TEST(onnx_random_shapes, agree_with_fixed_shapes) { run_models(cases(40), false); }
TEST(onnx_random_shapes_long, agree_with_fixed_shapes) { run_models(400, false); }
TEST(onnx_random_shapes, agree_where_data_decides) { run_models(cases(40), true); }
TEST(onnx_random_shapes_long, agree_where_data_decides) { run_models(400, true); }

}  // namespace onnx_random_shapes_test
#endif
