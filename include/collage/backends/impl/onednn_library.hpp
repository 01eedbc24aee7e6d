// Definitions that the oneDNN adapter's files share: the engine, memory descriptors, errors.
#pragma once

#include <algorithm>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/layout.hpp>
#include <collage/run/form.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl_debug.h>
#include <oneapi/dnnl/dnnl.hpp>

namespace collage::inline v0::detail::onednn {
namespace {

using dims = dnnl::memory::dims;
using desc = dnnl::memory::desc;
using tag = dnnl::memory::format_tag;
using element = dnnl::memory::data_type;
inline constexpr auto f32 = element::f32;

/// The only CPU engine. It has no visible state.
inline const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// Calls f and turns the library's exceptions into ours. `what` names the operation for the message.
template <class F>
auto translated(const char* what, const F& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    const std::string text = std::string("the library refused ") + what + ": " + e.what();
    if (e.status == dnnl_out_of_memory) throw error(error_kind::environment, text, "onednn");
    if (e.status == dnnl_unimplemented || e.status == dnnl_invalid_arguments || e.status == dnnl_last_impl_reached)
      throw error(error_kind::unsupported, text, "onednn");
    throw error(error_kind::failure, text, "onednn");
  }
}

/// Whether an implementation is one of the library's references: plain loops, up to a thousand times slower than the others.
template <class Descriptor>
bool is_plain_loop(const Descriptor& d) {
  return std::string(d.impl_info_str()).starts_with("ref");
}
template <class Descriptor>
Descriptor fast(Descriptor d) {
  if (is_plain_loop(d)) throw error(error_kind::unsupported, "the library has only slow loops for this", "onednn");
  return d;
}

/// One of the library's implementations that are not plain loops, counted from 0 in the library's own order. That order depends on
/// its version, the processor and the problem alone. Implementations are distinguished by name, because version 3.2 lists again
/// those that are in its cache of primitives. Advancing to the next one takes some tens of microseconds.
template <class Descriptor>
Descriptor implementation(Descriptor d, std::size_t which) {
  d = fast(std::move(d));
  std::vector<std::string> seen{d.impl_info_str()};
  while (seen.size() <= which) {
    if (!d.next_impl() || is_plain_loop(d))
      throw error(error_kind::unsupported, "the library has no other implementation of this", "onednn");
    if (std::ranges::find(seen, d.impl_info_str()) == seen.end()) seen.emplace_back(d.impl_info_str());
  }
  return d;
}

/// The attributes of every primitive. Scratch memory is ours, and nothing lowers the precision, not even the environment.
inline dnnl::primitive_attr attributes(const dnnl::post_ops& then = {}) {
  dnnl::primitive_attr a;
  a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  a.set_fpmath_mode(dnnl::fpmath_mode::strict);
  a.set_post_ops(then);
  return a;
}

inline dims to_dims(const shape& s) { return {s.begin(), s.end()}; }

inline std::int64_t product(const dims& d) {
  std::int64_t p = 1;
  for (const std::int64_t extent : d) p *= extent;
  return p;
}

/// Strides, in elements, of a dense row-major tensor.
inline dims dense_steps(const dims& extents) {
  dims steps(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) steps[i - 1] = steps[i] * extents[i];
  return steps;
}

/// The library's name of an element type: of 8 bits, int32, bfloat16 or float32.
inline element library_type(dtype type) {
  using enum dnnl::memory::data_type;
  return type == dtype::i8 ? s8 : type == dtype::u8 ? u8 : type == dtype::i32 ? s32 : type == dtype::bf16 ? bf16 : f32;
}
/// The library's element type of a value in a form. `type` is the one that it has in the network.
inline element element_of(const form& stored, element type = f32) {
  return stored.element ? library_type(*stored.element) : type;
}

/// A dense row-major tensor. A scalar has one dimension here.
inline desc dense(const dims& extents, element type = f32) {
  const dims at_least_one = extents.empty() ? dims{1} : extents;
  return {at_least_one, type, dense_steps(at_least_one)};
}
inline desc dense_of(const shape& s, element type = f32) { return dense(to_dims(s), type); }

/// The number of channels in a block of the library's blocked layouts; 0 if it has no kernels for blocks.
inline std::int64_t block_size() {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return isa >= dnnl_cpu_isa_avx512_core ? 16 : isa >= dnnl_cpu_isa_avx2 ? 8 : 0;
}
inline const layout& blocked() { return block_size() == 16 ? blocked_16 : blocked_8; }

/// A tensor in one of the forms that backends share. Layouts other than the plain one are for ranks 3 to 5. `type` is the element
/// type of the value in the network.
inline desc desc_in(const form& stored, const dims& extents, element type = f32) {
  const layout& order = stored.order;
  type = element_of(stored, type);
  if (order == plain) return dense(extents, type);
  constexpr tag tags[][3] = {{tag::acb, tag::acdb, tag::acdeb},
                             {tag::aBc8b, tag::aBcd8b, tag::aBcde8b},
                             {tag::aBc16b, tag::aBcd16b, tag::aBcde16b}};
  const std::size_t which = order == channels_last ? 0 : order == blocked_8 ? 1 : 2;
  return {extents, type, tags[which][extents.size() - 3]};
}

/// A tensor whose layout the library may choose.
inline desc free_layout(const dims& extents, element type = f32) { return {extents, type, tag::any}; }

/// Whether the library multiplies integers of 8 bits exactly here. Without VNNI, sums of two products saturate at 16 bits.
inline bool multiplies_bytes_exactly() {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  const auto has = [isa](dnnl_cpu_isa_t wanted) { return (isa & wanted) == wanted; };
  return has(dnnl_cpu_isa_avx512_core_vnni) || has(dnnl_cpu_isa_avx2_vnni);
}

/// A number of 8 bits as int32.
inline std::int32_t widened(dtype type, const void* at) {
  return type == dtype::i8 ? *static_cast<const std::int8_t*>(at) : *static_cast<const std::uint8_t*>(at);
}

/// All properties that distinguish two layouts, as text.
inline std::string text_of(const desc& d) {
  std::string text;
  const auto list = [&](const char* name, const dims& values) {
    text += name;
    for (const std::int64_t v : values) text += ' ' + std::to_string(v);
  };
  list("extents", d.get_dims());
  list(" padded", d.get_padded_dims());
  list(" steps", d.get_strides());
  list(" blocks", d.get_inner_blks());
  list(" of", d.get_inner_idxs());
  if (d.get_data_type() != f32)
    text += std::string(" in ") + dnnl_dt2str(static_cast<dnnl_data_type_t>(d.get_data_type()));
  return text;
}

/// The library's name of an activation's layout, such as "nChw16c". Only for images with channels.
inline std::string name_of(const desc& d) {
  const auto rank = static_cast<std::size_t>(d.get_ndims());
  const char* const spatial[] = {"", "w", "hw", "dhw"};
  const std::string places = rank >= 2 && rank <= 5 ? spatial[rank - 2] : "";
  if (const dims blocks = d.get_inner_blks(); !blocks.empty()) return "nC" + places + std::to_string(blocks[0]) + "c";
  const dims steps = d.get_strides();
  return steps[1] == 1 && d.get_dims()[1] > 1 ? "n" + places + "c" : "nc" + places;
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
