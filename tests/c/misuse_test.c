/* What callers do wrong, each with a status and a sentence: misuse_test MODEL FOLDER. */
#include "check.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static _Alignas(64) char scratch[4096];

static void networks(const char* model) {
  collage_network* network = (collage_network*)&failures; /* is left as it is */
  MISUSED(collage_network_from_file(NULL, NULL, &network), "path is NULL");
  MISUSED(collage_network_from_file("", NULL, &network), "path is empty");
  MISUSED(collage_network_from_file(model, NULL, NULL), "network is NULL");
  MISUSED(collage_network_from_zoo("resnet-5000", &network), "name one of");
  MISUSED(collage_network_from_zoo(NULL, &network), "name is NULL");
  MISUSED(collage_system_json(NULL), "json is NULL");
  MISUSED(collage_set_waiting(NULL), "policy is NULL");
  MISUSED(collage_set_waiting("passive"), "'passive' is no waiting policy that can be set");
  CHECK(network == (collage_network*)&failures);

  const char* json = NULL;
  DONE(collage_system_json(&json));
  if (strstr(json, "\"onnx\": true") == NULL) {
    MISUSED(collage_network_from_file(model, NULL, &network), "without ONNX");
    return;
  }
  CHECK(collage_network_from_file("/nowhere/at.onnx", NULL, &network) != COLLAGE_OK);
  CHECK(strstr(collage_last_error(), "/nowhere/at.onnx") != NULL);
  MISUSED(collage_network_from_file(model, NULL, &network), "shapes x=");
  MISUSED(collage_network_from_memory(NULL, 0, NULL, &network), "model is NULL");
  MISUSED(collage_network_from_memory("", 0, NULL, &network), "model in memory");
  MISUSED(collage_network_from_memory("nothing that ONNX knows", 23, NULL, &network), "model in memory");

  const int64_t rows[] = {5, 4}, below[] = {-5, 4}, pair[] = {2}, dims[] = {3, 5},
                many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  collage_input_shape shape = {"x", rows, 2};
  collage_input_shape twice[] = {{"x", rows, 2}, {"x", rows, 2}};
  collage_input_value value = {"dims", COLLAGE_DTYPE_I64, 1, pair, dims, sizeof dims};
  collage_network_options options = {
      .struct_size = sizeof options, .shapes = &shape, .shape_count = 1, .values = &value, .value_count = 1};
  shape.input = NULL;
  MISUSED(collage_network_from_file(model, &options, &network), "the name of an input is NULL");
  shape = (collage_input_shape){"x", below, 2};
  MISUSED(collage_network_from_file(model, &options, &network), "-5");
  shape = (collage_input_shape){"x", many, 9};
  MISUSED(collage_network_from_file(model, &options, &network), "9 extents");
  shape = (collage_input_shape){"x", NULL, 2};
  MISUSED(collage_network_from_file(model, &options, &network), "extents is NULL");
  shape = (collage_input_shape){"z", rows, 2};
  MISUSED(collage_network_from_file(model, &options, &network), "z");
  shape = (collage_input_shape){"x", rows, 2};
  value.dtype = 77;
  MISUSED(collage_network_from_file(model, &options, &network), "77");
  value.dtype = COLLAGE_DTYPE_I32;
  MISUSED(collage_network_from_file(model, &options, &network), "16 bytes");
  value = (collage_input_value){"dims", COLLAGE_DTYPE_I64, 1, pair, NULL, sizeof dims};
  MISUSED(collage_network_from_file(model, &options, &network), "data is NULL");
  value = (collage_input_value){"dims", COLLAGE_DTYPE_F64, 1, pair, dims, sizeof dims};
  MISUSED(collage_network_from_file(model, &options, &network), "dims");
  options.shapes = twice;
  options.shape_count = 2;
  MISUSED(collage_network_from_file(model, &options, &network), "twice");
  options.shapes = NULL;
  MISUSED(collage_network_from_file(model, &options, &network), "shapes is NULL");
  options = (collage_network_options){.struct_size = 8};
  MISUSED(collage_network_from_file(model, &options, &network), "struct_size 8");
  options.struct_size = (size_t)-1;
  MISUSED(collage_network_from_file(model, &options, &network), "struct_size");
  struct {
    collage_network_options known;
    int later;
  } newer = {{.struct_size = sizeof newer}, 1};
  MISUSED(collage_network_from_file(model, &newer.known, &network), "does not know; leave newer members zero");
  CHECK(network == (collage_network*)&failures);
}

