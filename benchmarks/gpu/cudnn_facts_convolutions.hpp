// For cudnn_facts: convolutions alone, with what follows them, and by each mode of the heuristics.
#pragma once

#include "cudnn_facts_engines.hpp"
#include "cudnn_facts_shapes.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace facts {

inline const char* layout_name(bool nhwc) { return nhwc ? "nhwc" : "nchw"; }
inline const char* type_name(cudnnDataType_t type) { return type == CUDNN_DATA_FLOAT ? "float" : "bf16"; }

inline std::string fusion_name(const std::string& fused) {
  std::string name = "conv";
  for (const char c : fused) {
    if (c == 'b') name += "+bias";
    if (c == 'z') name += "+residual";
    if (c == 'r') name += "+relu";
    if (c == 'c') name += "+clip6";
    if (c == 'm') name += "+min6";
    if (c == 's') name += "+swish";
  }
  return name;
}

inline void plain(session& s, const std::vector<conv_case>& cases, cudnnDataType_t type) {
  for (const conv_case& c : cases)
    for (const bool nhwc : {true, false}) {
      const row r{"conv", c.name, layout_name(nhwc), type_name(type), "conv"};
      guarded(s, r, [&] {
        operation_graph graph(nhwc);
        add_conv(graph, c, type, "");
        try_engines(s, r, graph, CUDNN_HEUR_MODE_A, s.asked.engines);
      });
    }
}

inline void fusions(session& s, bool nhwc, cudnnDataType_t type) {
  for (const char* fused : {"br", "b", "bzr", "zbr", "bc", "brm", "bs"})
    for (const conv_case& c : fusion_cases) {
      row r{"fusion", c.name, layout_name(nhwc), type_name(type), fusion_name(fused)};
      guarded(s, r, [&] {
        std::size_t working = 0;
        for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
          if (working > 0) continue;
          r.kind = mode == CUDNN_HEUR_MODE_A ? "fusion" : "fallback_fusion";
          operation_graph graph(nhwc);
          add_conv(graph, c, type, fused);
          working = try_engines(s, r, graph, mode, 3);
        }
      });
    }
}

inline void compare_modes(session& s) {
  const std::vector<std::pair<cudnnBackendHeurMode_t, const char*>> modes{{CUDNN_HEUR_MODE_A, "modeA_conv"},
                                                                          {CUDNN_HEUR_MODE_B, "modeB_conv"},
                                                                          {CUDNN_HEUR_MODE_FALLBACK, "fallback_conv"}};
  for (const conv_case& c : fusion_cases)
    for (const auto& [mode, kind] : modes) {
      const row r{kind, c.name, "nhwc", "float", "conv"};
      guarded(s, r, [&, mode = mode] {
        operation_graph graph(true);
        add_conv(graph, c, CUDNN_DATA_FLOAT, "");
        try_engines(s, r, graph, mode, 6);
        const auto all = graph.whole.get<std::int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 1);
        std::printf("# %s %s: engines of the graph in all %lld\n", r.kind.c_str(), c.name,
                    static_cast<long long>(all.at(0)));
      });
    }
}

}  // namespace facts
