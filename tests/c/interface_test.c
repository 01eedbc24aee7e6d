/* The C interface as its users meet it: interface_test MODEL FOLDER. The model is that of make_model.py. */
#include "check.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

enum { ROWS = 5, IN = 4, OUT = 3 };

static const collage_port empty_port = {.struct_size = sizeof(collage_port)};

static double weight(int i, int j) { return (3 * i + j) / 4.0 - 1; }
static double bias(int j) { return j / 2.0 - 0.5; }

/* y = relu(x w + b), as loops; the shape is another one, the elements are in the same order. */
static void second_way(const float* x, double* y) {
  for (int n = 0; n < ROWS; ++n)
    for (int j = 0; j < OUT; ++j) {
      double sum = bias(j);
      for (int i = 0; i < IN; ++i) sum += (double)x[n * IN + i] * weight(i, j);
      y[n * OUT + j] = sum > 0 ? sum : 0;
    }
}

static bool is_right(const float* x, const float* y) {
  double wanted[ROWS * OUT];
  second_way(x, wanted);
  for (int k = 0; k < ROWS * OUT; ++k)
    if (fabs((double)y[k] - wanted[k]) > 1e-5) return false;
  return true;
}

/* The file as it is, or its bytes. */
static collage_network* load(const char* model, const collage_network_options* options, bool from_memory) {
  collage_network* network = NULL;
  if (!from_memory) {
    DONE(collage_network_from_file(model, options, &network));
    return network;
  }
  char bytes[4096];
  FILE* file = fopen(model, "rb");
  const size_t count = file == NULL ? 0 : fread(bytes, 1, sizeof bytes, file);
  if (file != NULL) fclose(file);
  DONE(collage_network_from_memory(bytes, count, options, &network));
  memset(bytes, 0xFF, sizeof bytes);
  return network;
}

static collage_network* load_tiny(const char* model, bool from_memory) {
  const int64_t rows[] = {ROWS, IN}, pair[] = {2}, dims[] = {OUT, ROWS};
  const collage_input_shape shapes[] = {{.input = "x", .extents = rows, .rank = 2}};
  const collage_input_value values[] = {
      {.input = "dims", .dtype = COLLAGE_DTYPE_I64, .rank = 1, .extents = pair, .data = dims, .bytes = sizeof dims}};
  const collage_network_options options = {
      .struct_size = sizeof options, .shapes = shapes, .shape_count = 1, .values = values, .value_count = 1};
  return load(model, &options, from_memory);
}

static collage_plan* place_by_priority(const collage_network* network, int32_t threads, const char* backends) {
  const collage_place_options options = {
      .struct_size = sizeof options, .threads = threads, .how = COLLAGE_PLACE_PRIORITY, .backends = backends};
  collage_plan* plan = NULL;
  DONE(collage_plan_place(network, &options, &plan));
  return plan;
}

static void versions(void) {
  CHECK(collage_abi_version() == COLLAGE_ABI_VERSION);
  CHECK(strcmp(collage_version(), "0.") > 0);
  const char* json = NULL;
  CHECK(DONE(collage_system_json(&json)) && strstr(json, "\"portable\"") != NULL);
  CHECK(collage_dtype_size(COLLAGE_DTYPE_F32) == 4 && collage_dtype_size(COLLAGE_DTYPE_BOOL) == 1);
  CHECK(collage_dtype_size(COLLAGE_DTYPE_ANY) == 0 && collage_dtype_size(24) == 0 && collage_dtype_size(-1) == 0);
  CHECK(collage_dtype_size(COLLAGE_DTYPE_I4) == 1 && collage_dtype_size(COLLAGE_DTYPE_F4E2M1) == 1);
  CHECK(strcmp(collage_dtype_name(COLLAGE_DTYPE_F8E4M3FN), "float8e4m3fn") == 0);
  CHECK(strcmp(collage_dtype_name(COLLAGE_DTYPE_BF16), "bfloat16") == 0 && *collage_dtype_name(99) == '\0');
}

/* Whether the environment sets how threads wait. */
static int is_configured(void) { return getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL; }

