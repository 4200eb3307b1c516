// Wrong arguments of every function: an error, and never anything else.
#include "harness.h"

#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

// Every function with one handle that is none of its kind.
static void check_handle(int64_t handle) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  byname_counters counters = BYNAME_INIT(byname_counters);
  byname_source source = BYNAME_INIT(byname_source);
  byname_page page = BYNAME_INIT(byname_page);
  struct waiter waiter;
  waiter_init(&waiter);
  byname_completion completion = completion_of(&waiter);
  byname_range range = {0, NULL, 0, 0};
  int64_t out = 5;
  char text[10];
  CHECK_ERROR(byname_session_close(handle, &error), EBADF, error);
  CHECK_ERROR(byname_session_counters(handle, &counters, &error), EBADF, error);
  CHECK_ERROR(byname_session_source(handle, &source, &error), EBADF, error);
  CHECK_ERROR(byname_session_keep_versions(handle, &error), EBADF, error);
  CHECK_ERROR(byname_session_name(handle, "a", text, sizeof text, &error), EBADF, error);
  CHECK_ERROR(byname_stat(handle, "a", &attributes, &error), EBADF, error);
  CHECK_ERROR(byname_stat_start(handle, "a", &attributes, &completion, &error), EBADF, error);
  CHECK_ERROR(byname_list(handle, "a", &error), EBADF, error);
  CHECK_ERROR(byname_list_start(handle, "a", &out, &completion, &error), EBADF, error);
  CHECK_ERROR(byname_listing_count(handle, &error), EBADF, error);
  CHECK_ERROR(byname_listing_attributes(handle, &attributes, &error), EBADF, error);
  CHECK_ERROR(byname_listing_page(handle, &page, &error), EBADF, error);
  CHECK_ERROR(byname_listing_close(handle, &error), EBADF, error);
  CHECK_ERROR(byname_open(handle, "a", &error), EBADF, error);
  CHECK_ERROR(byname_open_start(handle, "a", &out, &completion, &error), EBADF, error);
  CHECK_ERROR(byname_open_entry(handle, "a", &error), EBADF, error);
  CHECK_ERROR(byname_open_entry_start(handle, "a", &out, &completion, &error), EBADF, error);
  CHECK_ERROR(byname_file_close(handle, &error), EBADF, error);
  CHECK_ERROR(byname_file_attributes(handle, &attributes, &error), EBADF, error);
  CHECK_ERROR(byname_file_counters(handle, &counters, &error), EBADF, error);
  CHECK_ERROR(byname_read(handle, text, sizeof text, 0, &error), EBADF, error);
  CHECK_ERROR(byname_read_ranges(handle, &range, 1, &error), EBADF, error);
  CHECK_ERROR(byname_read_ranges_start(handle, &range, 1, &completion, &error), EBADF, error);
  CHECK_ERROR(byname_cancel(handle, &error), EBADF, error);
  byname_site_changes changes = BYNAME_INIT(byname_site_changes);
  byname_site_room room = BYNAME_INIT(byname_site_room);
  CHECK_ERROR(byname_site_open(handle, "", NULL, &error), EBADF, error);
  CHECK_ERROR(byname_site_close(handle, &error), EBADF, error);
  CHECK_ERROR(byname_site_names(handle, text, sizeof text, &error), EBADF, error);
  CHECK_ERROR(byname_site_stat(handle, "a", &attributes, &error), EBADF, error);
  CHECK_ERROR(byname_site_access(handle, "a", BYNAME_MAY_READ, &attributes, &error), EBADF, error);
  CHECK_ERROR(byname_site_access(handle, "a", 8, &attributes, &error), EINVAL, error);
  CHECK_ERROR(byname_site_open_to_read(handle, "a", &error), EBADF, error);
  CHECK_ERROR(byname_site_entries(handle, "a", NULL, &page, &error), EBADF, error);
  CHECK_ERROR(byname_site_mkdir(handle, "a", 0755, 0, &error), EBADF, error);
  CHECK_ERROR(byname_site_rename(handle, "a", "b", 0, &error), EBADF, error);
  CHECK_ERROR(byname_site_remove(handle, "a", 0, &error), EBADF, error);
  CHECK_ERROR(byname_site_change(handle, "a", &changes, &error), EBADF, error);
  CHECK_ERROR(byname_site_set_replicas(handle, "a", 1, &error), EBADF, error);
  byname_site_xattr xattr = BYNAME_INIT(byname_site_xattr);
  CHECK_ERROR(byname_site_set_xattr(handle, "a", &xattr, &error), EINVAL, error);
  xattr.name = "user.a";
  CHECK_ERROR(byname_site_set_xattr(handle, "a", &xattr, &error), EBADF, error);
  CHECK_ERROR(byname_site_get_xattr(handle, "a", &xattr, &error), EBADF, error);
  CHECK_ERROR(byname_site_list_xattrs(handle, "a", text, 1, &error), EBADF, error);
  CHECK_ERROR(byname_site_remove_xattr(handle, "a", "user.a", &error), EBADF, error);
  CHECK_ERROR(byname_site_room_below(handle, "a", &room, &error), EBADF, error);
  CHECK_ERROR(byname_site_open_file(handle, "a", &error), EBADF, error);
  CHECK_ERROR(byname_site_put(handle, "a", 0, NULL, &error), EBADF, error);
  CHECK_ERROR(byname_site_truncate(handle, "a", 0, &error), EBADF, error);
  CHECK_ERROR(byname_site_servers(handle, "a", text, 1, &error), EBADF, error);
  CHECK(error.error_class == BYNAME_CLASS_MISUSE);
  // A call that could not be started has no end.
  CHECK(waiter.count == 0 && out == 5);
}

