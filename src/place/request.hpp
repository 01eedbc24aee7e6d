// Requests to workers: a network of one group, its candidates and how they are measured, as a file.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/kind.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/measuring.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/node_group.hpp>
#include <collage/set/candidate.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "attribute_fit.hpp"
#include "sub_graph.hpp"
#include "wire.hpp"

namespace collage::inline v0::detail {

/// The work of one request: a group, its candidates, and how they are measured.
struct measuring_request {
  sub_graph group;
  measuring_setup setup;
  std::optional<drift_options> drift;  ///< nothing: the machine is not watched
};

/// A request as a file: the head, and where in the file the contents of constants go. They are aligned to 64 bytes, and 64
/// bytes behind them are readable, so that kernels read them where they are.
struct request_file {
  struct part {
    std::size_t at = 0;
    std::span<const std::byte> bytes;
  };
  std::vector<std::byte> head;
  std::vector<part> parts;
  std::size_t size = 0;
};

/// At the front of a request: what it is, its checksum over what follows, and how long the head is.
inline constexpr std::uint64_t request_mark = 0x6567616C6C6F6303;
inline constexpr std::size_t request_front_bytes = 24;

inline void put(byte_writer& to, const tensor_type& type) {
  to.put(static_cast<std::uint64_t>(type.type));
  to.put(std::uint64_t{type.dims.rank});
  for (const std::int64_t extent : type.dims) to.put(extent);
}
inline tensor_type get_type(byte_reader& from) {
  tensor_type type;
  const std::size_t number = from.get_count(static_cast<std::uint64_t>(dtype::f4e2m1));
  if (number < static_cast<std::size_t>(dtype::f32)) refuse_message("an element type in it does not exist");
  type.type = static_cast<dtype>(number);
  const std::size_t rank = from.get_count(shape::max_rank);
  for (std::size_t i = 0; i < rank; ++i)
    type.dims.push_back(static_cast<std::int64_t>(from.get_count(std::uint64_t{1} << 48)));
  if (is_too_large(type.dims)) refuse_message("a tensor in it is too large");
  return type;
}

inline request_file write_request(const measuring_request& request, backend_table backends) {
  const graph& network = request.group.network;
  byte_writer to;
  to.put(request_mark);
  to.put(std::uint64_t{0});  // the checksum
  to.put(std::uint64_t{0});  // the head's length
  to.put(static_cast<std::uint64_t>(request.setup.threads));
  to.put(request.setup.seed);
  to.put(std::uint64_t{request.setup.fence});
  to.put(std::uint64_t{request.setup.keep_non_finite});
  to.put(static_cast<std::uint64_t>(request.setup.algorithms));
  put(to, request.setup.timing);
  to.put(request.setup.slot_ms);
  to.put(std::uint64_t{request.setup.needs_all});
  to.put(std::uint64_t{request.drift.has_value()});
  if (request.drift) put(to, *request.drift);

  request_file file;
  std::vector<std::size_t> offsets;  // in the head, where to write where contents are
  to.put(std::uint64_t{network.values().size()});
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    const value_record& r = network.at(v);
    if (r.role == value_role::computed) {
      const auto n = static_cast<std::uint32_t>(r.producer);
      if (network.view().output_of(n) != v) continue;
      to.put(static_cast<std::uint64_t>(r.role));
      to.put(network.node_name(n));
      to.put(network.node(n).kind->id);
      const auto operands = network.view().inputs_of(n);
      to.put(std::uint64_t{operands.size()});
      for (const std::uint32_t operand : operands) to.put(std::uint64_t{operand});
      const auto words = network.view().words_of(n);
      to.put(std::uint64_t{words.size()});
      for (const std::uint64_t word : words) to.put(word);
      to.put(std::uint64_t{network.node(n).outputs});
      for (std::uint32_t i = 0; i < network.node(n).outputs; ++i) to.put(std::uint64_t{network.at(v + i).is_output});
      continue;
    }
    to.put(static_cast<std::uint64_t>(r.role));
    to.put(network.value_name(v));
    put(to, r.type);
    if (r.role == value_role::input) continue;
    const constant_data& data = network.constant(v);
    to.put(static_cast<std::uint64_t>(data.source));
    to.put(data.fill.low);
    to.put(data.fill.high);
    offsets.push_back(to.size());
    to.put(std::uint64_t{0});
    file.parts.push_back({0, network.bytes_of(v)});
  }