static void waits_as_chosen(void) {
  const char *brief = NULL, *as_before = NULL;
  DONE(collage_set_waiting("brief"));
  DONE(collage_system_json(&brief));
  DONE(collage_set_waiting("default"));
  DONE(collage_system_json(&as_before));
  if (!is_configured()) {
    CHECK(strstr(brief, "\"waiting_policy\": \"brief\"") != NULL);
    /* If libgomp was loaded with the library, nothing changes (waiting.py). */
    CHECK(strstr(as_before, "\"waiting_policy\": \"default\"") != NULL || strcmp(brief, as_before) == 0);
  } else {
    CHECK(strcmp(brief, as_before) == 0);
  }
  DONE(collage_set_waiting("brief"));
}

static void network_says(const collage_network* network) {
  size_t inputs = 0, outputs = 0;
  CHECK(DONE(collage_network_input_count(network, &inputs)) && inputs == 1);
  CHECK(DONE(collage_network_output_count(network, &outputs)) && outputs == 1);
  collage_port port = empty_port;
  if (DONE(collage_network_input(network, 0, &port))) {
    CHECK(strcmp(port.name, "x") == 0 && port.dtype == COLLAGE_DTYPE_F32 && port.bytes == ROWS * IN * 4);
    CHECK(port.rank == 2 && port.extents[0] == ROWS && port.extents[1] == IN && port.extents[2] == 0);
  }
  if (DONE(collage_network_output(network, 0, &port)))
    CHECK(strcmp(port.name, "y") == 0 && port.rank == 2 && port.extents[0] == OUT && port.extents[1] == ROWS);
  /* A caller who knows more members than the library finds them zero, and its own size unchanged. */
  struct {
    collage_port known;
    uint64_t later;
  } larger = {{.struct_size = sizeof larger}, 7};
  CHECK(DONE(collage_network_input(network, 0, &larger.known)) && larger.later == 0);
  CHECK(larger.known.struct_size == sizeof larger && larger.known.bytes == port.bytes / OUT * IN);
  const char* json = NULL;
  CHECK(DONE(collage_network_json(network, &json)) && strstr(json, "\"opset\": 17") != NULL);
  uint64_t fingerprint = 0;
  CHECK(DONE(collage_network_fingerprint(network, &fingerprint)) && fingerprint != 0);
}

/* Each way to give memory, and runs that follow each other. */
static void runs(collage_context* context) {
  float x[ROWS * IN], y[ROWS * OUT];
  for (int turn = 0; turn < 3; ++turn) {
    for (int k = 0; k < ROWS * IN; ++k) x[k] = (float)((k * 7 + turn * 5) % 11) / 4 - 1;
    if (turn == 0) {
      DONE(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, x, sizeof x));
      DONE(collage_context_bind_output(context, 0, COLLAGE_DTYPE_ANY, y, sizeof y));
    }
    memset(y, 0xFF, sizeof y);
    CHECK(DONE(collage_context_run(context)) && is_right(x, y));
  }
  void *in = NULL, *out = NULL, *again = NULL;
  DONE(collage_context_input(context, 0, &in));
  DONE(collage_context_output(context, 0, &out));
  CHECK((uintptr_t)in % 64 == 0 && (uintptr_t)out % 64 == 0);
  memcpy(in, x, sizeof x);
  CHECK(DONE(collage_context_run(context)) && is_right(x, out));
  CHECK(DONE(collage_context_output(context, 0, &again)) && again == out && is_right(x, again));
}

/* Limits of a run, after which the context is as it was. */
static void limited(collage_context* context) {
  float x[ROWS * IN] = {1}, y[ROWS * OUT];
  volatile unsigned char stop = 0;
  collage_run_limits limits = {.struct_size = sizeof limits, .seconds = 3600, .stop = &stop};
  DONE(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, x, sizeof x));
  DONE(collage_context_bind_output(context, 0, COLLAGE_DTYPE_F32, y, sizeof y));
  CHECK(DONE(collage_context_run_limited(context, NULL)) && is_right(x, y));
  CHECK(DONE(collage_context_run_limited(context, &limits)) && is_right(x, y));
  stop = 1;
  CHECK(collage_context_run_limited(context, &limits) == COLLAGE_CANCELLED);
  CHECK(strstr(collage_last_error(), "run: was ended before step 1 of") != NULL);
  CHECK(strstr(collage_last_error(), "the caller stopped it") != NULL);
  stop = 0;
  limits.seconds = -1;
  CHECK(collage_context_run_limited(context, &limits) == COLLAGE_CANCELLED);
  CHECK(strstr(collage_last_error(), "its time is over") != NULL);
  memset(y, 0xFF, sizeof y);
  CHECK(DONE(collage_context_run(context)) && is_right(x, y));
}

