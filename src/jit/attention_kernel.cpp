#include "attention_kernel.hpp"

#include "configuration_reading.hpp"
#include "convolution_point.hpp"
#include "replica.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
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

configuration_reading<attention_configuration> read_attention(const collage::configuration& how) {
  return read_configuration(&parse_attention_configuration, how,
                            "it is not of the form: attention1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory "
                            "rows 28, or has a tile that does not fit the registers");
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
  const auto found = read_attention(how);
  return found.how ? runs_here(found.how->product.set) : verdict{false, found.fault};
}

kernel build_attention(const any_match& m, build_context& context) {
  const attention_configuration how = needed(read_attention(context.configuration()), context.configuration());
  const attention_match a(m);
  const auto made = std::make_shared<const attention>(how, attention_of(m), context.threads());
  run_attention run{made,
                    m.in<float>(a.queries(m).value),
                    m.in<float>(a.keys(m).value),
                    m.in<float>(a.contents(m).value),
                    {},
                    m.out<float>()};
  if (a.mask != match_record::nothing) run.mask = m.in<float>(a.mask);
  const std::string name = name_of(how, made->refusal());
  kernel built(name, std::move(run), made->scratch_bytes());
  // The scale is a number of the kernel, unless the same value is an operand, too.
  const std::uint32_t read[] = {a.queries(m).value, a.keys(m).value, a.contents(m).value, a.mask};
  for (std::size_t i = 0; i < m.arguments().size(); ++i)
    if (std::ranges::find(read, m.arguments()[i]) == std::end(read)) built.does_not_read(i);
  return built;
}

}  // namespace collage::inline v0::detail::jit
