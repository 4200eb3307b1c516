// Every blocking call once, on files of all sizes and names.
#include "harness.h"

static void check_versions(void) {
  CHECK(byname_abi_version() == BYNAME_ABI_VERSION);
  CHECK(strchr(byname_version(), '.') != NULL);
  byname_error error = BYNAME_INIT(byname_error);
  CHECK_ERROR(byname_session_open(NULL, BYNAME_ABI_VERSION + 0x10000, &error), ENOTSUP, error);
  CHECK_ERROR(byname_session_open(NULL, BYNAME_ABI_VERSION + 1, &error), ENOTSUP, error);
  CHECK(error.error_class == BYNAME_CLASS_MISUSE);
  CHECK(strstr(error.message, "1.1") != NULL);
}

static void check_stat(byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  char text[BYNAME_TEXT_BYTES];
  attributes.text = text;
  attributes.text_size = sizeof text;
  CHECK_OK(byname_stat(session, "events.root", &attributes, &error), error);
  CHECK(attributes.struct_size == sizeof attributes);
  CHECK(attributes.kind == BYNAME_KIND_FILE && attributes.trust == BYNAME_TRUST_ANCHORED);
  uint32_t all = BYNAME_HAS_VERSION | BYNAME_HAS_SIZE | BYNAME_HAS_MTIME | BYNAME_HAS_MODE |
                 BYNAME_HAS_ROOT | BYNAME_HAS_SEGMENT_BYTES | BYNAME_HAS_PUBLISHER_KEY |
                 BYNAME_IS_FRESH;
  CHECK((attributes.present & all) == all);
  CHECK(attributes.size == 3000000 && (attributes.mode & 0170000) == 0100000);
  CHECK(attributes.version > 0 && attributes.mtime_ns > 0 && attributes.segment_bytes > 0);
  CHECK(strcmp(attributes.publisher, "/lab/run7") == 0 && attributes.publisher == text);
  CHECK(attributes.text_bytes == sizeof "/lab/run7");

  // Slashes mean nothing; without room the texts are left out, and how much they need is said.
  attributes.text_size = 3;
  CHECK_OK(byname_stat(session, "///events.root/", &attributes, &error), error);
  CHECK(attributes.publisher == NULL && attributes.text_bytes == sizeof "/lab/run7");
  attributes.text = NULL;
  attributes.text_size = 100;
  CHECK_OK(byname_stat(session, "", &attributes, &error), error);
  CHECK(attributes.publisher == NULL && attributes.kind == BYNAME_KIND_DIRECTORY);
  CHECK_OK(byname_stat(session, "a folder/", &attributes, NULL), error);
  CHECK(attributes.kind == BYNAME_KIND_DIRECTORY);
}

static void check_file(const struct tree *tree, byname_session session, const char *name) {
  byname_error error = BYNAME_INIT(byname_error);
  struct bytes bytes = local_file(tree, name);
  byname_file file = byname_open(session, name, &error);
  CHECK_OK(file, error);
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  CHECK_OK(byname_file_attributes(file, &attributes, &error), error);
  CHECK(attributes.size == bytes.count);

  unsigned char *buffer = malloc(bytes.count + 10);
  CHECK(buffer != NULL);
  int64_t count = byname_read(file, buffer, bytes.count + 10, 0, &error);
  CHECK(count == (int64_t)bytes.count);
  CHECK(memcmp(buffer, bytes.start, bytes.count) == 0);
  CHECK(byname_read(file, buffer, 10, bytes.count, &error) == 0);
  CHECK(byname_read(file, buffer, 10, UINT64_MAX, &error) == 0);
  CHECK(byname_read(file, NULL, 0, 0, &error) == 0);

  byname_counters counters = BYNAME_INIT(byname_counters);
  CHECK_OK(byname_file_counters(file, &counters, &error), error);
  CHECK(counters.asked_bytes == bytes.count && counters.files_open == 1);
  CHECK(counters.received_bytes >= bytes.count || counters.cached_bytes > 0);
  CHECK_OK(byname_file_close(file, &error), error);
  CHECK_ERROR(byname_read(file, buffer, 10, 0, &error), EBADF, error);
  free(buffer);
  free(bytes.start);
}

