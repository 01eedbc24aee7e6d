/*
 * collage_trace.h: where the time of runs goes, as a file that https://ui.perfetto.dev and chrome://tracing show. It belongs to
 * collage.h and collage_session.h, whose conventions hold here: errors, ownership, threads and structs that grow.
 *
 *   collage_trace* trace = NULL;
 *   if (collage_trace_create(NULL, &trace) != COLLAGE_OK ||
 *       collage_context_run_traced(context, NULL, trace) != COLLAGE_OK ||
 *       collage_trace_save(trace, "trace.json") != COLLAGE_OK)
 *     fprintf(stderr, "%s\n", collage_last_error());
 *   collage_trace_release(trace);
 *
 * Threads. Any number of threads may run into one trace, each with a context of its own. Runs that are not traced cost nothing.
 */
#ifndef COLLAGE_TRACE_H
#define COLLAGE_TRACE_H

#include <collage_session.h>

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct collage_trace collage_trace;

typedef struct collage_trace_options {
  size_t struct_size;
  const char* process;  /* the name of the process in the trace; NULL: the name of the running program */
  uint64_t most_events; /* runs are dropped once they would have more events in all, of 32 bytes each; 0: 1,000,000 */
} collage_trace_options;

/* Makes an empty trace. Its clock begins now. `options` may be NULL. */
COLLAGE_API collage_status collage_trace_create(const collage_trace_options* options,
                                                collage_trace** trace) COLLAGE_NOEXCEPT;

COLLAGE_API void collage_trace_release(collage_trace* trace) COLLAGE_NOEXCEPT;

/* The same as collage_context_run_limited, and adds the run to the trace. `limits` may be NULL. A run that fails or is cancelled is
 * added as far as it came. */
COLLAGE_API collage_status collage_context_run_traced(collage_context* context, const collage_run_limits* limits,
                                                      collage_trace* trace) COLLAGE_NOEXCEPT;

/* The same as collage_session_context_run, and adds the run to the trace: its stages, the making of engines, and all steps. */
COLLAGE_API collage_status collage_session_context_run_traced(collage_session_context* context,
                                                              const collage_tensor* inputs, size_t count,
                                                              const collage_run_limits* limits,
                                                              collage_trace* trace) COLLAGE_NOEXCEPT;

/* The same as collage_growing_context_run. */
COLLAGE_API collage_status collage_growing_context_run_traced(collage_growing_context* context,
                                                              const collage_tensor* inputs, size_t count,
                                                              const collage_run_limits* limits,
                                                              collage_trace* trace) COLLAGE_NOEXCEPT;

typedef struct collage_trace_info {
  size_t struct_size;    /* set by the caller */
  uint64_t runs;         /* in the trace */
  uint64_t events;       /* in these runs */
  uint64_t dropped_runs; /* for which there was no room */
} collage_trace_info;

COLLAGE_API collage_status collage_trace_get_info(const collage_trace* trace,
                                                  collage_trace_info* info) COLLAGE_NOEXCEPT;

/* The trace as it is now, as a JSON object in the trace event format:
 *
 *   {"traceEvents": [{"ph": "X", "name", "cat", "pid", "tid", "ts", "dur", "args": {...}}, ...], "displayTimeUnit", "otherData"}
 *
 * "ts" and "dur" are microseconds since the trace was made. The category "cat" of a step is "kernel" or "conversion", and its "args"
 * are {"run", "backend", "kernel", "pattern", "label", "nodes", "bytes_read", "bytes_written", "gflops_per_s", "step", "threads"}.
 * Other categories are "run", "stage", "engine" and "late operator". The text is valid until the next call with this trace that
 * makes one, or releases it. So one thread at a time calls this with one trace. */
COLLAGE_API collage_status collage_trace_json(collage_trace* trace, const char** json) COLLAGE_NOEXCEPT;

/* Writes that text to a file in one step: another process sees the old file or the new one. */
COLLAGE_API collage_status collage_trace_save(const collage_trace* trace, const char* path) COLLAGE_NOEXCEPT;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* COLLAGE_TRACE_H */
