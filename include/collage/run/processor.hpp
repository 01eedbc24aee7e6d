// The properties of this machine and this process that costs depend on.
//
// Definitions: src/process/processor.cpp (the target collage::reference).
#pragma once

#include <cstdlib>
#include <string>

namespace collage::inline v0 {

/// The processor's name and the part of its instruction set that matters to kernels, as in "AMD EPYC 9R14 (avx512)". Processors
/// of x86 give the name themselves, and it is that of /proc/cpuinfo, which other processors need.
std::string processor_name();

/// Whether the system runs on virtual processors, which a host may move; false if that is not known.
bool is_virtual_machine();

/// The number of processors on which the calling thread may run (its affinity). A quota of processor time does not count.
int allowed_processors();

/// The useful number of threads: as many as there are processors on which the calling thread and the threads it starts may run.
/// A control group's quota of processor time lowers it: a quota of 1.5 processors is worth two threads (run/limits.hpp).
int available_threads();

}  // namespace collage::inline v0
