/* Growing contexts in C: caches that grow, are shortened and restored, and what callers do wrong: growing_test STATE_MODEL. The model is
 * the third of make_model.py. */
#include "check.h"

#include <collage_session.h>
#include <collage_trace.h>
#include <math.h>
#include <stdint.h>

enum { in = 4, out = 3, most_rows = 16 };
#define F32 COLLAGE_DTYPE_F32

static const collage_place_options quickly = {
    .struct_size = sizeof quickly, .how = COLLAGE_PLACE_PRIORITY, .threads = 1};
static const int64_t any_rows[] = {-1, out};
static const collage_cache past[] = {{"past", "present", 0, 2, any_rows}};
static const int64_t capacities[] = {8, 2, 16};
static const collage_growing_options growing = {
    .struct_size = sizeof growing, .caches = past, .cache_count = 1, .capacities = capacities, .capacity_count = 3};

static collage_tensor matrix(const float* data, int64_t rows, int64_t columns) {
  return (collage_tensor){F32, 2, {rows, columns}, data, (size_t)(rows * columns) * sizeof *data};
}

/* Row `row` of relu(x w + b) for an x whose elements are all `row`; h is zero. */
static double wanted(int row, int column) {
  double sum = column / 2.0 - 0.5;
  for (int i = 0; i < in; ++i) sum += row * ((3 * i + column) / 4.0 - 1);
  return fmax(sum, 0);
}

static bool run(collage_growing_context* context, int row) {
  float x[in], h[out] = {0};
  for (int i = 0; i < in; ++i) x[i] = (float)row;
  const collage_tensor inputs[] = {matrix(x, 1, in), matrix(h, 1, out)};
  return DONE(collage_growing_context_run(context, inputs, 2, NULL));
}

static bool holds(collage_growing_context* context, int rows) {
  collage_growing_info info = {.struct_size = sizeof info};
  collage_tensor found, output;
  const char* name = NULL;
  if (!DONE(collage_growing_context_get_info(context, &info)) ||
      !DONE(collage_growing_context_cache(context, "past", &found)) ||
      !DONE(collage_growing_context_output(context, 0, &name, &output)))
    return false;
  CHECK(info.inputs == 2 && info.outputs == 1 && info.length == rows && info.capacity >= rows);
  CHECK(strcmp(name, "h_next") == 0 && output.rank == 2 && output.extents[0] == 1);
  if (found.dtype != F32 || found.rank != 2 || found.extents[0] != rows || found.extents[1] != out) return false;
  for (int i = 0; i < rows * out; ++i)
    if (fabs((double)((const float*)found.data)[i] - wanted(i / out, i % out)) > 1e-3) return false;
  return true;
}

/* A traced run is as a run. */
static void traced(const collage_session* session) {
  collage_growing_context* context = NULL;
  collage_trace* trace = NULL;
  if (!DONE(collage_growing_context_create(session, &growing, &context)) || !DONE(collage_trace_create(NULL, &trace)))
    return;
  const float x[in] = {1, 1, 1, 1}, h[out] = {0};
  const collage_tensor inputs[] = {matrix(x, 1, in), matrix(h, 1, out)};
  CHECK(run(context, 0));
  DONE(collage_growing_context_run_traced(context, inputs, 2, NULL, trace));
  CHECK(holds(context, 2) && run(context, 2) && holds(context, 3));
  collage_trace_info info = {.struct_size = sizeof info};
  DONE(collage_trace_get_info(trace, &info));
  CHECK(info.runs == 1 && info.events > 0);
  MISUSED(collage_growing_context_run_traced(context, inputs, 1, NULL, trace), "takes 2 inputs");
  MISUSED(collage_growing_context_run_traced(context, inputs, 2, NULL, NULL), "trace is NULL");
  collage_growing_context_release(context);
  collage_trace_release(trace);
}

static void grows(const collage_session* session) {
  collage_growing_context* context = NULL;
  if (!DONE(collage_growing_context_create(session, &growing, &context))) return;
  for (int row = 0; row < most_rows; ++row) CHECK(run(context, row) && holds(context, row + 1));
  float x[in] = {0}, h[out] = {0};
  const collage_tensor inputs[] = {matrix(x, 1, in), matrix(h, 1, out)};
  MISUSED(collage_growing_context_run(context, inputs, 2, NULL), "the largest capacity is 16");
  collage_growing_info full = {.struct_size = sizeof full};
  CHECK(DONE(collage_growing_context_get_info(context, &full)) && full.length == most_rows);
  collage_tensor lost;
  MISUSED(collage_growing_context_output(context, 0, NULL, &lost), "without a run that succeeded");
  CHECK(DONE(collage_growing_context_shorten(context, 3)) && run(context, 3) && holds(context, 4));

  float kept[5 * out];
  for (int i = 0; i < 5 * out; ++i) kept[i] = (float)wanted(i / out, i % out);
  const collage_tensor five = matrix(kept, 5, out);
  CHECK(DONE(collage_growing_context_restore(context, &five, 1)) && run(context, 5) && holds(context, 6));
  CHECK(DONE(collage_growing_context_reset(context)) && run(context, 0) && holds(context, 1));
  collage_growing_context_release(context);

  collage_session_info info = {.struct_size = sizeof info};
  CHECK(DONE(collage_session_get_info(session, &info)) && info.made == 3); /* one for each capacity */
}

static void wrong(const collage_session* session) {
  collage_growing_context* context = NULL;
  MISUSED(collage_growing_context_create(NULL, &growing, &context), "session");
  MISUSED(collage_growing_context_create(session, NULL, &context), "capacities: there are none");
  MISUSED(collage_growing_context_create(session, &growing, NULL), "context");
  collage_growing_options other = growing;
  const collage_cache unknown[] = {{"past", "y", 0, 0, NULL}};
  other.caches = unknown;
  MISUSED(collage_growing_context_create(session, &other, &context), "the network has no y");
  other.caches = NULL;
  MISUSED(collage_growing_context_create(session, &other, &context), "caches");
  CHECK(context == NULL);

  if (!DONE(collage_growing_context_create(session, &growing, &context))) return;
  collage_tensor found;
  collage_open_port port = {.struct_size = sizeof port};
  CHECK(DONE(collage_growing_context_input(context, 1, &port)) && strcmp(port.name, "h") == 0);
  MISUSED(collage_growing_context_input(context, 2, &port), "input");
  MISUSED(collage_growing_context_cache(context, "past", &found), "has no shape before the first run");
  MISUSED(collage_growing_context_output(context, 0, NULL, &found), "without a run that succeeded");
  MISUSED(collage_growing_context_run(context, NULL, 0, NULL), "a run takes 2 inputs");
  MISUSED(collage_growing_context_restore(context, NULL, 0), "there are 1 caches");
  MISUSED(collage_growing_context_shorten(context, 1), "they have 0 elements");
  MISUSED(collage_growing_context_reset((collage_growing_context*)(uintptr_t)session), "session");
  MISUSED(collage_session_context_reset((collage_session_context*)(uintptr_t)context), "growing context");
  collage_growing_context_release(context);
  collage_growing_context_release(NULL);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const char* json = NULL;
  DONE(collage_system_json(&json));
  if (strstr(json, "\"onnx\": true") == NULL) return 0;
  const collage_session_options how = {.struct_size = sizeof how, .placing = &quickly};
  collage_session* session = NULL;
  if (DONE(collage_session_from_file(argv[1], &how, &session))) {
    wrong(session);
    traced(session);
    grows(session);
  }
  collage_session_release(session);
  if (failures == 0) printf("caches grow\n");
  return failures == 0 ? 0 : 1;
}
