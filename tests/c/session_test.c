/* Sessions in C: runs at any shape, states, threads, and what callers do wrong: session_test STATE_MODEL. The model is the third of
 * make_model.py. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <collage_session.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { in = 4, out = 3, most_rows = 64 };
#define F32 COLLAGE_DTYPE_F32
#define SENTENCE(words) CHECK(strstr(collage_last_error(), words) != NULL)

static const collage_place_options quickly = {
    .struct_size = sizeof quickly, .how = COLLAGE_PLACE_PRIORITY, .threads = 1};
static const collage_carried both[] = {{"present", "past"}, {"h_next", "h"}};

static collage_tensor matrix(const float* data, int64_t rows, int64_t columns) {
  return (collage_tensor){F32, 2, {rows, columns}, data, (size_t)(rows * columns) * sizeof *data};
}

/* The states as they should be, in double precision. */
typedef struct states {
  double h[most_rows][out], past[most_rows][out];
  size_t rows, length;
} states;

/* relu(x w + b) - h, and the same below what was there. */
static void step(states* now, const float* x, size_t rows) {
  if (now->rows != rows) memset(now->h, 0, sizeof now->h);
  now->rows = rows;
  for (size_t r = 0; r < rows; ++r)
    for (int j = 0; j < out; ++j) {
      double sum = j / 2.0 - 0.5;
      for (int i = 0; i < in; ++i) sum += (double)x[r * in + (size_t)i] * ((3 * i + j) / 4.0 - 1);
      now->h[r][j] = fmax(sum, 0) - now->h[r][j];
      now->past[now->length + r][j] = now->h[r][j];
    }
  now->length += rows;
}

static bool is_near(const collage_tensor* found, double (*wanted)[out], size_t rows) {
  if (found->dtype != F32 || found->rank != 2 || found->extents[0] != (int64_t)rows || found->extents[1] != out ||
      found->extents[2] != 0 || found->bytes != rows * out * sizeof(float))
    return false;
  for (size_t i = 0; i < rows * out; ++i)
    if (fabs((double)((const float*)found->data)[i] - wanted[i / out][i % out]) > 1e-3) return false;
  return true;
}

static void fill(float* x, size_t count, unsigned seed) {
  for (size_t i = 0; i < count; ++i) x[i] = (float)((seed * 7919U + (unsigned)i * 104729U) % 257U) / 128 - 1;
}

/* Whether the states of a context and its outputs are as they should be. */
static bool agrees(const collage_session_context* context, states* wanted) {
  collage_tensor h, past, h_next, present;
  const char* name = NULL;
  return DONE(collage_session_context_state(context, "h", &h)) &&
         DONE(collage_session_context_state(context, "past", &past)) &&
         DONE(collage_session_context_output(context, 0, &name, &h_next)) && strcmp(name, "h_next") == 0 &&
         DONE(collage_session_context_output(context, 1, NULL, &present)) && h.data == h_next.data &&
         past.data == present.data && is_near(&h, wanted->h, wanted->rows) &&
         is_near(&past, wanted->past, wanted->length);
}

static void runs(const collage_session* session) {
  collage_session_context* context = NULL;
  if (!DONE(collage_session_context_create(session, &context))) return;
  float x[8 * in];
  states now = {.rows = 2};
  for (unsigned n = 0; n < 5; ++n) {
    fill(x, 2 * in, n);
    const collage_tensor input = matrix(x, 2, in);
    step(&now, x, 2);
    CHECK(DONE(collage_session_context_run(context, &input, 1, NULL)) && agrees(context, &now));
    /* Runs that fail, each twice, leave states and outputs as they were. */
    for (int twice = 0; twice < 2; ++twice) {
      const unsigned char stop = 1;
      const collage_run_limits limits = {.struct_size = sizeof limits, .stop = &stop};
      const collage_tensor others = matrix(x, 3, in); /* h has two rows */
      CHECK(collage_session_context_run(context, &input, 1, &limits) == COLLAGE_CANCELLED && agrees(context, &now));
      CHECK(collage_session_context_run(context, &others, 1, NULL) == COLLAGE_MISUSE && agrees(context, &now));
    }
  }
  SENTENCE("N is 3 in input x and 2 in input h");
  DONE(collage_session_context_reset(context));
  collage_tensor contents;
  MISUSED(collage_session_context_state(context, "past", &contents), "give it a start shape");
  for (unsigned rows = 0; rows < 4; ++rows) { /* no rows, too */
    now = (states){.rows = rows};
    DONE(collage_session_context_reset(context));
    fill(x, rows * in, rows);
    const collage_tensor input = matrix(x, rows, in);
    step(&now, x, rows);
    CHECK(DONE(collage_session_context_run(context, &input, 1, NULL)) && agrees(context, &now));
  }

  const float start[] = {1, 2, 3};
  contents = matrix(start, 1, out);
  DONE(collage_session_context_set_state(context, "h", &contents));
  DONE(collage_session_context_start(context, "past", (int64_t[]){2, out}, 2));
  now = (states){.h = {{1, 2, 3}}, .rows = 1, .length = 2};
  const collage_tensor input = matrix(x, 1, in);
  step(&now, x, 1);
  CHECK(DONE(collage_session_context_run(context, &input, 1, NULL)) && agrees(context, &now));
  DONE(collage_session_context_reset(context));
  DONE(collage_session_context_state(context, "past", &contents));
  CHECK(contents.extents[0] == 2 && ((const float*)contents.data)[5] == 0);
  collage_session_context_release(context);
}

