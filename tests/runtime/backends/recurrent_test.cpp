// Recurrent cells: the reference against the definitions written out for one sequence at a time, and portable's and oneDNN's
// kernels against the reference.
#include "support/backend_check.hpp"
#include "support/reference_check.hpp"

#ifdef COLLAGE_HAS_ONEDNN
#include <collage/backends/onednn.hpp>
#endif
#include <collage/backends/portable.hpp>

namespace backends_recurrent_test {

using namespace collage_test::reference;
using collage::recurrent_activation;
using collage::recurrent_direction;

using list = std::vector<double>;

double apply(std::int64_t which, double alpha, double beta, double x) {
  switch (static_cast<recurrent_activation>(which)) {
    case recurrent_activation::sigmoid: return 1 / (1 + std::exp(-x));
    case recurrent_activation::tanh: return std::tanh(x);
    case recurrent_activation::relu: return std::max(x, 0.0);
    case recurrent_activation::affine: return alpha * x + beta;
    case recurrent_activation::leaky_relu: return x < 0 ? alpha * x : x;
    case recurrent_activation::thresholded_relu: return x < alpha ? 0 : x;
    case recurrent_activation::scaled_tanh: return alpha * std::tanh(beta * x);
    case recurrent_activation::hard_sigmoid: return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    case recurrent_activation::elu: return x < 0 ? alpha * (std::exp(x) - 1) : x;
    case recurrent_activation::softsign: return x / (1 + std::fabs(x));
    case recurrent_activation::softplus: return x > 40 ? x : std::log(1 + std::exp(x));
  }
  return not_a_number;
}

/// A cell with everything it reads. Operand 3 is the bias; what is left out is empty.
template <class Kind>
struct cell_case {
  typename Kind::attributes attributes;
  std::vector<oracle_value> in;
  std::int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
};

/// `continuous`: without activations that jump, where rounding would decide between two results.
template <class Kind>
cell_case<Kind> random_case(random_source& random, const Kind&, std::int64_t largest_hidden, bool continuous) {
  cell_case<Kind> c;
  c.attributes.direction = static_cast<recurrent_direction>(random.number(0, 2));
  c.directions = Kind::directions(c.attributes);
  c.steps = random.chance(0.05) ? 0 : random.number(1, 4);
  c.batch = random.chance(0.05) ? 0 : random.chance(0.1) ? 19 : random.number(1, 4);
  c.inputs = random.chance(0.05) ? 0 : random.number(1, 9);
  c.hidden = random.chance(0.03) ? 0 : random.number(1, largest_hidden);
  if (random.chance(0.3)) c.attributes.clip = 0.5;
  if (random.chance(0.5))
    for (std::int64_t i = 0; i < c.directions * Kind::activations; ++i) {
      c.attributes.activations.push_back(random.number(0, 10));
      const bool jumps = c.attributes.activations[static_cast<std::size_t>(i)] ==
                         static_cast<std::int64_t>(recurrent_activation::thresholded_relu);
      c.attributes.alphas.push_back(continuous && jumps ? 0 : 0.25 * static_cast<double>(random.number(1, 3)));
      c.attributes.betas.push_back(0.25 * static_cast<double>(random.number(-2, 3)));
    }
  if constexpr (requires { c.attributes.input_forget; }) c.attributes.input_forget = random.chance(0.3);
  if constexpr (requires { c.attributes.linear_before_reset; }) c.attributes.linear_before_reset = random.chance(0.5);
  const std::int64_t rows = Kind::gates * c.hidden;
  const auto small = [&](const shape& dims) {  // float32 numbers, so that portable reads the same
    oracle_value v = random.tensor(dims);
    for (double& x : v.real) x = static_cast<float>(x / std::sqrt(1.0 + static_cast<double>(c.hidden)));
    return v;
  };
  c.in = {small({c.steps, c.batch, c.inputs}), small({c.directions, rows, c.inputs}),
          small({c.directions, rows, c.hidden}), small({c.directions, 2 * rows}),
          small({c.directions, c.batch, c.hidden})};
  if (Kind::has_cell) c.in.push_back(small({c.directions, c.batch, c.hidden}));
  if (random.chance(0.5)) {
    c.in.push_back(integers({c.batch}, std::vector<std::int64_t>(static_cast<std::size_t>(c.batch)), dtype::i32));
    for (std::int64_t& length : c.in.back().integer) length = random.number(0, c.steps);
    if (Kind::has_cell && random.chance(0.5)) c.in.push_back(small({c.directions, 3 * c.hidden}));
  }
  std::vector<collage::tensor_type> types;
  for (const oracle_value& v : c.in) types.push_back(v.type);
  Kind::normalise(c.attributes, types);
  return c;
}

/// One sequence in one direction, by the definition: fills what it has of the outputs.
template <class Kind>
void run_sequence(const cell_case<Kind>& c, std::int64_t d, std::int64_t b, std::vector<oracle_value>& out) {
  const std::int64_t H = c.hidden;
  const auto element = [&](std::size_t operand, std::initializer_list<std::int64_t> i) {
    const shape& dims = c.in[operand].type.dims;
    std::int64_t linear = 0;
    auto e = dims.begin();
    for (const std::int64_t at : i) linear = linear * *e++ + at;
    return c.in[operand].real[static_cast<std::size_t>(linear)];
  };
  const auto f = [&](std::int64_t which, double x) {
    const auto i = static_cast<std::size_t>(d * Kind::activations + which);
    return apply(c.attributes.activations[i], c.attributes.alphas[i], c.attributes.betas[i], x);
  };
  const auto gate = [&](std::int64_t which, double x) {
    const double limit = c.attributes.clip;
    return f(which, limit > 0 ? std::max(std::min(x, limit), -limit) : x);
  };
  const std::size_t lengths = Kind::has_cell ? 6 : 5;
  const std::int64_t length = c.in.size() > lengths ? c.in[lengths].integer[static_cast<std::size_t>(b)] : c.steps;
  const auto size = static_cast<std::size_t>(H);
  list h, cell;
  for (std::int64_t i = 0; i < H; ++i) h.push_back(element(4, {d, b, i}));
  if (Kind::has_cell)
    for (std::int64_t i = 0; i < H; ++i) cell.push_back(element(5, {d, b, i}));
  for (std::int64_t step = 0; step < length; ++step) {
    const bool backward = d == 1 || c.attributes.direction == recurrent_direction::reverse;
    const std::int64_t t = backward ? length - 1 - step : step;
    const auto from_input = [&](std::int64_t g, std::int64_t i) {
      double sum = element(3, {d, g * H + i});
      for (std::int64_t k = 0; k < c.inputs; ++k) sum += element(1, {d, g * H + i, k}) * element(0, {t, b, k});
      return sum;
    };
    const auto from_hidden = [&](std::int64_t g, std::int64_t i, const list& state) {
      double sum = element(3, {d, (static_cast<std::int64_t>(Kind::gates) + g) * H + i});
      for (std::int64_t k = 0; k < H; ++k) sum += element(2, {d, g * H + i, k}) * state[static_cast<std::size_t>(k)];
      return sum;
    };
    const auto sum = [&](std::int64_t g, std::int64_t i) { return from_input(g, i) + from_hidden(g, i, h); };
    list next(size), next_cell(size);
    for (std::int64_t i = 0; i < H; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if constexpr (Kind::gates == 1) {
        next[at] = gate(0, sum(0, i));
      } else if constexpr (Kind::gates == 3) {
        const double z = gate(0, sum(0, i));
        double n = 0;
        if (c.attributes.linear_before_reset) {
          n = from_input(2, i) + gate(0, sum(1, i)) * from_hidden(2, i, h);
        } else {
          list reset = h;
          for (std::int64_t k = 0; k < H; ++k) reset[static_cast<std::size_t>(k)] *= gate(0, sum(1, k));
          n = from_input(2, i) + from_hidden(2, i, reset);
        }
        next[at] = (1 - z) * gate(1, n) + z * h[at];
      } else {
        const auto peephole = [&](std::int64_t g, double state) {
          return c.in.size() > 7 ? element(7, {d, g * H + i}) * state : 0.0;
        };
        const double input = gate(0, sum(0, i) + peephole(0, cell[at]));
        const double forget = c.attributes.input_forget ? 1 - input : gate(0, sum(2, i) + peephole(2, cell[at]));
        next_cell[at] = forget * cell[at] + input * gate(1, sum(3, i));
        next[at] = gate(0, sum(1, i) + peephole(1, next_cell[at])) * f(2, next_cell[at]);
      }
    }
    h = next;
    cell = next_cell;
    for (std::int64_t i = 0; i < H; ++i)
      out[0].real[static_cast<std::size_t>(((t * c.directions + d) * c.batch + b) * H + i)] =
          h[static_cast<std::size_t>(i)];
  }
  for (std::int64_t i = 0; i < H && length > 0; ++i) {
    const auto to = static_cast<std::size_t>((d * c.batch + b) * H + i);
    out[1].real[to] = h[static_cast<std::size_t>(i)];
    if (Kind::has_cell) out[2].real[to] = cell[static_cast<std::size_t>(i)];
  }
}

template <class Kind>
std::vector<oracle_value> by_reference(const cell_case<Kind>& c) {
  std::vector<oracle_value> in = c.in;
  return collage::evaluate_node(collage::kind_of<Kind>, collage::to_words(c.attributes).list(), in);
}

template <class Kind>
void check_reference(const Kind& kind) {
  random_source random;
  for (int round = 0; round < 60; ++round) {
    const cell_case<Kind> c = random_case(random, kind, 6, false);
    const std::vector<oracle_value> got = by_reference(c);
    ASSERT_EQ(got.size(), Kind::outputs);
    std::vector<oracle_value> wanted;
    for (const oracle_value& v : got) wanted.emplace_back(v.type);
    for (std::int64_t d = 0; d < c.directions; ++d)
      for (std::int64_t b = 0; b < c.batch; ++b) run_sequence(c, d, b, wanted);
    for (std::size_t i = 0; i < got.size(); ++i)
      expect_same(got[i], wanted[i], std::string(Kind::name) + " output " + std::to_string(i));
  }
}

TEST(recurrent, rnn_agrees_with_its_definition) { check_reference(op::rnn); }
TEST(recurrent, gru_agrees_with_its_definition) { check_reference(op::gru); }
TEST(recurrent, lstm_agrees_with_its_definition) { check_reference(op::lstm); }

/// Builds the kernel of a backend's pattern over constant weights and compares all outputs that are wanted. Answers its name;
/// nothing where the backend refuses the match or is not here.
template <class Kind>
std::string check_kernel(const cell_case<Kind>& c, const collage::backend_entry& table, const std::string& pattern,
                         int threads, std::uint32_t wanted, bool allocates_nothing = true) {
  const std::vector<oracle_value> expected = by_reference(c);
  collage::graph_builder g;
  std::vector<collage::value> operands;
  std::vector<std::shared_ptr<const std::byte>> contents;
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    const std::shared_ptr<std::byte> bytes = collage::allocate_bytes(c.in[i].type.bytes());
    collage::from_oracle(c.in[i], bytes.get());
    contents.push_back(bytes);
    const std::string name = "x" + std::to_string(i);
    const bool constant = i == 1 || i == 2 || i == 3 || i == 7;
    operands.push_back(constant ? g.constant(name.c_str(), c.in[i].type, bytes) : g.input(name.c_str(), c.in[i].type));
  }
  g.output("y", g(Kind{}, std::span<const collage::value>(operands), c.attributes));
  const collage::graph network = g.finish();
  if (!table.probe().available) return {};
  const auto found = std::ranges::find(table.patterns, pattern, [](const collage::pattern_entry& p) { return p.name; });
  collage::match_record record;
  if (found == table.patterns.end() || !collage::match_at(network.view(), found->nodes, 0, record)) {
    ADD_FAILURE() << table.name << " has no pattern " << pattern << " that matches";
    return {};
  }
  if (!found->accepts(network.view(), record)) return {};
  collage::packed_weights packed;
  collage::build_context context(network, threads, packed);
  const collage::kernel built = found->build(network.view(), record, context);

