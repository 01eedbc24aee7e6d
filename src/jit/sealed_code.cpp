#include "sealed_code.hpp"

#include <collage/detail/hash.hpp>

#include <sys/mman.h>

#include <algorithm>

namespace collage::inline v0::detail::jit {
namespace {

std::uint64_t hash_of(const tile_plan& plan) {
  const auto word = [](auto number) { return static_cast<std::uint64_t>(number); };
  const configuration& c = plan.how;
  std::uint64_t h = detail::combine(word(c.set), word(c.broadcast));
  for (const int number : {c.rows, c.vectors, c.unroll, c.prefetch, plan.rows, plan.columns})
    h = detail::combine(h, word(number));
  for (const store_mode m : plan.destinations) h = detail::combine(h, word(m));
  for (const operand_shape o : plan.finish.operands) h = detail::combine(h, word(o));
  for (const epilogue_step& s : plan.finish.steps) h = detail::combine(h, word(s.code));
  return h;
}

}  // namespace

sealed_code::~sealed_code() { munmap(memory_, mapped_); }

void code_index::add(const std::shared_ptr<const sealed_code>& code) {
  if (entries_.size() >= sweep_at_) {
    std::erase_if(entries_, [](const auto& e) { return e.second.code.expired(); });
    sweep_at_ = std::max<std::size_t>(256, 2 * entries_.size());
  }
  for (std::size_t i = 0; i < code->parts().size(); ++i)
    entries_.emplace(hash_of(*code->parts()[i].plan), entry{code, i});
}

std::vector<code_index::place> code_index::find(const tile_plan& plan) const {
  std::vector<place> list;
  const auto [first, last] = entries_.equal_range(hash_of(plan));
  for (auto e = first; e != last; ++e) {
    std::shared_ptr<const sealed_code> code = e->second.code.lock();
    if (code == nullptr) continue;
    const sealed_code::part& p = code->parts()[e->second.part];
    if (*p.plan == plan) list.push_back({std::move(code), p.begin, p.size});
  }
  return list;
}

}  // namespace collage::inline v0::detail::jit
