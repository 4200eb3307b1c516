// Tests of the C interface against a published tree: main TEST LINK FOLDER HOME.
#include "harness.h"

static const struct {
  const char *name;
  void (*run)(const struct tree *tree);
} tests[] = {
    {"basics", test_basics}, {"listings", test_listings}, {"started", test_started},
    {"cancel", test_cancel}, {"misuse", test_misuse},     {"threads", test_threads},
    {"leaks", test_leaks},   {"site", test_site},
};

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s TEST LINK FOLDER HOME\n", argv[0]);
    return 2;
  }
  struct tree tree = {argv[2], argv[3], argv[4]};
  for (size_t index = 0; index < sizeof tests / sizeof *tests; index++) {
    if (strcmp(tests[index].name, argv[1]) == 0) {
      tests[index].run(&tree);
      printf("%s: passed\n", argv[1]);
      return 0;
    }
  }
  fprintf(stderr, "no test is called %s\n", argv[1]);
  return 2;
}
