// Whether words from outside are the attributes of an operator.
#pragma once

#include <algorithm>
#include <collage/op/attributes.hpp>
#include <collage/op/kind.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace collage::inline v0::detail {

/// Whether the words are a record of this kind: what reads them does not look how many there are. `most` bounds the size of
/// integers, for callers that compute with them.
inline bool fits(const kind_info& kind, const attribute_words& words,
                 std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  struct walk {
    const attribute_words& words;
    std::int64_t most;
    std::size_t at = 0;
    bool fits = true;
  } state{words, most};
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
               const bool is_integer =
                   field.what == attribute_value::tag::integer || field.what == attribute_value::tag::list;
               for (std::size_t i = w.at; is_integer && i < std::min(w.at + take, w.words.size); ++i) {
                 const auto number = static_cast<std::int64_t>(w.words.word[i]);
                 w.fits = w.fits && number <= w.most &&
                          (w.most == std::numeric_limits<std::int64_t>::max() || number >= -w.most);
               }
               w.at += take;
               w.fits = w.fits && w.at <= w.words.size;
             }});
  return state.fits && state.at == words.size;
}

}  // namespace collage::inline v0::detail