/* Runs that write to the caller's memory. */
static void into_memory(const collage_session* session) {
  collage_session_context* context = NULL;
  if (!DONE(collage_session_context_create(session, &context))) return;
  float x[2 * in], h[2 * out], past[8 * out];
  states now = {.rows = 2};
  collage_tensor input = matrix(x, 2, in), outputs[2];
  for (unsigned n = 0; n < 4; ++n) {
    fill(x, 2 * in, n);
    step(&now, x, 2);
    outputs[0] = matrix(h, 2, out);
    outputs[1] = matrix(n == 2 ? NULL : past, (int64_t)now.length, out); /* a state may be left out */
    CHECK(DONE(collage_session_context_run_into(context, &input, 1, outputs, 2, NULL)) && is_near(outputs, now.h, 2) &&
          (n == 2 || is_near(outputs + 1, now.past, now.length)));
    MISUSED(collage_session_context_output(context, 0, NULL, &outputs[0]), "or after one into the caller's memory");
    h[0] = 77; /* no state lies there */
    collage_tensor state;
    CHECK(DONE(collage_session_context_state(context, "h", &state)) && is_near(&state, now.h, 2));
  }
  outputs[0] = matrix(h, 2, out);
  outputs[1] = matrix(past, 8, out);
  MISUSED(collage_session_context_run_into(context, &input, 1, outputs, 2, NULL), "output present: is float32[10x3]");
  MISUSED(collage_session_context_run_into(context, &input, 1, outputs, 1, NULL), "a run returns 2 outputs");
  MISUSED(collage_session_context_run_into(context, &input, 1, NULL, 2, NULL), "outputs is NULL");
  MISUSED(collage_session_context_run_into(context, NULL, 1, outputs, 2, NULL), "inputs is NULL");
  MISUSED(collage_session_context_run_into(NULL, &input, 1, outputs, 2, NULL), "session context is NULL");
  outputs[1] = matrix(h, 1, out);
  MISUSED(collage_session_context_run_into(context, &input, 1, outputs, 2, NULL),
          "the memory of output present overlaps with that of output h_next");
  outputs[1] = matrix(x, 1, out);
  MISUSED(collage_session_context_run_into(context, &input, 1, outputs, 2, NULL), "overlaps with that of input x");
  outputs[1] = matrix(past, 1, out);
  outputs[1].dtype = COLLAGE_DTYPE_I32;
  MISUSED(collage_session_context_run_into(context, &input, 1, outputs, 2, NULL), "output present");
  const collage_run_limits limits = {.struct_size = sizeof limits, .seconds = -1};
  outputs[1] = matrix(NULL, 10, out);
  CHECK(collage_session_context_run_into(context, &input, 1, outputs, 2, &limits) == COLLAGE_CANCELLED);
  step(&now, x, 2);
  CHECK(DONE(collage_session_context_run(context, &input, 1, NULL)) && agrees(context, &now));
  collage_session_context_release(context);
}

