// For cudnn_facts: small convolutions compared with the host's numbers.
#pragma once

#include "cudnn_facts_convolutions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace facts {

inline std::vector<double> convolved(const conv_case& c, const std::vector<double>& x, const std::vector<double>& w) {
  const std::int64_t n = c.size, m = c.out_of(n), k = c.kernel;
  std::vector<double> y(static_cast<std::size_t>(c.out_channels * m * m), 0.0);
  const std::int64_t in_group = c.in_channels / c.groups, out_group = c.out_channels / c.groups;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t o = 0; o < c.out_channels; ++o)
    for (std::int64_t i = o / out_group * in_group; i < (o / out_group + 1) * in_group; ++i)
      for (std::int64_t tap = 0; tap < k * k; ++tap) {
        const std::int64_t r = tap / k, q = tap % k;
        const double weight = c.transposed ? w[at((i * out_group + o % out_group) * k * k + tap)]
                                           : w[at((o * in_group + i % in_group) * k * k + tap)];
        // The smaller image is walked; its places meet the larger one's at a stride.
        const std::int64_t walked = c.transposed ? n : m, met = c.transposed ? m : n;
        for (std::int64_t a = 0; a < walked * walked; ++a) {
          const std::int64_t h = a / walked * c.stride - c.pad + r, v = a % walked * c.stride - c.pad + q;
          if (h < 0 || v < 0 || h >= met || v >= met) continue;
          if (c.transposed) y[at(o * m * m + h * m + v)] += weight * x[at(i * n * n + a)];
          if (!c.transposed) y[at(o * m * m + a)] += weight * x[at(i * n * n + h * n + v)];
        }
      }
  return y;
}

inline void follow(std::vector<double>& y, char what, const std::vector<double>& other) {
  const std::size_t per_channel = what == 'b' ? y.size() / other.size() : 1;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (what == 'b' || what == 'z') y[i] += other[i / per_channel];
    if (what == 'r') y[i] = std::max(y[i], 0.0);
    if (what == 'c') y[i] = std::min(std::max(y[i], 0.0), 6.0);
    if (what == 'm') y[i] = std::min(y[i], 6.0);
    if (what == 's') y[i] /= 1 + std::exp(-y[i]);
  }
}

/// The operands' numbers, written to the device, and what the host makes of them.
inline std::vector<double> wanted_of(session& s, operands& memory, const operation_graph& graph, const conv_case& c,
                                     const std::string& fused) {
  std::vector<std::vector<double>> values;
  std::uint32_t state = 1;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    std::vector<double>& made = values.emplace_back(static_cast<std::size_t>(graph.tensors[t].elements()));
    for (double& v : made) v = static_cast<double>((state = state * 1664525U + 1013904223U) >> 8) / 8388608.0 - 1;
    const bool stored = !graph.tensors[t].is_virtual && !graph.tensors[t].by_value;
    if (stored && s.device) memory.write(t, made);
  }
  std::vector<double> wanted = convolved(c, values[0], values[1]);
  std::size_t next = 3;
  for (const char f : fused) {
    const bool with_other = f == 'b' || f == 'z' || f == 'm';
    follow(wanted, f, with_other ? values[next] : wanted);
    next += with_other ? 2 : 1;
  }
  return wanted;
}

/// Runs a plan once: the largest difference from `wanted` over the largest number there.
inline double error_of(session& s, operands& memory, std::size_t output, const built_plan& made,
                       const std::vector<double>& wanted) {
  double error = 0, largest = 0;
  for (const double v : wanted) largest = std::max(largest, std::abs(v));
  memory.clear(output);
  const descriptor pack = memory.pack(made.workspace);
  execute(s, made.plan, pack, 1);
  s.device->finish();
  const std::vector<double> got = memory.read(output);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(got[i] - wanted[i]) / largest;
    error = std::isnan(off) ? std::numeric_limits<double>::infinity() : std::max(error, off);
  }
  return error;
}

/// Every engine config of one case, at most three of each precision. The error is -1 in a dry run.
inline void check_case(session& s, const row& r, const conv_case& c, cudnnDataType_t type, const std::string& fused) {
  operation_graph graph(r.layout == "nhwc");
  add_conv(graph, c, type, fused);
  graph.finish(s.handle);
  operands memory(s, graph);
  const std::vector<double> wanted = wanted_of(s, memory, graph, c, fused);
  const std::vector<descriptor> configs = engine_configs(s, graph, CUDNN_HEUR_MODE_A);
  std::map<std::string, int> tried;
  for (std::size_t i = 0; i < configs.size() && s.in_time(); ++i) {
    row mine = r;
    engine_facts engine;
    try {
      engine = facts_of(configs[i]);
      mine.precision = precision_of(r, engine);
      if (tried[mine.precision]++ >= 3) continue;
      const built_plan made = build(s, configs[i]);
      const double error = s.device ? error_of(s, memory, graph.tensors.size() - 1, made, wanted) : -1;
      std::array<char, 64> text{};
      std::snprintf(text.data(), text.size(), "relative_error=%.3g ", error);
      print(mine, engine.index, made.workspace, nullptr, text.data() + engine.notes);
    } catch (const std::runtime_error& e) {
      print(mine, engine.index, -1, nullptr, std::string("FAILED: ") + e.what());
      s.expect_context();
    }
  }
  if (configs.empty()) print(r, -1, -1, nullptr, "FAILED: no engine config");
}

inline void check_all(session& s) {
  for (const auto type : {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16})
    for (const bool nhwc : {true, false})
      for (const conv_case& c : check_cases)
        for (const char* fused : {"", "br", "bzr", "zbr", "bc", "brm", "bs"}) {
          if (*fused != '\0' && (c.groups > 1 || c.transposed || c.stride > 1)) continue;
          const row r{"check", c.name, layout_name(nhwc), type_name(type), fusion_name(fused)};
          guarded(s, r, [&] { check_case(s, r, c, type, fused); });
        }
}

}  // namespace facts
