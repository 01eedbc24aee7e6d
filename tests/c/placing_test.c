/* Placing through the C interface: placing_test MODEL FOLDER. Kernels are measured in this
   program started again. The model is the plain one of make_model.py. */
#include "check.h"

#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

struct heard {
  int calls;
  int end_at; /* the call that ends measuring; 0: none */
  bool said_measuring;
};
static int listen(void* data, const collage_progress* now) {
  struct heard* heard = data;
  ++heard->calls;
  CHECK(now->struct_size >= sizeof *now && *now->stage != '\0' && *now->what != '\0');
  if (strcmp(now->stage, "measuring") == 0) heard->said_measuring = true;
  return heard->end_at != 0 && heard->calls >= heard->end_at;
}

/* The number behind a member's name in JSON; -1 where there is none. */
static double number_of(const char* json, const char* member) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\": ", member);
  const char* at = strstr(json, quoted);
  return at == NULL ? -1 : strtod(at + strlen(quoted), NULL);
}

static collage_plan* place(const collage_network* network, collage_place_options options) {
  options.struct_size = sizeof options;
  options.threads = 1;
  options.compare_s = 0.05;
  collage_plan* plan = NULL;
  DONE(collage_plan_place(network, &options, &plan));
  return plan;
}

static const char* json_of(const collage_plan* plan) {
  const char* json = "";
  if (plan != NULL) DONE(collage_plan_json(plan, &json));
  return json;
}

static void measured(const collage_network* network, const char* store) {
  struct heard heard = {0, 0, false};
  /* Every candidate, and no backend that takes regions: which are measured otherwise depends on what others took. */
  collage_place_options how = {
      .store = store, .backends = "portable", .complete = 1, .progress = listen, .progress_data = &heard};
  collage_plan* plan = place(network, how);
  CHECK(heard.calls > 0 && heard.said_measuring);
  CHECK(number_of(json_of(plan), "measured") > 0 && number_of(json_of(plan), "cost_ms") > 0);
  CHECK(strstr(json_of(plan), "\"where\": \"in a worker\"") != NULL);

  /* What was measured is kept; a plan of before is compared with. */
  heard = (struct heard){0, 0, false};
  how.recheck = 1;
  how.previous = plan;
  collage_plan* again = place(network, how);
  CHECK(number_of(json_of(again), "measured") == 0 && number_of(json_of(again), "from_store") > 0);
  collage_plan_release(plan);
  collage_plan_release(again);

  /* What kernels make of NaN and infinity was not asked before. */
  how.previous = NULL;
  how.keep_non_finite = 1;
  plan = place(network, how);
  CHECK(number_of(json_of(plan), "measured") > 0 && number_of(json_of(plan), "from_store") == 0);
  CHECK(strstr(json_of(plan), "\"fp32 with NaN and infinity kept\"") != NULL);
  collage_plan_release(plan);
}

struct sentences {
  int count;
  bool has_summary;
};
static void keep_sentence(void* data, int32_t level, const char* text) {
  struct sentences* kept = data;
  ++kept->count;
  kept->has_summary |= level == COLLAGE_LOG_NOTE && strstr(text, " kernels, ") != NULL;
}

/* The log of a placing; and no log when it is not wanted any more. */
static void logged(const collage_network* network) {
  struct sentences kept = {0, false};
  collage_set_log(keep_sentence, &kept);
  collage_place_options how = {.store = "none", .backends = "portable"};
  collage_plan_release(place(network, how));
  CHECK(kept.has_summary);
  collage_set_log(NULL, NULL);
  const int before = kept.count;
  collage_plan_release(place(network, how));
  CHECK(kept.count == before);
}

static void ended(const collage_network* network) {
  struct heard heard = {0, 1, false};
  collage_plan* plan =
      place(network, (collage_place_options){.store = "none", .progress = listen, .progress_data = &heard});
  CHECK(heard.calls == 1 && strstr(json_of(plan), "\"interrupted\": true") != NULL);
  collage_plan_release(plan);
}

static int cancel_in_stage(void* data, const collage_progress* now) {
  return strcmp(now->stage, data) == 0 ? COLLAGE_PROGRESS_CANCEL : COLLAGE_PROGRESS_CONTINUE;
}

/* While kernels are measured there is no plan yet; while placements are compared there is one. */
static void cancelled(const collage_network* network) {
  char measuring[] = "measuring", comparing[] = "comparing";
  collage_place_options how = {.struct_size = sizeof how, .threads = 1, .store = "none", .backends = "portable"};
  how.progress = cancel_in_stage;
  how.progress_data = measuring;
  collage_plan* plan = NULL;
  CHECK(collage_plan_place(network, &how, &plan) == COLLAGE_CANCELLED && plan == NULL);
  CHECK(strstr(collage_last_error(), "so there is no plan") != NULL);
  how.progress_data = comparing;
  DONE(collage_plan_place(network, &how, &plan));
  CHECK(strstr(json_of(plan), "\"interrupted\": true") != NULL);
  collage_plan_release(plan);
}