static void ports(const collage_network* network, const collage_plan* plan) {
  collage_port port = {.struct_size = sizeof port};
  size_t count = 0;
  MISUSED(collage_network_input(NULL, 0, &port), "network is NULL");
  MISUSED(collage_network_input(network, 1, &port), "there is no input 1: there are 1, counted from 0");
  MISUSED(collage_network_output(network, (size_t)-1, &port), "there is no output");
  MISUSED(collage_network_input(network, 0, NULL), "collage_port is NULL");
  port.struct_size = 0;
  MISUSED(collage_network_input(network, 0, &port), "struct_size 0");
  MISUSED(collage_network_input_count(network, NULL), "count is NULL");
  MISUSED(collage_network_input_count((const collage_network*)plan, &count),
          "network is a handle of a plan; give a handle of a network");
  MISUSED(collage_network_fingerprint(network, NULL), "fingerprint is NULL");
  const char nothing[64] = "no handle, but memory that may be read";
  MISUSED(collage_network_input_count((const collage_network*)(const void*)nothing, &count),
          "not a handle of this library");
  collage_network_release((collage_network*)(uintptr_t)plan); /* nothing happens */
  CHECK(strstr(collage_last_error(), "handle of a plan") != NULL);
}

static void plans(const collage_network* network, const char* folder) {
  collage_plan* plan = NULL;
  collage_place_options how = {.struct_size = sizeof how, .how = COLLAGE_PLACE_PRIORITY, .threads = 1};
  MISUSED(collage_plan_place(NULL, NULL, &plan), "network is NULL");
  MISUSED(collage_plan_place(network, &how, NULL), "plan is NULL");
  how.threads = -1;
  MISUSED(collage_plan_place(network, &how, &plan), "threads is -1");
  how.threads = 1;
  how.how = 3;
  MISUSED(collage_plan_place(network, &how, &plan), "how is 3");
  how.how = COLLAGE_PLACE_PRIORITY;
  how.keep_non_finite = 1;
  MISUSED(collage_plan_place(network, &how, &plan), "keep_non_finite");
  how.keep_non_finite = 0;
  how.algorithms = 3;
  MISUSED(collage_plan_place(network, &how, &plan), "algorithms is 3, which is no choice of algorithms");
  how.algorithms = COLLAGE_ALGORITHMS_ACCURATE;
  how.memory_ratio = -1;
  MISUSED(collage_plan_place(network, &how, &plan), "which is no ratio above 0");
  how.memory_ratio = NAN;
  MISUSED(collage_plan_place(network, &how, &plan), "which is no ratio above 0");
  how.memory_ratio = 2;
  how.memory_bytes = 1000000;
  MISUSED(collage_plan_place(network, &how, &plan), "memory_ratio and memory_bytes are both given");
  how.memory_ratio = 0;
  how.memory_bytes = 1;
  MISUSED(collage_plan_place(network, &how, &plan), "no plan was found whose weights take at most 0.0 KB");
  how.memory_bytes = 0;
  how.backends = "eigen,,portable";
  MISUSED(collage_plan_place(network, &how, &plan), "in which a name is empty");
  how.backends = "nonsense";
  MISUSED(collage_plan_place(network, &how, &plan), "nonsense");
  how.backends = NULL;
  how.budget_s = NAN;
  MISUSED(collage_plan_place(network, &how, &plan), "budget_s");
  how.budget_s = 0;
  how.regions_s = NAN;
  MISUSED(collage_plan_place(network, &how, &plan), "regions_s");
  how.regions_s = -1; /* none */
  how.autotune_s = -1;
  MISUSED(collage_plan_place(network, &how, &plan), "autotune_s");
  how.autotune_s = 0;
  collage_place_rule rule = {COLLAGE_RULE_PIN, "no node of this name", "portable"};
  how.rules = &rule;
  how.rule_count = 1;
  MISUSED(collage_plan_place(network, &how, &plan), "no node of this name");
  rule.action = 5;
  MISUSED(collage_plan_place(network, &how, &plan), "action 5");
  how.rules = NULL;
  MISUSED(collage_plan_place(network, &how, &plan), "rules is NULL");
  how.rule_count = 0;
  CHECK(plan == NULL);

  if (!DONE(collage_plan_place(network, &how, &plan))) return;
  MISUSED(collage_plan_save(plan, "/nowhere/plan.json"), "/nowhere/plan.json");
  snprintf(scratch, sizeof scratch, "%s/misuse_test.plan.json", folder);
  DONE(collage_plan_save(plan, scratch));
  collage_plan* read = NULL;
  MISUSED(collage_plan_load(network, "/nowhere/plan.json", NULL, &read), "/nowhere/plan.json");
  collage_plan_load_options must = {.struct_size = sizeof must, .threads = 3};
  MISUSED(collage_plan_load(network, scratch, &must, &read), "not 3");
  collage_network* other = NULL;
  DONE(collage_network_from_zoo("mobilenet-v2", &other));
  MISUSED(collage_plan_load(other, scratch, NULL, &read), "another network");
  how.previous = plan;
  MISUSED(collage_plan_place(other, &how, &read), "another network");
  CHECK(read == NULL);
  ports(network, plan);
  MISUSED(collage_plan_json(plan, NULL), "json is NULL");
  MISUSED(collage_engine_create(NULL, NULL, NULL), "plan is NULL");
  MISUSED(collage_engine_create(plan, NULL, NULL), "engine is NULL");
  collage_network_release(other);
  collage_plan_release(plan);
}

