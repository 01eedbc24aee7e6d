/* Prints how threads wait, and what the program sees of the variable that decided it: waiting_test [POLICY...]
 *
 * waiting.py starts it and checks what it prints. */
#include <collage.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  const char *spins = getenv("GOMP_SPINCOUNT"), *json = NULL, *policy;
  int i;
  for (i = 1; i < argc; ++i)
    if (collage_set_waiting(argv[i]) != COLLAGE_OK) return 1;
  if (collage_system_json(&json) != COLLAGE_OK) return 1;
  policy = strstr(json, "\"waiting_policy\": \"");
  if (policy == NULL) return 1;
  policy += strlen("\"waiting_policy\": \"");
  printf("%s\n%.*s\n", spins != NULL ? spins : "not set", (int)strcspn(policy, "\""), policy);
  return 0;
}
