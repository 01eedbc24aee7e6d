// Charts of a report as SVG.
#pragma once

#include <cstddef>
#include <vector>
#include "facts.hpp"
#include "markup.hpp"

namespace collage::inline v0::report {

/// Bytes of the host's arena that are in use at each instruction of a program.
std::vector<std::size_t> arena_steps(const program& code);

/// The arena over the steps of a run, with a sentence about the step that needs most.
html arena_chart(const facts& all);
/// FLOP per second against FLOP per byte, a mark for each group.
html roofline_chart(const facts& all);
/// The mark of a backend in that chart.
html mark_of(const facts& all, std::size_t runner);
/// The times of the placements that ran end to end: the middle 80 % of the runs as a bar, the median as a line.
html runs_chart(const facts& all);
/// The sum of the kernels' times alone, the sum within the network, and the time of a whole run.
html costs_chart(const facts& all);
/// The shares of the backends in the plan's time, as one bar with a legend.
html shares_bar(const facts& all);

}  // namespace collage::inline v0::report