static void contexts(const collage_engine* engine, size_t in_bytes, size_t out_bytes) {
  collage_engine_info info = {.struct_size = sizeof info};
  collage_step step = {.struct_size = sizeof step};
  DONE(collage_engine_get_info(engine, &info));
  MISUSED(collage_engine_step(engine, info.steps, &step), "there is no step");
  MISUSED(collage_engine_get_info(engine, NULL), "collage_engine_info is NULL");
  collage_context* context = NULL;
  collage_context_options options = {.struct_size = sizeof options, .arena = scratch, .arena_bytes = 8};
  MISUSED(collage_context_create(engine, &options, &context), "arena");
  options = (collage_context_options){sizeof options, scratch + 1, info.arena_bytes + 63};
  MISUSED(collage_context_create(engine, &options, &context), "aligned to 64");
  options.arena = NULL;
  MISUSED(collage_context_create(engine, &options, &context), "arena is NULL");
  if (!DONE(collage_context_create(engine, NULL, &context))) return;

  char* memory = malloc(in_bytes + out_bytes + 8);
  void* data = NULL;
  double ms = 0;
  MISUSED(collage_context_run(context), "nothing is bound to input");
  MISUSED(collage_context_run(NULL), "context is NULL");
  MISUSED(collage_context_run_limited(NULL, NULL), "context is NULL");
  MISUSED(collage_context_run_limited(context, &(collage_run_limits){.struct_size = 1}), "struct_size 1");
  MISUSED(collage_context_bind_input(context, 1, 0, memory, in_bytes), "there is no input 1");
  MISUSED(collage_context_bind_input(context, 0, 0, NULL, in_bytes), "is NULL");
  MISUSED(collage_context_bind_input(context, 0, 0, memory, in_bytes - 4), "bytes");
  MISUSED(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F64, memory, in_bytes), "not float64");
  MISUSED(collage_context_bind_input(context, 0, 99, memory, in_bytes), "99");
  MISUSED(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, memory + 1, in_bytes), "not aligned");
  MISUSED(collage_context_bind_output(context, 0, COLLAGE_DTYPE_I32, memory, out_bytes), "not int32");
  MISUSED(collage_context_output(context, 7, &data), "there is no output 7");
  MISUSED(collage_context_input(context, 0, NULL), "data is NULL");
  MISUSED(collage_context_run_profiled(context, &ms, info.steps + 1), "steps");
  MISUSED(collage_context_run_profiled(context, NULL, info.steps), "step_ms is NULL");
  DONE(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, memory, in_bytes));
  DONE(collage_context_bind_output(context, 0, COLLAGE_DTYPE_F32, memory + in_bytes - 4, out_bytes));
  MISUSED(collage_context_run(context), "overlaps");
  /* The part that has changed since then is checked again, and so is the other side. */
  DONE(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, memory + 4, in_bytes));
  MISUSED(collage_context_run(context), "overlaps");
  DONE(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, memory, in_bytes));
  MISUSED(collage_context_run(context), "overlaps");
  /* None of this has harmed it. */
  memset(memory, 0, in_bytes);
  DONE(collage_context_bind_output(context, 0, COLLAGE_DTYPE_F32, memory + in_bytes, out_bytes));
  DONE(collage_context_run(context));
  DONE(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, memory + 4, in_bytes));
  MISUSED(collage_context_run(context), "overlaps");
  DONE(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, memory, in_bytes));
  DONE(collage_context_run(context));
  collage_context_release(context);
  free(memory);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  CHECK(*collage_last_error() == '\0');
  networks(argv[1]);
  collage_network_release(NULL);
  collage_plan_release(NULL);
  collage_engine_release(NULL);
  collage_context_release(NULL);

  collage_network* network = NULL;
  collage_plan* plan = NULL;
  collage_engine* engine = NULL;
  const collage_place_options how = {.struct_size = sizeof how, .how = COLLAGE_PLACE_PRIORITY, .threads = 1};
  if (DONE(collage_network_from_zoo("bert-paper", &network))) plans(network, argv[2]);
  if (DONE(collage_plan_place(network, &how, &plan)) && DONE(collage_engine_create(plan, NULL, &engine))) {
    collage_port in = {.struct_size = sizeof in}, out = {.struct_size = sizeof out};
    DONE(collage_engine_input(engine, 0, &in));
    DONE(collage_engine_output(engine, 0, &out));
    contexts(engine, in.bytes, out.bytes);
  }
  collage_engine_release(engine);
  collage_plan_release(plan);
  collage_network_release(network);
  if (failures == 0) printf("each mistake is told\n");
  return failures == 0 ? 0 : 1;
}
