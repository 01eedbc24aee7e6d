// The options and arguments of the command line.
#pragma once

#include <collage/place.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace program {

struct options {
  std::string network;                ///< NET as given: zoo:NAME or the name of a file
  std::vector<std::string> shapes;    ///< of inputs: NAME=1x3x224x224
  std::vector<std::string> bindings;  ///< inputs that become constants: NAME=FILE.npy
  std::vector<std::string> backends;  ///< empty: all
  int threads = 0;                    ///< 0: not given
  std::uint64_t seed = 1;
  collage::placing_costs costs = collage::placing_costs::measured;  ///< --place
  bool json = false;
  bool quiet = false;
  std::string plan_file;
  std::vector<std::string> pins, exclusions;  ///< WHAT=BACKEND
  double budget_s = 0;                        ///< for placing; 0: no limit
  double autotune_s = 0;                      ///< for searching whole spaces of configurations; 0: do not
  double regions_s = 30;                      ///< for the search over regions; 0: do not search
  bool recheck = false, complete = false;     ///< as in the groups of place_options
  bool keep_non_finite = false;               ///< as in place_options; a given plan must have it too
  std::string algorithms;                     ///< as in place_options; empty: accurate ones, or those of a given plan
  std::string precision, error;               ///< as in place_options, such as bf16 and 1%; empty: not given
  std::vector<std::string> kept;              ///< what stays in float32, as in place_options
  std::string known_ranges;                   ///< a file of ranges, for integers of 8 bits; empty: none
  bool requantise = false;                    ///< of tune: precision and ranges of a quantised file are free
  std::string curve_file;                     ///< of tune: a picture of time over errors; empty: none
  std::string memory;                         ///< for weights: 1.5x or 200MB; empty: as place_options has it
  bool accept_version_change = false;
  bool verbose = false;  ///< with --version
  // diff and report
  std::string other_plan_file;
  // report
  std::string report_file;
  double peak_gflops = 0, bandwidth_gbytes = 0;  ///< of the machine, per second; 0: not given
  // backends
  bool coverage = false, all = false;
  // inspect
  std::string dot_file;
  // explain
  bool program = false;
  // run and verify
  std::vector<std::string> inputs;  ///< NAME=FILE.npy or NAME=random
  std::string output_folder;
  // verify
  std::vector<std::string> buckets;   ///< of open extents: T=64,128,256
  std::vector<std::string> paddings;  ///< of inputs, for buckets: NAME=VALUE
  std::vector<std::string> cuts;      ///< of outputs, for buckets: NAME[1]=T/8 or NAME[1]=(T+7)/8
  bool profile = false;
  std::string trace_file;  ///< also of bench; empty: none
  // calibrate
  std::string data;                ///< a file or folder; empty: none
  std::uint64_t sample_count = 0;  ///< of random samples; 0: none
  std::string ranges_file;
  std::vector<std::string> merged_files;  ///< empty: the network is run
  std::string method, schema;             ///< empty: the usual ones, or those of the first merged file
  double percentile = 0;                  ///< in percent; 0: not given
  bool per_channel = false;
  // bench
  double seconds = 10;
  // replay
  std::vector<std::string> networks;  ///< empty: all
  std::string costs_file, data_folder;
  // store
  std::string store_action;   ///< list, show, prune, export, import, merge, check
  std::string store_file;     ///< empty: the default one
  std::string store_word;     ///< the text to list or show by, or the other file
  std::string store_backend;  ///< empty: all
  int older_than_days = -1;   ///< -1: not given
  bool refused = false, other_machines = false, damaged = false;
};

}  // namespace program