  std::vector<const void*> in;
  for (std::size_t i = 0; i < record.argument_list().size(); ++i)
    in.push_back(built.reads(i) ? contents[record.argument[i]].get() : nullptr);
  std::vector<collage_test::guarded_memory> memory;
  for (const oracle_value& v : expected) memory.emplace_back(v.type.bytes(), 4, 0xFF);
  const collage_test::guarded_memory workspace(built.workspace(), 0, 0xFF);
  std::vector<void*> out;
  for (std::size_t i = 0; i < memory.size(); ++i) out.push_back((wanted >> i & 1U) != 0 ? memory[i].data() : nullptr);
  const int token = table.enter(threads);
  const std::size_t before = collage_test::allocations();
  built(collage::kernel_call{in.data(), out.data(), workspace.data()});
  if (allocates_nothing) EXPECT_EQ(collage_test::allocations(), before);
  table.leave(token);
  EXPECT_TRUE(workspace.intact());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(memory[i].intact());
    if (out[i] == nullptr) continue;
    const collage::agreement a =
        collage::compare(collage::const_tensor_view{memory[i].data(), expected[i].type}, expected[i]);
    EXPECT_TRUE(a.agrees) << table.name << " " << Kind::name << " output " << i << " of "
                          << text_of(expected[0].type.dims) << ", " << threads << " threads, element " << a.worst_index
                          << ": " << a.actual << ", the reference has " << a.expected;
  }
  return built.name();
}