/* What a session says of itself. */
static void questions(const collage_session* session) {
  collage_open_port port = {.struct_size = sizeof port};
  DONE(collage_session_input(session, 0, &port));
  CHECK(strcmp(port.name, "x") == 0 && port.dtype == F32 && port.rank == 2 && port.extents[0] == -1 &&
        port.extents[1] == in && port.extents[2] == 0);
  CHECK(strcmp(port.symbols[0], "N") == 0 && *port.symbols[1] == '\0' && *port.symbols[7] == '\0');
  DONE(collage_session_output(session, 1, &port));
  CHECK(strcmp(port.name, "present") == 0 && strcmp(port.symbols[0], "length") == 0);
  DONE(collage_session_state(session, 0, &port));
  CHECK(strcmp(port.name, "past") == 0 && strcmp(port.symbols[0], "past_length") == 0);
  collage_session_info info = {.struct_size = sizeof info};
  DONE(collage_session_get_info(session, &info));
  CHECK(info.inputs == 1 && info.outputs == 2 && info.states == 2);
  CHECK(info.made == 0 && info.engines == 0 && info.given_back == 0);
  const char* json = NULL;
  DONE(collage_session_json(session, &json));
  CHECK(strstr(json, "\"producer\": \"collage's tests\"") != NULL && strstr(json, "past_length") != NULL);
  MISUSED(collage_session_input(session, 1, &port), "there is no input 1");
  MISUSED(collage_session_output(session, 2, &port), "there is no output 2");
  MISUSED(collage_session_state(session, 2, &port), "there is no state 2");
  MISUSED(collage_session_input(NULL, 0, &port), "session is NULL");
  MISUSED(collage_session_input(session, 0, NULL), "collage_open_port is NULL");
  port.struct_size = 8;
  MISUSED(collage_session_state(session, 0, &port), "struct_size 8");
  info.struct_size = 0;
  MISUSED(collage_session_get_info(session, &info), "struct_size 0");
  MISUSED(collage_session_json(session, NULL), "json is NULL");
}

static void wrong_runs(const collage_session* session) {
  collage_session_context* context = NULL;
  MISUSED(collage_session_context_create(NULL, &context), "session is NULL");
  MISUSED(collage_session_context_create(session, NULL), "context is NULL");
  if (!DONE(collage_session_context_create(session, &context))) return;
  static _Alignas(8) float x[9];
  collage_tensor input = matrix(x, 2, in), answer;
  const char* name = NULL;
  MISUSED(collage_session_context_output(context, 0, &name, &answer), "no outputs before the first run");
  MISUSED(collage_session_context_output(context, 2, &name, &answer), "there is no output 2");
  MISUSED(collage_session_context_output(context, 0, &name, NULL), "output is NULL");
  MISUSED(collage_session_context_run(NULL, &input, 1, NULL), "session context is NULL");
  MISUSED(collage_session_context_run((collage_session_context*)(uintptr_t)session, &input, 1, NULL),
          "session context is a handle of a session");
  MISUSED(collage_session_context_run(context, &input, 3, NULL), "count is 3, and a run takes 1 inputs");
  MISUSED(collage_session_context_run(context, NULL, 1, NULL), "inputs is NULL");
  MISUSED(collage_session_context_run(context, &input, 1, &(collage_run_limits){.struct_size = 1}), "struct_size 1");
  input.dtype = 77;
  MISUSED(collage_session_context_run(context, &input, 1, NULL), "input x has the element type 77");
  input.dtype = COLLAGE_DTYPE_I32;
  MISUSED(collage_session_context_run(context, &input, 1, NULL), "is given as int32, and the network takes float32");
  input.dtype = F32;
  input.rank = 9;
  MISUSED(collage_session_context_run(context, &input, 1, NULL), "the shape of input x has 9 extents");
  input.rank = 1;
  input.bytes = 2 * sizeof *x;
  MISUSED(collage_session_context_run(context, &input, 1, NULL),
          "input x: is given as 2, but the network declares ?x4");
  MISUSED(collage_session_context_run(context, &(collage_tensor){F32, 2, {2, 5}, x, 40}, 1, NULL), "is given as 2x5");
  MISUSED(collage_session_context_run(context, &(collage_tensor){F32, 2, {-2, 4}, x, 32}, 1, NULL), "the extent -2");
  MISUSED(collage_session_context_run(context, &(collage_tensor){F32, 2, {INT64_MAX, 4}, x, 32}, 1, NULL), "32 bytes");
  MISUSED(collage_session_context_run(context, &(collage_tensor){F32, 2, {2, 4}, x, 31}, 1, NULL),
          "input x has 31 bytes, but its elements are 32");
  MISUSED(collage_session_context_run(context, &(collage_tensor){F32, 2, {2, 4}, NULL, 32}, 1, NULL),
          "the data of input x is NULL");
  MISUSED(collage_session_context_run(context, &(collage_tensor){F32, 2, {2, 4}, (char*)x + 1, 32}, 1, NULL),
          "not aligned");
  MISUSED(collage_session_context_start(context, "g", NULL, 0), "state g: there is no such state; name one of past, h");
  MISUSED(collage_session_context_start(context, NULL, NULL, 0), "state is NULL");
  MISUSED(collage_session_context_start(context, "h", NULL, 2), "extents is NULL");
  MISUSED(collage_session_context_start(context, "h", (int64_t[]){1, 4}, 2), "state h: is given as 1x4");
  input = matrix(x, 1, out);
  MISUSED(collage_session_context_set_state(context, "x", &input), "state x: there is no such state");
  MISUSED(collage_session_context_set_state(context, "h", NULL), "contents is NULL");
  input.dtype = COLLAGE_DTYPE_I32;
  MISUSED(collage_session_context_set_state(context, "h", &input), "state h: is given as int32");
  MISUSED(collage_session_context_state(context, "h", NULL), "contents is NULL");
  MISUSED(collage_session_context_state(context, "", &answer), "state is empty");
  MISUSED(collage_session_context_reset(NULL), "session context is NULL");
  collage_session_context_release((collage_session_context*)(uintptr_t)session); /* nothing happens */
  SENTENCE("session context is a handle of a session");
  collage_session_context_release(context);
}