static void engine_says(const collage_engine* engine) {
  collage_engine_info info = {.struct_size = sizeof info};
  if (!DONE(collage_engine_get_info(engine, &info))) return;
  CHECK(info.inputs == 1 && info.outputs == 1 && info.threads == 1 && info.steps >= 1 && *info.waiting_policy != '\0');
  CHECK(info.arena_bytes >= info.arena_lower_bound);
  collage_context* context = NULL;
  DONE(collage_context_create(engine, NULL, &context));
  void* in = NULL;
  DONE(collage_context_input(context, 0, &in));
  double step_ms[16] = {0};
  if (CHECK(info.steps <= 16)) {
    for (size_t i = 0; i < info.steps; ++i) step_ms[i] = -1;
    DONE(collage_context_run_profiled(context, step_ms, info.steps));
    for (size_t i = 0; i < info.steps; ++i) {
      collage_step step = {.struct_size = sizeof step};
      CHECK(DONE(collage_engine_step(engine, i, &step)) && step_ms[i] >= 0 && step.nodes >= 1);
      CHECK(*step.backend != '\0' && *step.kernel != '\0' && *step.label != '\0');
    }
  }
  collage_context_release(context);
}

static void tiny(const char* model, bool from_memory, const char* file) {
  collage_network* network = load_tiny(model, from_memory);
  if (network == NULL) return;
  network_says(network);
  collage_plan *plan = place_by_priority(network, 1, NULL), *read = NULL;
  const char *before = NULL, *after = NULL;
  DONE(collage_plan_save(plan, file));
  DONE(collage_plan_load(network, file, NULL, &read));
  CHECK(DONE(collage_plan_json(plan, &before)) && strstr(before, "\"placing\": {") != NULL);
  CHECK(DONE(collage_plan_json(read, &after)) && strstr(after, "\"placing\": null") != NULL);
  collage_engine* engine = NULL;
  DONE(collage_engine_create(read, NULL, &engine));
  /* Nothing of what an engine was made of is needed any more, nor the engine by its contexts. */
  collage_network_release(network);
  collage_plan_release(plan);
  collage_plan_release(read);
  engine_says(engine);
  collage_context* context = NULL;
  DONE(collage_context_create(engine, NULL, &context));
  collage_engine_info info = {.struct_size = sizeof info};
  DONE(collage_engine_get_info(engine, &info));
  void* memory = aligned_alloc(64, info.arena_bytes + 64);
  const collage_context_options options = {
      .struct_size = sizeof options, .arena = memory, .arena_bytes = info.arena_bytes + 64};
  collage_context* in_ours = NULL;
  DONE(collage_context_create(engine, &options, &in_ours));
  collage_engine_release(engine);
  runs(context);
  runs(in_ours);
  limited(in_ours);
  collage_context_release(context);
  collage_context_release(in_ours);
  free(memory);
}

/* The context's own memory for both ports, with inputs that depend on a seed. */
static bool run_seeded(collage_context* context, size_t elements, unsigned seed, int times, void** out) {
  void* in = NULL;
  if (!DONE(collage_context_input(context, 0, &in)) || !DONE(collage_context_output(context, 0, out))) return false;
  for (size_t k = 0; k < elements; ++k) ((float*)in)[k] = (float)((k * 37 + seed * 101) % 257) / 128 - 1;
  for (int i = 0; i < times; ++i)
    if (!DONE(collage_context_run(context))) return false;
  return true;
}

static double worst_relative(const float* a, const float* b, size_t count) {
  double worst = 0, most = 1e-30;
  for (size_t k = 0; k < count; ++k) {
    if (!isfinite(a[k]) || !isfinite(b[k])) return INFINITY;
    worst = fmax(worst, fabs((double)a[k] - (double)b[k]));
    most = fmax(most, fabs((double)b[k]));
  }
  return worst / most;
}