  to.put(std::uint64_t{request.group.candidates.list.size()});
  for (const place_candidate& c : request.group.candidates.list) {
    to.put(std::string(backends[c.backend].name));
    to.put(std::uint64_t{c.is_by_rule()});
    to.put(std::string(pattern_name(backends, c.backend, c.pattern)));
    to.put(c.configuration.text());
    to.put(std::uint64_t{c.root});
  }

  const auto aligned = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
  std::size_t at = aligned(to.size());
  for (std::size_t i = 0; i < file.parts.size(); ++i) {
    file.parts[i].at = at;
    to.replace(offsets[i], at);
    at = aligned(at + file.parts[i].bytes.size());
  }
  file.size = at + 64;
  to.replace(16, to.size());
  to.replace(8, checksum(to.bytes().subspan(16)));
  file.head.assign(to.bytes().begin(), to.bytes().end());
  return file;
}

/// Returns the operator kind with an id, or null if it does not know the id.
using kind_finder = std::function<const kind_info*(std::uint64_t id)>;

/// Reads a request. `file` is aligned to 64 bytes, and `owner` keeps it alive. Throws if any part of it is invalid.
class request_reader {
 public:
  request_reader(std::span<const std::byte> file, std::shared_ptr<const std::byte> owner, backend_table backends,
                 const kind_finder& find_kind)
      : file_(file), owner_(std::move(owner)), backends_(backends), find_kind_(find_kind), from_(open()) {}

  measuring_request read() {
    measuring_setup& setup = request_.setup;
    setup.threads = static_cast<int>(from_.get_count(1U << 16));
    if (setup.threads < 1) refuse_message("it requests no threads");
    setup.seed = from_.get<std::uint64_t>();
    setup.fence = from_.get_flag();
    setup.keep_non_finite = from_.get_flag();
    setup.algorithms = static_cast<algorithms>(from_.get_count(static_cast<std::uint64_t>(algorithms::all)));
    setup.timing = get_timing_options(from_);
    setup.slot_ms = from_.get_amount();
    setup.needs_all = from_.get_flag();
    if (from_.get_flag()) request_.drift = get_drift_options(from_);
    read_graph();
    read_candidates();
    from_.expect_end();
    return std::move(request_);
  }

 private:
  byte_reader open() const {
    byte_reader front(file_);
    if (front.get<std::uint64_t>() != request_mark) refuse_message("it is no request");
    const auto sum = front.get<std::uint64_t>();
    const std::size_t size = front.get_count(file_.size());
    if (size < request_front_bytes) refuse_message("its head is too short");
    if (checksum(file_.subspan(16, size - 16)) != sum) refuse_message("its checksum is wrong");
    return byte_reader(file_.subspan(request_front_bytes, size - request_front_bytes));
  }

  std::shared_ptr<const std::byte> read_contents(const tensor_type& type) {
    const std::size_t at = from_.get_count(file_.size());
    if (at % 64 != 0 || file_.size() - at < 64 || file_.size() - at - 64 < type.bytes())
      refuse_message("the contents of a constant lie outside of it");
    return {owner_, file_.data() + at};
  }

  void read_graph() {
    graph_builder to;
    std::vector<std::uint32_t> outputs;
    const std::size_t values = from_.get_items();
    for (std::size_t v = 0; v < values;) {
      const auto role = static_cast<value_role>(from_.get_count(2));
      const std::string name = from_.get_text();
      if (role == value_role::computed) {
        v += read_node(to, name, values - v, outputs);
        continue;
      }
      const tensor_type type = get_type(from_);
      if (role == value_role::input) to.input(name, type);
      else read_constant(to, name, type);
      ++v;
    }
    for (const std::uint32_t v : outputs) to.output({v});
    request_.group.network = to.finish();
  }

  void read_constant(graph_builder& to, const std::string& name, const tensor_type& type) {
    const auto source = static_cast<contents_source>(from_.get_count(2));
    const float low = from_.get_float(), high = from_.get_float();
    const std::shared_ptr<const std::byte> contents = read_contents(type);
    if (source == contents_source::given) {
      to.constant(name, type, contents);
      return;
    }
    graph_builder one;
    one.add_constant(name, type, source, {low, high});
    graph bound = one.finish();
    bound.set_bytes(0, contents);
    to.constant(bound, 0);
  }