static void wrong_sessions(const char* model) {
  collage_session* session = (collage_session*)&failures; /* is left as it is */
  MISUSED(collage_session_from_file(NULL, NULL, &session), "path is NULL");
  MISUSED(collage_session_from_file(model, NULL, NULL), "session is NULL");
  MISUSED(collage_session_from_memory(NULL, 0, NULL, &session), "model is NULL");
  CHECK(collage_session_from_file("/nowhere/at.onnx", NULL, &session) != COLLAGE_OK);
  SENTENCE("/nowhere/at.onnx");
  MISUSED(collage_session_from_memory("nothing that ONNX knows", 23, NULL, &session), "model in memory");
  collage_session_options how = {.struct_size = 8};
  MISUSED(collage_session_from_file(model, &how, &session), "struct_size 8");
  how = (collage_session_options){.struct_size = sizeof how, .carried_count = 1};
  MISUSED(collage_session_from_file(model, &how, &session), "carried is NULL");
  collage_carried carried[] = {{"h_next", "h"}, {"h_next", NULL}};
  how.carried = carried;
  how.carried_count = 2;
  MISUSED(collage_session_from_file(model, &how, &session), "the input of a state is NULL");
  carried[1].input = "h";
  MISUSED(collage_session_from_file(model, &how, &session), "input h: two outputs are carried to it");
  carried[1].input = "g";
  MISUSED(collage_session_from_file(model, &how, &session), "input g: is carried, and the network has no such input");
  carried[1] = (collage_carried){"h_new", "past"};
  MISUSED(collage_session_from_file(model, &how, &session), "output h_new: is carried");
  carried[1] = (collage_carried){"h_next", "x"};
  MISUSED(collage_session_from_file(model, &how, &session), "is declared as ?x3, and input x, to which it is carried");
  how.carried_count = 0;
  collage_place_options placing = {.struct_size = sizeof placing, .how = 7};
  how.placing = &placing;
  MISUSED(collage_session_from_file(model, &how, &session), "how is 7");
  collage_network* network = NULL;
  collage_plan* plan = NULL;
  DONE(collage_network_from_zoo("bert-paper", &network));
  DONE(collage_plan_place(network, &quickly, &plan));
  placing = quickly;
  placing.previous = plan;
  MISUSED(collage_session_from_file(model, &how, &session), "previous is a plan");
  collage_plan_release(plan);
  collage_network_release(network);
  how.placing = NULL;
  const collage_input_shape shape = {"z", NULL, 0};
  const collage_network_options loading = {.struct_size = sizeof loading, .shapes = &shape};
  how.loading = &loading;
  DONE(collage_session_from_file(model, &how, &session)); /* no shape is counted */
  collage_session_release(session);
}

