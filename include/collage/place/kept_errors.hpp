// Errors of values in the store of measured costs, so that no error is measured twice (docs/store.md).
#pragma once

#include <cmath>
#include <collage/calibrate/value_errors.hpp>
#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/measure/store.hpp>
#include <collage/run/form.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The backend that entries of errors name. No backend of a set has this name, and no machine is part of such an entry.
inline constexpr const char* stored_errors_backend = "errors";

/// Whether an entry of the store holds an error and no cost. Its times then are errors: `median_ms` is value_error::nmse, `high_ms`
/// `worst`, and `low_ms` `own`. An infinite error is a refusal.
inline bool holds_error(const stored_key& key) { return key.backend == stored_errors_backend; }

/// The key of an error in the store.
inline stored_key stored_key_of(const value_error_key& key) {
  stored_key k;
  k.backend = stored_errors_backend;
  k.library = "1";  // of measuring: errors that are defined otherwise have another number
  k.pattern = "error of a value";
  k.precision = key.rounding;
  k.computes = {key.network, key.contents, key.samples, key.value};
  return k;
}

/// An error as the store keeps it. `name` is the value's, for people.
inline stored_cost to_stored(const value_error& e, const std::string& name) {
  stored_cost kept;
  kept.label = "error of " + name;
  kept.kernel = e.rounding;
  kept.samples = e.samples;
  kept.low_ms = e.own;
  kept.how = "suffix runs";
  if (!std::isfinite(e.nmse) || !std::isfinite(e.worst)) {
    kept.refusal = "the outputs become infinite or NaN";
  } else {
    kept.median_ms = e.nmse;
    kept.high_ms = e.worst;
  }
  if (!std::isfinite(e.own)) kept.low_ms = 0;
  return kept;
}

/// The error that the store keeps so. Its value and rounding follow from the key.
inline value_error from_stored(const stored_cost& kept) {
  value_error e;
  e.nmse = kept.refusal.empty() ? kept.median_ms : std::numeric_limits<double>::infinity();
  e.worst = kept.refusal.empty() ? kept.high_ms : e.nmse;
  e.own = kept.low_ms;
  e.samples = static_cast<std::size_t>(kept.samples);
  return e;
}

/// Makes measure_value_errors look errors up in a store, and keep new ones there. The store and the network must outlive the options.
/// A store that is not writable is only read. Errors while measuring: those of the store.
inline void use_store(value_error_options& options, cost_store& store, const graph& network) {
  options.recall = [&store](const value_error_key& key) -> std::optional<value_error> {
    const std::optional<stored_cost> kept = store.find(stored_key_of(key));
    return kept ? std::optional(from_stored(*kept)) : std::nullopt;
  };
  options.keep = {};
  if (!store.writable()) return;
  options.keep = [&store, &network](const value_error_key& key, const value_error& e) {
    store.put(stored_key_of(key), to_stored(e, network.value_name(key.value)));
  };
}

/// The errors of a network's values that a store keeps, by the element types to which they round, whatever samples they were measured
/// with. If there are several for one value and type, the newest. Null if there are none. The network's constants have contents. Errors: those
/// of the store.
inline std::shared_ptr<const rounding_errors> kept_errors_of(const cost_store& store, const graph& network) {
  struct kept_error {
    std::int64_t when_s = 0;
    double nmse = 0;
  };
  std::map<rounded_value, kept_error> newest;
  const std::uint64_t contents = contents_of_constants(network);
  for (const stored_entry& e : store.list({.backend = stored_errors_backend})) {
    const std::vector<std::uint64_t>& of = e.key.computes;  // as in stored_key_of
    if (of.size() != 4 || of[0] != network.fingerprint() || of[1] != contents) continue;
    const std::string type = e.key.precision.substr(0, e.key.precision.find(' '));  // its rounding begins with it
    for (const detail::element_name& known : detail::element_names) {
      if (type != name_of(known.type)) continue;
      kept_error& kept = newest[{static_cast<std::uint32_t>(of[3]), known.type}];
      if (e.cost.when_s >= kept.when_s) kept = {e.cost.when_s, from_stored(e.cost).nmse};
    }
  }
  if (newest.empty()) return {};
  const auto errors = std::make_shared<rounding_errors>();
  for (const auto& [of, kept] : newest) errors->set(of.value, of.element, kept.nmse);
  return errors;
}

}  // namespace collage::inline v0
