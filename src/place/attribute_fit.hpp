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

/// Looks at the fields of a record one after the other, without reading more than there is.
struct attribute_walk {
  const attribute_words& words;
  std::int64_t most;
  std::size_t at = 0;
  bool fits = true;

  void take(const attribute_value& field) {
    std::size_t count = 1;
    if (field.what == attribute_value::tag::text) {
      count = 7;
    } else if (field.what == attribute_value::tag::list || field.what == attribute_value::tag::reals) {
      const std::uint64_t entries = at < words.size ? words.word[at] : 0;
      fits = fits && entries <= shape::max_rank;
      count = 1 + static_cast<std::size_t>(std::min<std::uint64_t>(entries, shape::max_rank));
    }
    const bool is_integer = field.what == attribute_value::tag::integer || field.what == attribute_value::tag::list;
    for (std::size_t i = at; is_integer && i < std::min(at + count, words.size); ++i) {
      const auto number = static_cast<std::int64_t>(words.word[i]);
      fits = fits && number <= most && (most == std::numeric_limits<std::int64_t>::max() || number >= -most);
    }
    at += count;
    fits = fits && at <= words.size;
  }
};

/// Whether the words are a record of this kind: what reads them does not look how many there are. `most` bounds the size of
/// integers, for callers that compute with them.
inline bool fits(const kind_info& kind, const attribute_words& words,
                 std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  // Fields that depend on others stand last and are no lists. So the record can be read once the fields of the defaults fit,
  // with zeros behind it.
  attribute_words padded;
  padded.size = words.size;
  std::copy_n(words.word, words.size, padded.word);
  attribute_walk first{padded, most}, whole{padded, most};
  const attribute_sink to_first{
      &first, [](void* walk, const attribute_value& field) { static_cast<attribute_walk*>(walk)->take(field); }};
  kind.list(kind.defaults().list(), to_first);
  if (!first.fits) return false;
  kind.list(padded.list(), {&whole, to_first.receive});
  return whole.fits && whole.at == words.size;
}

}  // namespace collage::inline v0::detail