/* Without states, inputs may contradict each other. Outputs may be inputs of the next run. Engines are given back. */
static void without_states(const char* model) {
  char* bytes = malloc(1 << 16);
  FILE* file = fopen(model, "rb");
  if (!CHECK(file != NULL)) return;
  const size_t size = fread(bytes, 1, 1 << 16, file);
  fclose(file);
  const collage_session_options how = {.struct_size = sizeof how, .placing = &quickly, .most_engines = 2};
  collage_session* session = NULL;
  collage_session_context* context = NULL;
  DONE(collage_session_from_memory(bytes, size, &how, &session));
  free(bytes);
  if (!DONE(collage_session_context_create(session, &context))) return;
  float x[3 * in] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, h[3 * out] = {0};
  states now = {.rows = 2};
  collage_tensor inputs[3] = {matrix(x, 2, in), matrix(h, 3, out), matrix(NULL, 0, out)};
  MISUSED(collage_session_context_run(context, inputs, 3, NULL), "N is 2 in input x and 3 in input h");
  inputs[1] = matrix(h, 2, out);
  for (int n = 0; n < 4; ++n) {
    DONE(collage_session_context_run(context, inputs, 3, NULL));
    step(&now, x, 2);
    DONE(collage_session_context_output(context, 0, NULL, &inputs[1]));
    DONE(collage_session_context_output(context, 1, NULL, &inputs[2]));
    CHECK(is_near(&inputs[1], now.h, 2) && is_near(&inputs[2], now.past, now.length));
  }
  MISUSED(collage_session_context_start(context, "h", NULL, 0), "state h: there is no such state; carry an output to");
  collage_session_info info = {.struct_size = sizeof info};
  DONE(collage_session_get_info(session, &info));
  CHECK(info.engines == 2 && info.made == 4 && info.given_back == 2 && info.states == 0 && info.making_ms > 0);
  collage_session_release(session); /* the context keeps what it needs */
  DONE(collage_session_context_run(context, inputs, 3, NULL));
  collage_session_context_release(context);
}

typedef struct placing {
  int answer; /* a collage_progress_result */
  int calls;
  collage_session_context* context; /* that runs */
} placing;

static int watch(void* data, const collage_progress* now) {
  placing* mine = data;
  ++mine->calls;
  CHECK(now->struct_size >= sizeof *now);
  return mine->answer;
}

/* New shapes may be measured. Whoever ends it gets no outputs, and may try again. */
static void measured(const char* model) {
  placing mine = {COLLAGE_PROGRESS_CANCEL, 0, NULL};
  const collage_place_options place = {.struct_size = sizeof place,
                                       .threads = 1,
                                       .store = "none",
                                       .compare_s = 0.05,
                                       .regions_s = -1,
                                       .progress = watch,
                                       .progress_data = &mine};
  collage_session_options how = {.struct_size = sizeof how, .placing = &place, .carried = both, .carried_count = 2};
  collage_session* session = NULL;
  collage_session_context* context = NULL;
  DONE(collage_session_from_file(model, &how, &session));
  how = (collage_session_options){0}; /* nothing of the options is needed any more */
  if (!DONE(collage_session_context_create(session, &context))) return;
  float x[in];
  fill(x, in, 3);
  const collage_tensor input = matrix(x, 1, in);
  CHECK(collage_session_context_run(context, &input, 1, NULL) == COLLAGE_CANCELLED && mine.calls == 1);
  mine.answer = COLLAGE_PROGRESS_CONTINUE;
  states now = {.rows = 1};
  step(&now, x, 1);
  CHECK(DONE(collage_session_context_run(context, &input, 1, NULL)) && agrees(context, &now) && mine.calls > 2);
  collage_session_context_release(context);
  collage_session_release(session);
}

/* An engine is replaced while the session runs. */
static void tuned(const char* model) {
  const collage_place_options place = {
      .struct_size = sizeof place, .threads = 1, .store = "none", .budget_s = 2, .compare_s = 0.05, .regions_s = -1};
  const collage_session_options how = {
      .struct_size = sizeof how, .placing = &quickly, .carried = both, .carried_count = 2};
  collage_session* session = NULL;
  collage_session_context* context = NULL;
  collage_session_tuning* tuning = NULL;
  collage_session_tuning_info info = {.struct_size = sizeof info};
  DONE(collage_session_from_file(model, &how, &session));
  if (!DONE(collage_session_context_create(session, &context))) return;
  float x[in];
  fill(x, in, 3);
  const collage_tensor input = matrix(x, 1, in);
  DONE(collage_session_context_run(context, &input, 1, NULL));
  MISUSED(collage_session_tuning_start(session, &quickly, &tuning), "how is not COLLAGE_PLACE_MEASURE");
  MISUSED(collage_session_tuning_start(NULL, &place, &tuning), "session is NULL");
  MISUSED(collage_session_tuning_start(session, &place, NULL), "tuning is NULL");
  if (DONE(collage_session_tuning_start(session, &place, &tuning)))
    for (int wait = 0; wait < 24000 && info.improved + info.failed == 0; ++wait) {
      nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
      DONE(collage_session_tuning_get_info(tuning, &info));
    }
  CHECK(info.improved == 1 && info.failure[0] == '\0');
  collage_session_release(session); /* the tuning keeps what it needs */
  DONE(collage_session_context_reset(context));
  states now = {.rows = 1};
  step(&now, x, 1);
  CHECK(DONE(collage_session_context_run(context, &input, 1, NULL)) && agrees(context, &now));
  collage_session_tuning_release(tuning);
  collage_session_tuning_release(NULL);
  collage_session_context_release(context);
}

