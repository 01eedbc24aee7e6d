/* A program that uses the installed C library: measures a network in workers, runs it, and writes a trace to the file it is given. */
#include <collage.h>
#include <collage_trace.h>
#include <stdio.h>
#include <string.h>

static int is_without_worker = 0;

static void note(void* data, int32_t level, const char* text) {
  (void)data;
  (void)level;
  fprintf(stderr, "%s\n", text);
  if (strstr(text, "were measured in this process") != NULL) is_without_worker = 1;
}

int main(int argc, char** argv) {
  const collage_place_options how = {.struct_size = sizeof how, .threads = 1, .budget_s = 2, .store = "none"};
  collage_network* network = NULL;
  collage_plan* plan = NULL;
  collage_engine* engine = NULL;
  collage_context* context = NULL;
  collage_trace* trace = NULL;
  void* memory = NULL;
  collage_set_log(note, NULL);
  if (argc != 2 || collage_abi_version() != COLLAGE_ABI_VERSION ||
      collage_network_from_zoo("bert-paper", &network) != COLLAGE_OK ||
      collage_plan_place(network, &how, &plan) != COLLAGE_OK ||
      collage_engine_create(plan, NULL, &engine) != COLLAGE_OK ||
      collage_context_create(engine, NULL, &context) != COLLAGE_OK ||
      collage_context_input(context, 0, &memory) != COLLAGE_OK ||
      collage_context_output(context, 0, &memory) != COLLAGE_OK || collage_trace_create(NULL, &trace) != COLLAGE_OK ||
      collage_context_run_traced(context, NULL, trace) != COLLAGE_OK ||
      collage_trace_save(trace, argv[1]) != COLLAGE_OK) {
    fprintf(stderr, "%s\n", collage_last_error());
    return 1;
  }
  collage_trace_release(trace);
  collage_context_release(context);
  collage_engine_release(engine);
  collage_plan_release(plan);
  collage_network_release(network);
  return is_without_worker;
}
