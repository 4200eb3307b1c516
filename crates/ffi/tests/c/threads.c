// Hundreds of threads on one session, each with files, ranges and errors of its own.
#include "harness.h"

enum { THREADS = 300, ROUNDS = 12 };

struct worker {
  byname_session session;
  byname_file shared;
  const struct bytes *bytes;
  uint64_t seed;
};

static uint64_t dice(struct worker *worker, uint64_t end) {
  worker->seed = worker->seed * 6364136223846793005u + 1;
  return (worker->seed >> 20) % end;
}

static void read_some(struct worker *worker, byname_file file) {
  byname_error error = BYNAME_INIT(byname_error);
  unsigned char room[5][2000];
  byname_range ranges[5];
  for (int index = 0; index < 5; index++)
    ranges[index] = (byname_range){dice(worker, worker->bytes->count), room[index], 2000, 0};
  CHECK_OK(byname_read_ranges(file, ranges, 5, &error), error);
  for (int index = 0; index < 5; index++)
    CHECK(memcmp(room[index], worker->bytes->start + ranges[index].offset,
                 ranges[index].filled_bytes) == 0);
}

static void *work(void *context) {
  struct worker *worker = context;
  byname_error error = BYNAME_INIT(byname_error);
  for (int round = 0; round < ROUNDS; round++) {
    read_some(worker, worker->shared);
    switch (dice(worker, 4)) {
      case 0: {
        byname_file own = byname_open(worker->session, "events.root", &error);
        CHECK_OK(own, error);
        read_some(worker, own);
        CHECK_OK(byname_file_close(own, &error), error);
        break;
      }
      case 1: {
        char missing[40];
        snprintf(missing, sizeof missing, "missing-%" PRIu64, worker->seed);
        CHECK_ERROR(byname_open(worker->session, missing, &error), ENOENT, error);
        // The text is of this thread's error, not of another's.
        CHECK(strstr(error.message, missing) != NULL);
        break;
      }
      case 2: {
        struct waiter waiter;
        waiter_init(&waiter);
        byname_completion completion = completion_of(&waiter);
        byname_attributes attributes = BYNAME_INIT(byname_attributes);
        byname_call call =
            byname_stat_start(worker->session, "unit", &attributes, &completion, &error);
        CHECK_OK(call, error);
        CHECK(wait_for(&waiter, 1) == 0 && attributes.size == 8192);
        break;
      }
      default:
        break;
    }
  }
  return NULL;
}

void test_threads(const struct tree *tree) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_session session = open_session(tree);
  byname_file shared = byname_open(session, "events.root", &error);
  CHECK_OK(shared, error);
  struct bytes bytes = local_file(tree, "events.root");
  static struct worker workers[THREADS];
  static pthread_t threads[THREADS];
  pthread_attr_t small;
  CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 256 << 10) == 0);
  for (int index = 0; index < THREADS; index++) {
    workers[index] = (struct worker){session, shared, &bytes, (uint64_t)index + 1};
    CHECK(pthread_create(&threads[index], &small, work, &workers[index]) == 0);
  }
  for (int index = 0; index < THREADS; index++) CHECK(pthread_join(threads[index], NULL) == 0);
  byname_counters counters = BYNAME_INIT(byname_counters);
  CHECK_OK(byname_session_counters(session, &counters, &error), error);
  CHECK(counters.files_open == 1 && counters.calls_in_flight == 1);
  CHECK_OK(byname_session_close(session, &error), error);
  free(bytes.start);
}