template <class Kind>
void check_portable(const cell_case<Kind>& c, int threads, std::uint32_t wanted) {
  const collage::backend_entry& table = collage::table_of<collage::backend_set<collage::portable>>[0];
  if (!table.probe().available) GTEST_SKIP() << table.probe().reason;
  EXPECT_EQ(check_kernel(c, table, "loops", threads, wanted), std::string(Kind::name) + ", packed panels");
}

template <class Kind>
void check_portable_kernels(const Kind& kind) {
  random_source random;
  for (int round = 0; round < 60; ++round)
    check_portable(random_case(random, kind, round % 3 == 0 ? 150 : 9, true), round % 2 == 0 ? 1 : 3,
                   static_cast<std::uint32_t>(random.number(1, 7)));
  // Steps worth dividing among the threads, one sequence alone.
  cell_case<Kind> large = random_case(random, kind, 1, true);
  while (large.hidden != 1 || large.steps == 0 || large.inputs == 0) large = random_case(random, kind, 1, true);
  const std::int64_t hidden = 400, rows = Kind::gates * hidden, d = large.directions, batch = 2;
  const shape dims[] = {{large.steps, batch, large.inputs},
                        {d, rows, large.inputs},
                        {d, rows, hidden},
                        {d, 2 * rows},
                        {d, batch, hidden},
                        {d, batch, hidden}};
  large.in.resize(Kind::has_cell ? 6 : 5);
  for (std::size_t i = 0; i < large.in.size(); ++i) {
    large.in[i] = random.tensor(dims[i]);
    for (double& x : large.in[i].real) x = static_cast<float>(x / 30);
  }
  check_portable(large, 5, 7);
}