  std::size_t read_node(graph_builder& to, const std::string& name, std::size_t most,
                        std::vector<std::uint32_t>& outputs) {
    const auto id = from_.get<std::uint64_t>();
    const kind_info* kind = find_kind_(id);
    if (kind == nullptr)
      throw error(error_kind::unsupported, "its operator kind is not known to workers", "node " + name,
                  "pass the kind where collage::worker is called");
    std::vector<value> operands(from_.get_items());
    for (value& operand : operands) operand = {from_.get<std::uint32_t>()};
    attribute_words words;
    words.size = from_.get_count(max_attribute_words);
    for (std::size_t i = 0; i < words.size; ++i) words.word[i] = from_.get<std::uint64_t>();
    if (!fits(*kind, words)) refuse_message("the attributes of a node are not those of its operator");
    if (kind->bodies != 0) refuse_message("a node in it owns subgraphs");
    const std::size_t count = from_.get_items();
    if (count == 0 || count > most || kind->output_count(words.list()) != count)
      refuse_message("a node in it has another number of outputs");
    const value first = to.add(*kind, operands, words, name);
    for (std::size_t i = 0; i < count; ++i)
      if (from_.get_flag()) outputs.push_back(first.index + static_cast<std::uint32_t>(i));
    return count;
  }

  void read_candidates() {
    sub_graph& group = request_.group;
    group.candidates.groups.emplace_back();
    std::vector<std::uint32_t>& nodes = group.candidates.groups[0].nodes;
    nodes.resize(group.network.nodes().size());
    std::iota(nodes.begin(), nodes.end(), 0U);
    if (nodes.empty()) refuse_message("it has no nodes");
    group.candidates.structures.push_back({0, "group", 1});
    const std::size_t count = from_.get_items();
    if (count == 0) refuse_message("it has no candidates");
    for (std::size_t i = 0; i < count; ++i) {
      group.asked.push_back(static_cast<std::uint32_t>(i));
      group.candidates.list.push_back(read_candidate());
    }
  }

  place_candidate read_candidate() {
    const std::string backend = from_.get_text();
    const bool by_its_rule = from_.get_flag();
    const std::string pattern = from_.get_text();
    place_candidate c;
    const std::optional<configuration> how = configuration::of(from_.get_text());
    if (!how) refuse_message("a configuration in it cannot be one");
    c.configuration = *how;
    c.root = from_.get<std::uint32_t>();
    const auto refuse = [&](const char* what) {
      throw error(error_kind::unsupported, what, "pattern " + pattern + " of backend " + backend,
                  "call collage::worker with the same backends as place");
    };
    const auto entry = std::ranges::find_if(backends_, [&](const backend_entry& b) { return backend == b.name; });
    if (entry == backends_.end()) refuse("the backend is not known to workers");
    c.backend = static_cast<std::uint32_t>(entry - backends_.begin());
    const graph& network = request_.group.network;
    const auto end = static_cast<std::uint32_t>(network.nodes().size());
    if (by_its_rule) {
      c.pattern = place_candidate::rule;
      bool takes_all = entry->build_group != nullptr && c.configuration == configuration();
      for (std::uint32_t n = 0; n < end && takes_all; ++n) takes_all = takes_node(*entry, network, n);
      if (!takes_all) refuse("its fusion rule does not take the group in a worker");
      return c;
    }
    const pattern_entry* known = entry->find(pattern);
    if (known == nullptr) refuse("the pattern is not known to workers");
    c.pattern = static_cast<std::uint32_t>(known - entry->patterns.data());
    match_record record;
    verdict why;
    if (c.root >= end || candidate_at(network.view(), *known, c.root, record, why) != candidate_state::found ||
        record.nodes != end)
      refuse("it does not match the group in a worker");
    if (!judge_configuration(*known, network.view(), record, c.configuration))
      refuse("its configuration is not known to workers");
    return c;
  }

  std::span<const std::byte> file_;
  std::shared_ptr<const std::byte> owner_;
  backend_table backends_;
  const kind_finder& find_kind_;
  byte_reader from_;
  measuring_request request_;
};

}  // namespace collage::inline v0::detail
