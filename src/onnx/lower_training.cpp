// Steps of training: the optimisers of ai.onnx.preview.training. And two operators of ai.onnx.ml that are ordinary ones.
#include "rules.hpp"

#include <collage/op/cast.hpp>
#include <collage/op/comparison.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/gather.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

/// One tensor to optimise, with its gradient and the states of the optimiser; and numbers of its element type.
struct optimised {
  lowering& n;
  value x, gradient, rate, count;
  std::vector<value> states;

  dtype type() const { return n.element_type_of(x); }
  value number(double v) const { return n.scalar(v, type()); }
  value times(double factor, value v) const { return n(ops::mul, v, number(factor)); }
  value plus(value a, value b) const { return n(ops::add, a, b); }
  /// The gradient with that of the squared norm of x, times a coefficient.
  value regularised() const { return plus(times(n.real("norm_coefficient", 0), x), gradient); }
  value choose_if_begun(value then, value otherwise) const {
    return n(ops::where, n(ops::greater, count, number(0)), then, otherwise);
  }
};

/// Calls step(optimised) for each tensor. It returns the new tensor and the new states. Operands and outputs have all tensors first,
/// then all gradients (operands only), then all states of one kind after the other.
template <class Step>
void optimise(lowering& n, std::size_t states, const Step& step) {
  const std::size_t kinds = states + 2;
  if (n.operands() < 2 + kinds || (n.operands() - 2) % kinds != 0)
    n.invalid("it must have a rate, a count, and as many gradients and states as tensors");
  const std::size_t tensors = (n.operands() - 2) / kinds;
  for (std::size_t i = 0; i < tensors; ++i) {
    const value x = n.operand(2 + i);
    const auto scalar = [&](std::size_t operand) {
      if (n.dims_of(n.operand(operand)).elements() != 1) n.invalid("its rate and its count must be one number each");
      return n.cast(n.reshape(n.operand(operand), {}), n.element_type_of(x));
    };
    optimised o{n, x, n.operand(2 + tensors + i), scalar(0), scalar(1), {}};
    for (std::size_t s = 0; s < states; ++s) o.states.push_back(n.operand(2 + (2 + s) * tensors + i));
    const std::vector<value> results = step(o);
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (!(n.dims_of(results[r]) == n.dims_of(x)))
        n.invalid("its gradients and states must have the shapes of their tensors");
      n.result(r * tensors + i, results[r]);
    }
  }
}

void lower_momentum(lowering& n) {
  const std::string mode = n.text("mode", "");
  if (mode != "standard" && mode != "nesterov") n.invalid("its mode is neither standard nor nesterov");
  const double alpha = n.real("alpha", 0), beta = n.real("beta", 0);
  optimise(n, 1, [&](const optimised& o) {
    const value g = o.regularised();
    const value v = o.plus(o.times(alpha, o.states[0]), o.choose_if_begun(o.times(beta, g), g));
    const value moved = mode == "standard" ? v : o.plus(g, o.times(alpha, v));
    return std::vector<value>{n(ops::sub, o.x, n(ops::mul, o.rate, moved)), v};
  });
}

void lower_adagrad(lowering& n) {
  const double decay = n.real("decay_factor", 0), epsilon = n.real("epsilon", 1e-6);
  optimise(n, 1, [&](const optimised& o) {
    const value g = o.regularised();
    const value rate = n(ops::div, o.rate, o.plus(o.number(1), o.times(decay, o.count)));
    const value h = o.plus(o.states[0], n(ops::mul, g, g));
    const value root = o.plus(n(ops::sqrt, h), o.number(epsilon));
    return std::vector<value>{n(ops::sub, o.x, n(ops::div, n(ops::mul, rate, g), root)), h};
  });
}

void lower_adam(lowering& n) {
  const double alpha = n.real("alpha", 0.9), beta = n.real("beta", 0.999), epsilon = n.real("epsilon", 1e-6);
  const double after = n.real("norm_coefficient_post", 0);
  optimise(n, 2, [&](const optimised& o) {
    const value g = o.regularised();
    const value v = o.plus(o.times(alpha, o.states[0]), o.times(1 - alpha, g));
    const value h = o.plus(o.times(beta, o.states[1]), o.times(1 - beta, n(ops::mul, g, g)));
    const auto rest = [&](double factor) { return n(ops::sub, o.number(1), n(ops::pow, o.number(factor), o.count)); };
    const value corrected = n(ops::div, n(ops::mul, o.rate, n(ops::sqrt, rest(beta))), rest(alpha));
    const value rate = o.choose_if_begun(corrected, o.rate);
    const value root = o.plus(n(ops::sqrt, h), o.number(epsilon));
    const value x = n(ops::sub, o.x, n(ops::mul, rate, n(ops::div, v, root)));
    return std::vector<value>{after == 0 ? x : o.times(1 - after, x), v, h};
  });
}

/// Columns of the last dimension. A list counts as a row.
void lower_array_feature_extractor(lowering& n) {
  const value x = n.operand(0), columns = n.operand(1);
  const shape dims = n.dims_of(x);
  if (dims.rank == 0) n.invalid("its input must have at least one dimension");
  const std::int64_t picked = n.dims_of(columns).elements();
  const value y = n(ops::gather, x, n.reshape(columns, {picked}), {.axis = static_cast<std::int64_t>(dims.rank) - 1});
  n.result(0, dims.rank == 1 ? n.reshape(y, {1, picked}) : y);
}

/// 1 for numbers above the threshold, 0 for others.
void lower_binarizer(lowering& n) {
  const value x = n.operand(0);
  const dtype type = n.element_type_of(x);
  // The threshold is no integer, whatever x is.
  const dtype wide = is_floating(type) ? type : dtype::f64;
  n.result(0, n.cast(n(ops::greater, n.cast(x, wide), n.scalar(n.real("threshold", 0), wide)), type));
}

constexpr lowering_rule training_lowerings[] = {
    {"ai.onnx.ml", "ArrayFeatureExtractor", lower_array_feature_extractor},
    {"ai.onnx.ml", "Binarizer", lower_binarizer},
    {"ai.onnx.preview.training", "Adagrad", lower_adagrad},
    {"ai.onnx.preview.training", "Adam", lower_adam},
    {"ai.onnx.preview.training", "Momentum", lower_momentum},
};

}  // namespace

std::span<const lowering_rule> training_rules() { return training_lowerings; }

}  // namespace collage::inline v0::onnx