TEST(recurrent, portable_rnn_agrees_with_the_reference) { check_portable_kernels(op::rnn); }
TEST(recurrent, portable_gru_agrees_with_the_reference) { check_portable_kernels(op::gru); }
TEST(recurrent, portable_lstm_agrees_with_the_reference) { check_portable_kernels(op::lstm); }

TEST(recurrent, nan_stays_in_its_sequence) {
  random_source random;
  cell_case<std::remove_cv_t<decltype(op::lstm)>> c;
  c.in = {random.tensor({2, 2, 3}), random.tensor({1, 8, 3}), random.tensor({1, 8, 2}),
          random.tensor({1, 16}),   random.tensor({1, 2, 2}), random.tensor({1, 2, 2})};
  op::lstm.normalise(c.attributes, {});
  c.in[0].real[0] = not_a_number;
  const std::vector<oracle_value> y = by_reference(c);
  EXPECT_TRUE(std::isnan(y[1].real[0]) && std::isnan(y[1].real[1]));
  EXPECT_TRUE(std::isfinite(y[1].real[2]) && std::isfinite(y[1].real[3]));
  for (const int threads : {1, 2}) check_portable(c, threads, 7);
}

#ifdef COLLAGE_HAS_ONEDNN
const collage::backend_entry& onednn_table() { return collage::table_of<collage::backend_set<collage::onednn>>[0]; }

