// Whether words from outside are the attributes of an operator.
#pragma once

#include <algorithm>
#include <collage/op/attributes.hpp>
#include <collage/op/kind.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// Whether the words are a record of this kind: what reads them does not look how many there are.
inline bool fits(const kind_info& kind, const attribute_words& words) {
  struct walk {
    const attribute_words& words;
    std::size_t at = 0;
    bool fits = true;
  } state{words};
  const attribute_words defaults = kind.defaults();
  kind.list(defaults.list(),
            {&state, [](void* context, const attribute_value& field) {
               walk& w = *static_cast<walk*>(context);
               std::size_t take = 1;
               if (field.what == attribute_value::tag::text) {
                 take = 7;
               } else if (field.what == attribute_value::tag::list || field.what == attribute_value::tag::reals) {
                 const std::uint64_t count = w.at < w.words.size ? w.words.word[w.at] : 0;
                 w.fits = w.fits && count <= shape::max_rank;
                 take = 1 + static_cast<std::size_t>(std::min<std::uint64_t>(count, shape::max_rank));
               }
               w.at += take;
               w.fits = w.fits && w.at <= w.words.size;
             }});
  return state.fits && state.at == words.size;
}

}  // namespace collage::inline v0::detail
