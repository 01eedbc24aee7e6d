#include "attention_kernel.hpp"

#include "convolution_point.hpp"
#include "replica.hpp"

#include <collage/error.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace collage::inline v0::detail::jit {
namespace {

struct run_attention {
  std::shared_ptr<const attention> made;
  kernel_input<float> queries, keys, values;
  std::optional<kernel_input<float>> mask;
  kernel_output<float> result;

  void operator()(const kernel_call& call) const {
    made->run({.queries = queries(call),
               .keys = keys(call),
               .values = values(call),
               .mask = mask ? (*mask)(call) : nullptr,
               .result = result(call),
               .scratch = static_cast<float*>(call.workspace)});
  }
};

struct attention_reading {
  std::optional<attention_configuration> how;
  const char* fault = "";  ///< if there is none: one sentence that says why
};
attention_reading read_attention(const collage::configuration& how) {
  try {
    return {parse_attention_configuration(how.text()), ""};
  } catch (const error&) {
    return {{},
            "it is not of the form: attention1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows 28, or has a "
            "tile that does not fit the registers"};
  }
}

head_steps steps_of(const matrices_in_memory& x) { return {x.steps[0], x.steps[1], x.steps[2], x.steps[3]}; }

std::string name_of(const attention_configuration& c, const std::string& refusal) {
  std::string name = "attention, " + std::to_string(c.product.rows) + "x" + std::to_string(c.product.vectors) +
                     ", blocks of " + std::to_string(c.rows) + (c.rows == 1 ? " query" : " queries");
  if (!refusal.empty()) name += std::string(", replica ") + replica().target;
  return name;
}

}  // namespace

attention_shape attention_of(const any_match& m) {
  const attention_match a(m);
  const matrices_in_memory q = a.queries(m), k = a.keys(m), v = a.contents(m), y = a.result(m);
  attention_shape s = {.batches = q.extents[0],
                       .heads = q.extents[1],
                       .queries = q.extents[2],
                       .keys = k.extents[3],
                       .size = q.extents[3],
                       .width = v.extents[3],
                       .query = steps_of(q),
                       .key = steps_of(k),
                       .value = steps_of(v),
                       .result = steps_of(y),
                       .mask = {},
                       .factor = static_cast<float>(a.factor(m))};
  if (a.mask != match_record::nothing) s.mask = steps_of(a.added(m));
  return s;
}

void propose_attention(const any_match& m, configuration_list& to) {
  const convolution_machine here = this_machine();
  for (const attention_configuration& c :
       propose_attention(attention_of(m), here.set, here.second_level_bytes, here.threads))
    to.add(to_text(c));
}

verdict knows_attention(const collage::configuration& how) {
  const attention_reading found = read_attention(how);
  if (!found.how) return {false, found.fault};
  return {found.how->product.set == instruction_set::avx2 || refusal_of(instruction_set::avx512).empty(),
          "it is for AVX-512, which this processor lacks"};
}

kernel build_attention(const any_match& m, build_context& context) {
  const attention_reading found = read_attention(context.configuration());
  if (!found.how)
    throw error(error_kind::invalid_argument, found.fault, "jit's configuration " + context.configuration().text());
  const attention_match a(m);
  const auto made = std::make_shared<const attention>(*found.how, attention_of(m), context.threads());
  run_attention run{made,
                    m.in<float>(a.queries(m).value),
                    m.in<float>(a.keys(m).value),
                    m.in<float>(a.contents(m).value),
                    {},
                    m.out<float>()};
  if (a.mask != match_record::nothing) run.mask = m.in<float>(a.mask);
  const std::string name = name_of(*found.how, made->refusal());
  kernel built(name, std::move(run), made->scratch_bytes());
  for (std::size_t i = 0; i < m.arguments().size(); ++i)
    if (a.scale != match_record::nothing && m.arguments()[i] == a.factor_value(m)) built.does_not_read(i);
  return built;
}

}  // namespace collage::inline v0::detail::jit