static void check_handles(byname_session session, byname_file file, byname_listing listing) {
  byname_error error = BYNAME_INIT(byname_error);
  const int64_t made_up[] = {0, 1, -1, 42, INT64_MAX, INT64_MIN, file + 1, file ^ (1ll << 62)};
  for (size_t index = 0; index < sizeof made_up / sizeof *made_up; index++)
    check_handle(made_up[index]);
  char buffer[10];
  CHECK_ERROR(byname_read(session, buffer, 10, 0, &error), EBADF, error);
  CHECK(strstr(error.message, "a session, not a file") != NULL);
  CHECK_ERROR(byname_open(file, "log.txt", &error), EBADF, error);
  CHECK_ERROR(byname_listing_count(file, &error), EBADF, error);
  CHECK_ERROR(byname_cancel(listing, &error), EBADF, error);
}

static void check_pointers(byname_session session, byname_file file, byname_listing listing) {
  byname_error error = BYNAME_INIT(byname_error);
  struct waiter waiter;
  waiter_init(&waiter);
  byname_completion completion = completion_of(&waiter), without = completion;
  without.done = NULL;
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  byname_range range = {0, NULL, 1, 0};
  char buffer[10];
  CHECK_ERROR(byname_stat(session, NULL, &attributes, &error), EINVAL, error);
  CHECK(strcmp(error.message, "path is NULL") == 0);
  CHECK_ERROR(byname_stat(session, "a", NULL, &error), EINVAL, error);
  CHECK_ERROR(byname_stat_start(session, "a", &attributes, NULL, &error), EINVAL, error);
  CHECK_ERROR(byname_stat_start(session, "a", &attributes, &without, &error), EINVAL, error);
  CHECK_ERROR(byname_open(session, NULL, &error), EINVAL, error);
  CHECK_ERROR(byname_open_start(session, "a", NULL, &completion, &error), EINVAL, error);
  CHECK_ERROR(byname_list_start(session, "a", NULL, &completion, &error), EINVAL, error);
  CHECK_ERROR(byname_open_entry(listing, NULL, &error), EINVAL, error);
  CHECK_ERROR(byname_listing_page(listing, NULL, &error), EINVAL, error);
  CHECK_ERROR(byname_file_attributes(file, NULL, &error), EINVAL, error);
  CHECK_ERROR(byname_read(file, NULL, 1, 0, &error), EINVAL, error);
  CHECK_ERROR(byname_read(file, buffer, UINT64_MAX, 0, &error), EINVAL, error);
  CHECK_ERROR(byname_read_ranges(file, NULL, 1, &error), EINVAL, error);
  CHECK_ERROR(byname_read_ranges(file, &range, 1, &error), EINVAL, error);
  CHECK_ERROR(byname_read_ranges(file, &range, BYNAME_RANGES_MAX + 1, &error), EINVAL, error);
  CHECK_ERROR(byname_session_counters(session, NULL, &error), EINVAL, error);
  CHECK_ERROR(byname_session_source(session, NULL, &error), EINVAL, error);
  CHECK_ERROR(byname_session_name(session, NULL, buffer, 10, &error), EINVAL, error);
  CHECK(waiter.count == 0);
  // Without an error struct the number is still there.
  CHECK(byname_stat(session, NULL, NULL, NULL) == -EINVAL);
}

static void check_sizes(byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  attributes.struct_size--;
  CHECK_ERROR(byname_stat(session, "log.txt", &attributes, &error), EINVAL, error);
  CHECK(strstr(error.message, "attributes.struct_size") != NULL);
  // A caller that forgot the size of its error gets the number, and nothing is done.
  byname_error small = error;
  small.struct_size = 0;
  attributes = BYNAME_INIT(byname_attributes);
  CHECK(byname_stat(session, "log.txt", &attributes, &small) == -EINVAL);
  CHECK(attributes.kind == 0 && memcmp(small.message, error.message, sizeof small.message) == 0);
  // A later program has larger structs.
  struct {
    byname_attributes known;
    uint64_t later;
  } large = {BYNAME_INIT(byname_attributes), 7};
  large.known.struct_size = sizeof large;
  CHECK_OK(byname_stat(session, "log.txt", &large.known, &error), error);
  CHECK(large.known.struct_size == sizeof large && large.later == 7);
  CHECK(large.known.kind == BYNAME_KIND_FILE);
}