/* The progress function is called within a run, in which others cannot use the context. */
static int use_again(void* data, const collage_progress* now) {
  placing* mine = data;
  collage_tensor contents;
  (void)now;
  if (mine->calls++ == 0) {
    MISUSED(collage_session_context_state(mine->context, "h", &contents), "the context is in use by another thread");
    MISUSED(collage_session_context_reset(mine->context), "in use");
    MISUSED(collage_session_context_run(mine->context, NULL, 0, NULL), "in use");
    MISUSED(collage_session_context_output(mine->context, 0, NULL, &contents), "in use");
  }
  return COLLAGE_PROGRESS_STOP;
}

static void in_use(const char* model) {
  placing mine = {0, 0, NULL};
  collage_place_options place = quickly;
  place.how = COLLAGE_PLACE_MEASURE;
  place.store = "none";
  place.regions_s = -1;
  place.progress = use_again;
  place.progress_data = &mine;
  const collage_session_options how = {
      .struct_size = sizeof how, .placing = &place, .carried = both, .carried_count = 2};
  collage_session* session = NULL;
  DONE(collage_session_from_file(model, &how, &session));
  if (!DONE(collage_session_context_create(session, &mine.context))) return;
  const float x[in] = {0};
  const collage_tensor input = matrix(x, 1, in);
  DONE(collage_session_context_run(mine.context, &input, 1, NULL));
  CHECK(mine.calls > 0);
  collage_session_context_release(mine.context);
  collage_session_release(session);
}

typedef struct work {
  const collage_session* session;
  unsigned seed;
  bool is_right;
} work;

static void* run_alone(void* data) {
  work* mine = data;
  collage_session_context* context = NULL;
  float x[4 * in];
  states now = {.rows = 2};
  mine->is_right = collage_session_context_create(mine->session, &context) == COLLAGE_OK;
  for (unsigned n = 0; n < 10 && mine->is_right; ++n) {
    const size_t rows = 1 + mine->seed % 3;
    fill(x, rows * in, mine->seed + 10 * n);
    const collage_tensor input = matrix(x, (int64_t)rows, in);
    step(&now, x, rows);
    mine->is_right = collage_session_context_run(context, &input, 1, NULL) == COLLAGE_OK && agrees(context, &now);
  }
  collage_session_context_release(context);
  return NULL;
}

static void threads(const collage_session* session) {
  work works[4];
  pthread_t running[4];
  for (unsigned t = 0; t < 4; ++t) {
    works[t] = (work){session, t, false};
    CHECK(pthread_create(&running[t], NULL, run_alone, &works[t]) == 0);
  }
  for (int t = 0; t < 4; ++t) {
    pthread_join(running[t], NULL);
    CHECK(works[t].is_right);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const char* json = NULL;
  DONE(collage_system_json(&json));
  collage_session* session = NULL;
  if (strstr(json, "\"onnx\": true") == NULL) {
    MISUSED(collage_session_from_file(argv[1], NULL, &session), "without ONNX");
    return failures;
  }
  collage_session_release(NULL);
  collage_session_context_release(NULL);
  wrong_sessions(argv[1]);
  without_states(argv[1]);
  measured(argv[1]);
  tuned(argv[1]);
  in_use(argv[1]);
  collage_session_options how = {.struct_size = sizeof how, .placing = &quickly, .carried = both, .carried_count = 2};
  if (DONE(collage_session_from_file(argv[1], &how, &session))) {
    questions(session);
    wrong_runs(session);
    runs(session);
    into_memory(session);
    threads(session);
  }
  collage_session_release(session);
  how.placing = NULL; /* estimated costs */
  if (DONE(collage_session_from_file(argv[1], &how, &session))) runs(session);
  collage_session_release(session);
  if (failures == 0) printf("sessions run\n");
  return failures == 0 ? 0 : 1;
}