struct thread_task {
  collage_context* context;
  size_t elements;
  unsigned seed;
  void* out;
  bool done;
};
static int run_task(void* data) {
  struct thread_task* task = data;
  task->done = run_seeded(task->context, task->elements, task->seed, 5, &task->out);
  /* Errors are those of the thread that made them. */
  void* nowhere = NULL;
  task->done = task->done && collage_context_output(task->context, 9 + task->seed, &nowhere) == COLLAGE_MISUSE;
  char words[32];
  snprintf(words, sizeof words, "output %u", 9 + task->seed);
  task->done = task->done && strstr(collage_last_error(), words) != NULL;
  return 0;
}

/* What two threads may not do is refused, and harms nobody. */
static int run_many(void* data) {
  struct thread_task* task = data;
  task->done = true;
  for (int i = 0; i < 20; ++i) {
    const collage_status status = collage_context_run(task->context);
    const bool refused = status == COLLAGE_MISUSE && strstr(collage_last_error(), "another thread") != NULL;
    task->done = task->done && (status == COLLAGE_OK || refused);
  }
  return 0;
}
static void one_for_two(collage_context* context) {
  struct thread_task tasks[2] = {{context, 0, 0, NULL, false}, {context, 0, 0, NULL, false}};
  thrd_t threads[2];
  for (int i = 0; i < 2; ++i) CHECK(thrd_create(&threads[i], run_many, &tasks[i]) == thrd_success);
  for (int i = 0; i < 2; ++i) thrd_join(threads[i], NULL);
  CHECK(tasks[0].done && tasks[1].done && DONE(collage_context_run(context)));
}

/* A whole network by two sets of backends, and two contexts of one engine at once. */
static void zoo(void) {
  collage_network* network = NULL;
  if (!DONE(collage_network_from_zoo("bert-paper", &network))) return;
  collage_port in = empty_port, out = empty_port;
  DONE(collage_network_input(network, 0, &in));
  DONE(collage_network_output(network, 0, &out));
  const size_t in_count = in.bytes / 4, out_count = out.bytes / 4;
  const char* json = NULL;
  DONE(collage_system_json(&json));
  const bool has_eigen = strstr(json, "\"eigen\", \"available\": true") != NULL;
  collage_plan* plans[2] = {place_by_priority(network, 2, NULL),
                            place_by_priority(network, 1, has_eigen ? "eigen, portable" : "portable")};
  collage_engine* engines[2] = {NULL, NULL};
  collage_context* contexts[4] = {NULL, NULL, NULL, NULL};
  for (int i = 0; i < 2; ++i) {
    DONE(collage_engine_create(plans[i], NULL, &engines[i]));
    collage_plan_release(plans[i]);
  }
  collage_network_release(network);
  for (int i = 0; i < 4; ++i) DONE(collage_context_create(engines[i == 1], NULL, &contexts[i]));
  void *first = NULL, *second = NULL;
  for (unsigned seed = 0; seed < 2; ++seed) {
    if (!run_seeded(contexts[0], in_count, seed, 1, &first) || !run_seeded(contexts[1], in_count, seed, 1, &second))
      break;
    CHECK(worst_relative(first, second, out_count) < 1e-4);
    /* At once: one of them on this seed, the other on the next. */
    struct thread_task tasks[2] = {{contexts[2], in_count, seed, NULL, false},
                                   {contexts[3], in_count, seed + 1, NULL, false}};
    thrd_t threads[2];
    for (int i = 0; i < 2; ++i) CHECK(thrd_create(&threads[i], run_task, &tasks[i]) == thrd_success);
    for (int i = 0; i < 2; ++i) thrd_join(threads[i], NULL);
    if (!CHECK(tasks[0].done && tasks[1].done)) break;
    CHECK(memcmp(tasks[0].out, first, out.bytes) == 0);
    CHECK(worst_relative(tasks[1].out, first, out_count) > 1e-3);
  }
  one_for_two(contexts[0]);
  for (int i = 0; i < 4; ++i) collage_context_release(contexts[i]);
  for (int i = 0; i < 2; ++i) collage_engine_release(engines[i]);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  char file[4096];
  snprintf(file, sizeof file, "%s/interface_test.plan.json", argv[2]);
  versions();
  waits_as_chosen();
  const char* json = NULL;
  DONE(collage_system_json(&json));
  if (strstr(json, "\"onnx\": true") != NULL) {
    tiny(argv[1], false, file);
    tiny(argv[1], true, file);
  }
  zoo();
  if (failures == 0) printf("the C interface does as it says\n");
  return failures == 0 ? 0 : 1;
}
