#include "scheme.hpp"

#include "process/forks.hpp"

#include <collage/bilinear/matmul_schemes.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace collage::inline v0::detail::jit {
namespace {

constexpr scheme shipped[] = {
    scheme_of<bilinear::classical<1, 1, 1>>("classical"),
    scheme_of<bilinear::strassen>("strassen"),
    scheme_of<bilinear::winograd>("winograd"),
    scheme_of<bilinear::two_strassen>("two-strassen"),
    scheme_of<bilinear::nested<bilinear::winograd, bilinear::winograd>>("two-winograd"),
    scheme_of<bilinear::strassen_2_2_3>("strassen-2-2-3"),
    scheme_of<bilinear::strassen_4_2_2>("strassen-4-2-2"),
    scheme_of<bilinear::hopcroft_kerr>("hopcroft-kerr"),
    scheme_of<bilinear::laderman>("laderman"),
};

// Constants, so that they are there before any other object of a program is made, and after it is destroyed.
constinit std::mutex guard;
[[maybe_unused]] const bool is_guarded = hold_across_forks(guard);
constinit const known_scheme* newest = nullptr;

bool are_same(const bilinear::program_view& a, const bilinear::program_view& b) {
  return a.inputs == b.inputs && std::ranges::equal(a.output, b.output) &&
         std::ranges::equal(a.code, b.code, [](const bilinear::instruction& x, const bilinear::instruction& y) {
           return x.a == y.a && x.b == y.b && x.alpha == y.alpha && x.beta == y.beta;
         });
}
bool are_same(const scheme& a, const scheme& b) {
  return a.rows == b.rows && a.inner == b.inner && a.columns == b.columns && a.rank == b.rank &&
         are_same(a.left, b.left) && std::equal(a.v, a.v + a.rank * a.inner * a.columns, b.v) &&
         std::equal(a.w, a.w + a.rows * a.columns * a.rank, b.w);
}

}  // namespace

known_scheme::known_scheme(const scheme& known) : scheme_(known) {
  const std::scoped_lock lock(guard);
  next_ = std::exchange(newest, this);
}

// A library that is unloaded takes its schemes with it.
known_scheme::~known_scheme() {
  const std::scoped_lock lock(guard);
  const known_scheme** at = &newest;
  while (*at != this) at = &(*at)->next_;
  *at = next_;
}

std::span<const scheme> schemes() { return shipped; }

const scheme& listed_as(const scheme& s) {
  const auto* const found = std::ranges::find_if(shipped, [&](const scheme& known) { return are_same(known, s); });
  return found == std::end(shipped) ? s : *found;
}

const scheme* find_scheme(std::string_view name) {
  const auto* const found = std::ranges::find(shipped, name, [](const scheme& s) { return std::string_view(s.name); });
  if (found != std::end(shipped)) return found;
  const std::scoped_lock lock(guard);
  for (const known_scheme* s = newest; s != nullptr; s = s->next())
    if (s->value().name == name) return &s->value();
  return nullptr;
}

}  // namespace collage::inline v0::detail::jit