/// A random case of what oneDNN takes: the usual activations over whole sequences.
template <class Kind>
cell_case<Kind> plain_case(random_source& random, const Kind& kind, std::int64_t largest_hidden) {
  cell_case<Kind> c = random_case(random, kind, largest_hidden, true);
  typename Kind::attributes plain;
  plain.direction = c.attributes.direction;
  if constexpr (requires { plain.linear_before_reset; }) plain.linear_before_reset = c.attributes.linear_before_reset;
  c.attributes = plain;
  c.in.resize(Kind::has_cell ? 6 : 5);
  std::vector<collage::tensor_type> types;
  for (const oracle_value& v : c.in) types.push_back(v.type);
  Kind::normalise(c.attributes, types);
  return c;
}

template <class Kind>
void check_onednn_kernels(const Kind& kind) {
  if (!onednn_table().probe().available) GTEST_SKIP() << onednn_table().probe().reason;
  random_source random;
  std::size_t checked = 0;
  for (int round = 0; round < 60; ++round) {
    const cell_case<Kind> c = plain_case(random, kind, round % 3 == 0 ? 150 : 9);
    const bool is_empty = c.steps * c.batch * c.inputs * c.hidden == 0;
    const std::string name = check_kernel(c, onednn_table(), Kind::name, round % 2 == 0 ? 1 : 3,
                                          static_cast<std::uint32_t>(random.number(1, 7)), false);
    EXPECT_EQ(name.empty(), is_empty);
    if (is_empty) continue;
    EXPECT_TRUE(name.ends_with(Kind::name)) << name;
    ++checked;
  }
  EXPECT_GT(checked, 30U);
}

TEST(recurrent, onednn_gru_agrees_with_the_reference) { check_onednn_kernels(op::gru); }
TEST(recurrent, onednn_lstm_agrees_with_the_reference) { check_onednn_kernels(op::lstm); }

/// Changes what oneDNN's cells do not have, one thing at a time.
TEST(recurrent, onednn_refuses_what_its_cells_lack) {
  if (!onednn_table().probe().available) GTEST_SKIP() << onednn_table().probe().reason;
  random_source random;
  const auto is_refused = [&](const auto& kind, const auto& change) {
    auto c = plain_case(random, kind, 5);
    while (c.steps * c.batch * c.inputs * c.hidden == 0) c = plain_case(random, kind, 5);
    EXPECT_FALSE(check_kernel(c, onednn_table(), kind.name, 1, 1, false).empty());
    change(c);
    EXPECT_TRUE(check_kernel(c, onednn_table(), kind.name, 1, 1, false).empty());
  };
  const auto clip = [](auto& c) { c.attributes.clip = 3; };
  const auto activation = [](auto& c) {
    c.attributes.activations[0] = static_cast<std::int64_t>(recurrent_activation::relu);
  };
  const auto lengths = [](auto& c) {
    c.in.push_back(
        integers({c.batch}, std::vector<std::int64_t>(static_cast<std::size_t>(c.batch), c.steps), dtype::i32));
  };
  const auto all = [&](const auto& kind) {
    is_refused(kind, clip);
    is_refused(kind, activation);
    is_refused(kind, lengths);
  };
  all(op::gru);
  all(op::lstm);
  is_refused(op::lstm, [](auto& c) { c.attributes.input_forget = true; });
  is_refused(op::lstm, [&](auto& c) {
    lengths(c);
    c.in.push_back(random.tensor({c.directions, 3 * c.hidden}));
  });
}

TEST(recurrent, onednn_keeps_nan_in_its_sequence) {
  if (!onednn_table().probe().available) GTEST_SKIP() << onednn_table().probe().reason;
  random_source random;
  cell_case<std::remove_cv_t<decltype(op::lstm)>> c;
  c.steps = c.batch = 2;
  c.in = {random.tensor({2, 2, 3}), random.tensor({1, 8, 3}), random.tensor({1, 8, 2}),
          random.tensor({1, 16}),   random.tensor({1, 2, 2}), random.tensor({1, 2, 2})};
  op::lstm.normalise(c.attributes, {});
  c.in[0].real[0] = not_a_number;
  for (const int threads : {1, 2}) EXPECT_FALSE(check_kernel(c, onednn_table(), "lstm", threads, 7, false).empty());
}
#endif

}  // namespace backends_recurrent_test
