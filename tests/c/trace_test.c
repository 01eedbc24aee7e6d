/* Traces in C: trace_test MODEL STATE_MODEL FOLDER. The models are the second and third of make_model.py. Another test checks the
 * files that this one leaves in the folder. */
#include "check.h"

#include <collage_trace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 2, in = 4, out = 3, threads = 3, runs = 20 };
#define F32 COLLAGE_DTYPE_F32

static const collage_place_options quickly = {
    .struct_size = sizeof quickly, .how = COLLAGE_PLACE_PRIORITY, .threads = 1};

static collage_engine* make_engine(const char* model, bool releases) {
  const int64_t extents[] = {rows, in};
  const collage_input_shape shape = {.input = "x", .extents = extents, .rank = 2};
  const collage_network_options options = {.struct_size = sizeof options, .shapes = &shape, .shape_count = 1};
  const collage_engine_options how = {.struct_size = sizeof how, .release_weights = releases};
  collage_network* network = NULL;
  collage_plan* plan = NULL;
  collage_engine* engine = NULL;
  DONE(collage_network_from_file(model, &options, &network));
  DONE(collage_plan_place(network, &quickly, &plan));
  DONE(collage_engine_create(plan, &how, &engine));
  collage_plan_release(plan);
  collage_network_release(network);
  return engine;
}

static collage_context* make_context(const collage_engine* engine) {
  collage_context* context = NULL;
  void* memory = NULL;
  DONE(collage_context_create(engine, NULL, &context));
  DONE(collage_context_input(context, 0, &memory));
  DONE(collage_context_output(context, 0, &memory));
  return context;
}

static collage_trace_info info_of(const collage_trace* trace) {
  collage_trace_info info = {.struct_size = sizeof info};
  DONE(collage_trace_get_info(trace, &info));
  return info;
}

static void one_context(const char* model, const char* folder) {
  collage_engine* engine = make_engine(model, true);
  collage_context* context = make_context(engine);
  const collage_trace_options options = {.struct_size = sizeof options, .process = "a \"process\"\n"};
  collage_trace* trace = NULL;
  DONE(collage_trace_create(&options, &trace));
  DONE(collage_context_run_traced(context, NULL, trace));
  const collage_run_limits soon = {.struct_size = sizeof soon, .seconds = 60};
  const collage_run_limits over = {.struct_size = sizeof over, .seconds = -1};
  DONE(collage_context_run_traced(context, &soon, trace));
  CHECK(collage_context_run_traced(context, &over, trace) == COLLAGE_CANCELLED);
  CHECK(strstr(collage_last_error(), "before step 1 of") != NULL);
  collage_engine_info engine_info = {.struct_size = sizeof engine_info};
  DONE(collage_engine_get_info(engine, &engine_info));
  CHECK(info_of(trace).runs == 3 && info_of(trace).dropped_runs == 0);
  CHECK(info_of(trace).events == 3 + 2 * engine_info.steps);

  const char* json = NULL;
  DONE(collage_trace_json(trace, &json));
  CHECK(strstr(json, "a \\\"process\\\"\\n") != NULL);
  CHECK(strstr(json, "\"failed\": true") != NULL);
  char path[4096];
  snprintf(path, sizeof path, "%s/one.json", folder);
  DONE(collage_trace_save(trace, path));
  MISUSED(collage_trace_save(trace, "nowhere/trace.json"), "cannot be written");
  MISUSED(collage_trace_save(trace, NULL), "path is NULL");
  MISUSED(collage_trace_json(trace, NULL), "json is NULL");
  MISUSED(collage_context_run_traced(context, NULL, NULL), "trace is NULL");
  MISUSED(collage_context_run_traced(context, NULL, (collage_trace*)context), "trace is a handle of a context");
  collage_trace_release(trace);
  collage_trace_release(NULL);
  collage_context_release(context);
  collage_engine_release(engine);
}

/* A trace that is full drops whole runs. */
static void full_trace(const char* model) {
  collage_engine* engine = make_engine(model, false);
  collage_context* context = make_context(engine);
  const collage_trace_options options = {.struct_size = sizeof options, .most_events = 5};
  collage_trace* trace = NULL;
  DONE(collage_trace_create(&options, &trace));
  for (int i = 0; i < runs; ++i) DONE(collage_context_run_traced(context, NULL, trace));
  const collage_trace_info info = info_of(trace);
  CHECK(info.events <= 5 && info.runs >= 1 && info.runs + info.dropped_runs == runs);
  collage_trace_release(trace);
  collage_context_release(context);
  collage_engine_release(engine);
}

typedef struct shared {
  const collage_engine* engine;
  collage_trace* trace;
} shared;

static void* run_often(void* data) {
  const shared* with = data;
  collage_context* context = make_context(with->engine);
  for (int i = 0; i < runs; ++i) DONE(collage_context_run_traced(context, NULL, with->trace));
  collage_context_release(context);
  return NULL;
}

static void several_threads(const char* model, const char* folder) {
  collage_engine* engine = make_engine(model, false);
  collage_trace* trace = NULL;
  DONE(collage_trace_create(NULL, &trace));
  shared with = {engine, trace};
  pthread_t list[threads];
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&list[i], NULL, run_often, &with) == 0);
  for (int i = 0; i < threads; ++i) pthread_join(list[i], NULL);
  CHECK(info_of(trace).runs == threads * runs);
  char path[4096];
  snprintf(path, sizeof path, "%s/threads.json", folder);
  DONE(collage_trace_save(trace, path));
  collage_trace_release(trace);
  collage_engine_release(engine);
}

/* Two shapes make two engines; a traced run is as a run. */
static void session(const char* model, const char* folder) {
  static const collage_carried carried[] = {{"present", "past"}, {"h_next", "h"}};
  const collage_session_options options = {
      .struct_size = sizeof options, .placing = &quickly, .carried = carried, .carried_count = 2};
  collage_session* session = NULL;
  collage_session_context* context = NULL;
  collage_trace* trace = NULL;
  DONE(collage_session_from_file(model, &options, &session));
  DONE(collage_session_context_create(session, &context));
  DONE(collage_trace_create(NULL, &trace));
  const float x[8 * in] = {0};
  for (int64_t n = 2; n <= 8; n += 6) {
    const collage_tensor tensor = {F32, 2, {n, in}, x, (size_t)n * in * sizeof *x};
    DONE(collage_session_context_reset(context));
    DONE(collage_session_context_run_traced(context, &tensor, 1, NULL, trace));
    DONE(collage_session_context_run(context, &tensor, 1, NULL));
    const collage_run_limits soon = {.struct_size = sizeof soon, .seconds = 60};
    DONE(collage_session_context_run_traced(context, &tensor, 1, &soon, trace));
  }
  CHECK(info_of(trace).runs == 4); /* the plain runs are not in it */
  const char* json = NULL;
  DONE(collage_trace_json(trace, &json));
  CHECK(strstr(json, "x float32[2x4]") != NULL && strstr(json, "x float32[8x4]") != NULL);
  char path[4096];
  snprintf(path, sizeof path, "%s/session.json", folder);
  DONE(collage_trace_save(trace, path));
  MISUSED(collage_session_context_run_traced(context, NULL, 0, NULL, trace), "takes 1 inputs");
  MISUSED(collage_session_context_run_traced(context, NULL, 0, NULL, NULL), "trace is NULL");
  collage_session_context_release(context);
  collage_trace_release(trace);
  collage_session_release(session);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  one_context(argv[1], argv[3]);
  full_trace(argv[1]);
  several_threads(argv[1], argv[3]);
  session(argv[2], argv[3]);
  return failures != 0;
}