/* The bound on the memory of weights is in the plan. */
static void within_memory(const collage_network* network) {
  collage_plan* plan =
      place(network, (collage_place_options){.how = COLLAGE_PLACE_PRIORITY, .memory_bytes = 123456789});
  CHECK(number_of(json_of(plan), "bound") == 123456789);
  CHECK(number_of(json_of(plan), "weights") > 0);
  collage_plan_release(plan);
  plan = place(network, (collage_place_options){.how = COLLAGE_PLACE_PRIORITY, .memory_ratio = 3});
  CHECK(number_of(json_of(plan), "bound") >= 3 * number_of(json_of(plan), "network"));
  collage_plan_release(plan);
}

/* Without costs, estimates follow the order of the backends. */
static void by_estimates(const collage_network* network) {
  collage_plan* plan = place(network, (collage_place_options){.how = COLLAGE_PLACE_ESTIMATE, .store = "none"});
  CHECK(strstr(json_of(plan), "\"origin\": \"priority\"") != NULL);
  CHECK(number_of(json_of(plan), "measured") == 0);
  collage_engine* engine = NULL;
  DONE(collage_engine_create(plan, NULL, &engine));
  collage_engine_release(engine);
  collage_plan_release(plan);
}

static void by_rules(const collage_network* network) {
  const collage_place_rule rules[] = {{.action = COLLAGE_RULE_PIN, .what = "softmax", .backend = "portable"}};
  collage_plan* plan =
      place(network, (collage_place_options){.how = COLLAGE_PLACE_PRIORITY, .rules = rules, .rule_count = 1});
  collage_engine* engine = NULL;
  DONE(collage_engine_create(plan, NULL, &engine));
  collage_engine_info info = {.struct_size = sizeof info};
  DONE(collage_engine_get_info(engine, &info));
  size_t found = 0;
  for (size_t i = 0; i < info.steps; ++i) {
    collage_step step = {.struct_size = sizeof step};
    if (!DONE(collage_engine_step(engine, i, &step)) || strstr(step.label, "softmax") == NULL) continue;
    ++found;
    CHECK(strcmp(step.backend, "portable") == 0);
  }
  CHECK(found > 0);
  collage_engine_release(engine);
  collage_plan_release(plan);
}

struct thread_task {
  const collage_network* network;
  collage_plan* plan;
};
static int place_in_thread(void* data) {
  struct thread_task* task = data;
  task->plan = place(task->network, (collage_place_options){.store = "none", .backends = "portable", .budget_s = 1});
  return 0;
}

/* Two threads that measure take turns. */
static void at_once(const collage_network* network) {
  struct thread_task tasks[2] = {{network, NULL}, {network, NULL}};
  thrd_t threads[2];
  for (int i = 0; i < 2; ++i) CHECK(thrd_create(&threads[i], place_in_thread, &tasks[i]) == thrd_success);
  for (int i = 0; i < 2; ++i) thrd_join(threads[i], NULL);
  for (int i = 0; i < 2; ++i) CHECK(number_of(json_of(tasks[i].plan), "measured") > 0);
  for (int i = 0; i < 2; ++i) collage_plan_release(tasks[i].plan);
}

int main(int argc, char** argv) {
  if (collage_worker(argc, argv)) return 0;
  if (argc != 3) return 2;
  char store[4096];
  snprintf(store, sizeof store, "%s/placing_test.db", argv[2]);
  remove(store);
  const char* json = NULL;
  DONE(collage_system_json(&json));
  collage_network *large = NULL, *network = NULL;
  const int64_t rows[] = {5, 4};
  const collage_input_shape shape = {"x", rows, 2};
  const collage_network_options options = {.struct_size = sizeof options, .shapes = &shape, .shape_count = 1};
  if (DONE(collage_network_from_zoo("bert-paper", &large))) {
    by_rules(large);
    by_estimates(large);
    within_memory(large);
  }
  if (strstr(json, "\"onnx\": true") != NULL && DONE(collage_network_from_file(argv[1], &options, &network))) {
    measured(network, store);
    logged(network);
    ended(network);
    cancelled(network);
    at_once(network);
  }
  collage_network_release(large);
  collage_network_release(network);
  remove(store);
  if (failures == 0) printf("placing through the C interface does as it says\n");
  return failures == 0 ? 0 : 1;
}