// Ranges in any order, overlapping, empty, at the end and beyond it.
static void check_ranges(const struct tree *tree, byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  struct bytes bytes = local_file(tree, "events.root");
  byname_file file = byname_open(session, "events.root", &error);
  CHECK_OK(file, error);
  enum { COUNT = 1024 };
  static unsigned char room[COUNT][300];
  byname_range ranges[COUNT];
  uint64_t total = 0;
  for (int index = 0; index < COUNT; index++) {
    uint64_t offset = (uint64_t)index * 7919 * 104729 % (bytes.count + 300);
    uint64_t length = (uint64_t)index % 301;
    ranges[index] = (byname_range){offset, room[index], length, UINT64_MAX};
    uint64_t left = offset < bytes.count ? bytes.count - offset : 0;
    total += length < left ? length : left;
  }
  CHECK(byname_read_ranges(file, ranges, COUNT, &error) == (int64_t)total);
  for (int index = 0; index < COUNT; index++) {
    const byname_range *range = &ranges[index];
    uint64_t left = range->offset < bytes.count ? bytes.count - range->offset : 0;
    CHECK(range->filled_bytes == (range->buffer_bytes < left ? range->buffer_bytes : left));
    CHECK(memcmp(room[index], bytes.start + range->offset, range->filled_bytes) == 0);
  }
  CHECK(byname_read_ranges(file, NULL, 0, &error) == 0);
  CHECK_OK(byname_file_close(file, NULL), error);
  free(bytes.start);
}

static void check_errors(byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  CHECK_ERROR(byname_open(session, "missing", &error), ENOENT, error);
  CHECK(error.error_class == BYNAME_CLASS_PERMANENT);
  CHECK(strstr(error.message, "/lab/run7/missing") != NULL);
  CHECK(error.message_bytes == strlen(error.message));
  CHECK_ERROR(byname_stat(session, "events.root/below", &attributes, &error), ENOENT, error);
  CHECK_ERROR(byname_open(session, "a folder", &error), EISDIR, error);
  CHECK_ERROR(byname_list(session, "events.root", &error), ENOTDIR, error);
  CHECK_ERROR(byname_stat(session, "a/../b", &attributes, &error), EINVAL, error);
  CHECK_ERROR(byname_stat(session, "./b", &attributes, &error), EINVAL, error);
  char path[BYNAME_PATH_BYTES_MAX + 2];
  memset(path, 'a', sizeof path);
  path[sizeof path - 1] = 0;
  CHECK_ERROR(byname_stat(session, path, &attributes, &error), ENAMETOOLONG, error);
  path[sizeof path - 2] = 0;
  CHECK(byname_stat(session, path, &attributes, &error) < 0);
}

static void check_session(byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  char name[100];
  int64_t needed = byname_session_name(session, "100% of it", name, sizeof name, &error);
  CHECK(needed == sizeof "/lab/run7/100%25%20of%20it");
  CHECK(strcmp(name, "/lab/run7/100%25%20of%20it") == 0);
  CHECK(byname_session_name(session, "100% of it", NULL, 0, &error) == needed);
  byname_source source = BYNAME_INIT(byname_source);
  CHECK_OK(byname_session_source(session, &source, &error), error);
  CHECK(strncmp(source.endpoint, "tcp", 3) == 0 && source.requests > 0 && source.rtt_ns > 0);
  byname_counters counters = BYNAME_INIT(byname_counters);
  CHECK_OK(byname_session_counters(session, &counters, &error), error);
  CHECK(counters.files_opened > 0 && counters.files_open == 0 && counters.calls_in_flight == 1);
  CHECK(counters.asked_bytes > 3000000);
  CHECK_OK(byname_session_keep_versions(session, &error), error);
}

void test_basics(const struct tree *tree) {
  check_versions();
  byname_session session = open_session(tree);
  check_stat(session);
  const char *names[] = {"events.root", "log.txt", "empty", "unit", "100% of it", "na\xc3\xafve"};
  for (size_t index = 0; index < sizeof names / sizeof *names; index++)
    check_file(tree, session, names[index]);
  check_ranges(tree, session);
  check_errors(session);
  check_session(session);
  byname_error error = BYNAME_INIT(byname_error);
  CHECK_OK(byname_session_close(session, &error), error);
  CHECK_ERROR(byname_session_close(session, &error), EBADF, error);

  // The link's key is not trusted without the link, and the text says what to do.
  byname_session_options options = BYNAME_INIT(byname_session_options);
  char bare[200];
  snprintf(bare, sizeof bare, "%.*s", (int)(strstr(tree->link, ",key=") - tree->link), tree->link);
  options.link = bare;
  options.home = tree->home;
  session = byname_session_open(&options, BYNAME_ABI_VERSION, &error);
  CHECK_OK(session, error);
  CHECK_ERROR(byname_open(session, "log.txt", &error), ENOKEY, error);
  CHECK(error.error_class == BYNAME_CLASS_PERMANENT);
  CHECK(strstr(error.message, "byname trust add '") != NULL);
  CHECK_OK(byname_session_close(session, &error), error);
  options.unknown_keys = BYNAME_UNKNOWN_KEYS_INSECURE;
  session = byname_session_open(&options, BYNAME_ABI_VERSION, &error);
  CHECK_OK(session, error);
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  CHECK_OK(byname_stat(session, "log.txt", &attributes, &error), error);
  CHECK(attributes.trust == BYNAME_TRUST_INSECURE);
  CHECK_OK(byname_session_close(session, &error), error);
}