static void check_options(const struct tree *tree) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_session_options options = BYNAME_INIT(byname_session_options);
  options.home = tree->home;
  options.link = "no link";
  CHECK_ERROR(byname_session_open(&options, BYNAME_ABI_VERSION, &error), EINVAL, error);
  options.link = "\xff";
  CHECK_ERROR(byname_session_open(&options, BYNAME_ABI_VERSION, &error), EINVAL, error);
  options.link = "byname:/lab?via=tcp://127.0.0.1:1";
  CHECK_ERROR(byname_session_open(&options, BYNAME_ABI_VERSION, &error), ECONNREFUSED, error);
  CHECK(error.error_class == BYNAME_CLASS_RETRYABLE);
  CHECK(strstr(error.message, "127.0.0.1:1") != NULL);
  options.link = tree->link;
  options.connect = "gopher://a";
  CHECK_ERROR(byname_session_open(&options, BYNAME_ABI_VERSION, &error), EINVAL, error);
  options.connect = NULL;
  options.unknown_keys = 3;
  CHECK_ERROR(byname_session_open(&options, BYNAME_ABI_VERSION, &error), EINVAL, error);
  options.unknown_keys = 0;
  options.freshness = 3;
  CHECK_ERROR(byname_session_open(&options, BYNAME_ABI_VERSION, &error), EINVAL, error);
  options.freshness = 0;
  options.is_bulk = 2;
  CHECK_ERROR(byname_session_open(&options, BYNAME_ABI_VERSION, &error), EINVAL, error);
  options.is_bulk = 0;

  // A configuration of its own: one that is missing, one with a mistake, one that is taken.
  char path[4096];
  snprintf(path, sizeof path, "%s/door.toml", tree->home);
  options.config_file = path;
  remove(path);
  CHECK_ERROR(byname_session_open(&options, BYNAME_ABI_VERSION, &error), ENOENT, error);
  FILE *file = fopen(path, "w");
  CHECK(file != NULL && fputs("[client]\nretires = 3\n", file) > 0 && fclose(file) == 0);
  CHECK_ERROR(byname_session_open(&options, BYNAME_ABI_VERSION, &error), EINVAL, error);
  CHECK(strstr(error.message, "door.toml:2: unknown option client.retires") != NULL);
  const char *connect = strstr(tree->link, "via=") + 4;
  file = fopen(path, "w");
  CHECK(file != NULL && fprintf(file, "[client]\nconnect = \"%.*s\"\n",
                                (int)strcspn(connect, ","), connect) > 0 && fclose(file) == 0);
  options.link = NULL;
  options.unknown_keys = BYNAME_UNKNOWN_KEYS_FIRST_USE;
  byname_session session = byname_session_open(&options, BYNAME_ABI_VERSION, &error);
  CHECK_OK(session, error);
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  CHECK_OK(byname_stat(session, "/lab/run7/log.txt", &attributes, &error), error);
  CHECK(attributes.trust == BYNAME_TRUST_FIRST_USE);
  CHECK_OK(byname_session_close(session, &error), error);
}

static void check_fork(byname_session session) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    byname_error error = BYNAME_INIT(byname_error);
    byname_attributes attributes = BYNAME_INIT(byname_attributes);
    CHECK_ERROR(byname_stat(session, "log.txt", &attributes, &error), ENOTSUP, error);
    CHECK_ERROR(byname_session_open(NULL, BYNAME_ABI_VERSION, &error), ENOTSUP, error);
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void test_misuse(const struct tree *tree) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_session session = open_session(tree);
  byname_file file = byname_open(session, "log.txt", &error);
  CHECK_OK(file, error);
  byname_listing listing = byname_list(session, "", &error);
  CHECK_OK(listing, error);
  check_handles(session, file, listing);
  check_pointers(session, file, listing);
  check_sizes(session);
  check_options(tree);
  check_fork(session);
  // Nothing of that has harmed anything.
  char buffer[100];
  CHECK(byname_read(file, buffer, sizeof buffer, 0, &error) == 13);
  CHECK_OK(byname_listing_close(listing, &error), error);
  check_handle(listing);
  CHECK_OK(byname_file_close(file, &error), error);
  check_handle(file);
  CHECK_OK(byname_session_close(session, &error), error);
  check_handle(session);
}
