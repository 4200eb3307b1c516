// Ten thousand opens, and sessions one after the other, leave nothing behind.
#include "harness.h"

#include <dirent.h>
#include <unistd.h>

static int descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  CHECK(folder != NULL);
  int count = 0;
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count;
}

static long resident_bytes(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long total, resident;
  CHECK(file != NULL && fscanf(file, "%ld %ld", &total, &resident) == 2);
  fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

static int threads(void) {
  DIR *folder = opendir("/proc/self/task");
  CHECK(folder != NULL);
  int count = 0;
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count;
}

static void use_files(byname_session session, byname_listing listing, int count) {
  byname_error error = BYNAME_INIT(byname_error);
  for (int round = 0; round < count; round++) {
    char name[20], path[30], buffer[500];
    snprintf(name, sizeof name, "file%03d", round % 500);
    snprintf(path, sizeof path, "many/%s", name);
    byname_file file = round % 10 == 0 ? byname_open(session, path, &error)
                                       : byname_open_entry(listing, name, &error);
    CHECK_OK(file, error);
    CHECK(byname_read(file, buffer, sizeof buffer, 0, &error) == round % 500);
    CHECK_OK(byname_file_close(file, &error), error);
  }
}

void test_leaks(const struct tree *tree) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_session session = open_session(tree);
  byname_listing listing = byname_list(session, "many", &error);
  CHECK_OK(listing, error);
  use_files(session, listing, 2000);
  long before = resident_bytes();
  int open_before = descriptors();
  use_files(session, listing, 10000);
  long grown = resident_bytes() - before;
  // 10 000 leaks of 100 bytes each would be more.
  if (grown > 1000000) {
    fprintf(stderr, "10 000 opens have left %ld bytes\n", grown);
    abort();
  }
  CHECK(descriptors() == open_before);
  CHECK_OK(byname_session_close(session, &error), error);

  int threads_before = 0;
  for (int round = 0; round < 30; round++) {
    CHECK_OK(byname_session_close(open_session(tree), &error), error);
    // The engine's thread ends soon after the session.
    for (int wait = 0; round > 0 && wait < 5000 && descriptors() > open_before; wait++)
      usleep(1000);
    if (round == 0) {
      usleep(100000);
      open_before = descriptors();
      threads_before = threads();
    }
  }
  for (int wait = 0; wait < 5000 && threads() > threads_before; wait++) usleep(1000);
  CHECK(descriptors() <= open_before && threads() <= threads_before);
}
