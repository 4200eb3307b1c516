// Listings by pages, and files opened from them without asking.
#include "harness.h"

enum { FILES = 500 };

static void check_small_pages(byname_listing listing) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_entry entries[7];
  char text[100];
  byname_page page = BYNAME_INIT(byname_page);
  page.entry_size = sizeof *entries;
  page.entries = entries;
  page.entries_max = 7;
  page.text = text;
  page.text_size = sizeof text;
  int seen = 0;
  for (;;) {
    uint64_t first = page.next;
    CHECK_OK(byname_listing_page(listing, &page, &error), error);
    CHECK(page.next == first + page.count && page.count <= 7);
    if (page.count == 0) break;
    for (uint64_t index = 0; index < page.count; index++, seen++) {
      const byname_entry *entry = &entries[index];
      char name[20];
      snprintf(name, sizeof name, "file%03d", seen);
      CHECK(strcmp(entry->name, name) == 0 && entry->name_bytes == strlen(name));
      CHECK(entry->attributes.kind == BYNAME_KIND_FILE && entry->is_resolved == 1);
      CHECK(entry->attributes.struct_size == sizeof entry->attributes);
      CHECK((entry->attributes.present & BYNAME_HAS_SIZE) != 0);
      CHECK(entry->attributes.size == (uint64_t)seen);
    }
  }
  CHECK(seen == FILES);
  page.next = UINT64_MAX;
  CHECK_OK(byname_listing_page(listing, &page, &error), error);
  CHECK(page.count == 0 && page.next == FILES);
}

// More room per entry than this library fills, as a later program would have.
static void check_wide_entries(byname_listing listing) {
  byname_error error = BYNAME_INIT(byname_error);
  struct {
    byname_entry known;
    uint64_t later;
  } entries[4];
  memset(entries, 7, sizeof entries);
  char text[1000];
  byname_page page = BYNAME_INIT(byname_page);
  page.entry_size = sizeof *entries;
  page.entries = &entries[0].known;
  page.entries_max = 4;
  page.text = text;
  page.text_size = sizeof text;
  CHECK_OK(byname_listing_page(listing, &page, &error), error);
  CHECK(page.count == 4);
  CHECK(strcmp(entries[3].known.name, "file003") == 0);
  CHECK(entries[3].later == 0x0707070707070707);

  page.next = 0;
  page.text_size = 7;
  CHECK_ERROR(byname_listing_page(listing, &page, &error), ERANGE, error);
  page.entry_size = sizeof(byname_entry) - 1;
  CHECK_ERROR(byname_listing_page(listing, &page, &error), EINVAL, error);
  page.entry_size = sizeof *entries;
  page.entries = NULL;
  CHECK_ERROR(byname_listing_page(listing, &page, &error), EINVAL, error);
}

static void check_entries(byname_session session, byname_listing listing) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_source before = BYNAME_INIT(byname_source), after = before;
  CHECK_OK(byname_session_source(session, &before, &error), error);
  byname_file file = byname_open_entry(listing, "file300", &error);
  CHECK_OK(file, error);
  CHECK_OK(byname_session_source(session, &after, &error), error);
  CHECK(after.requests == before.requests);
  char buffer[400];
  CHECK(byname_read(file, buffer, sizeof buffer, 0, &error) == 300);
  for (int index = 0; index < 300; index++) CHECK(buffer[index] == 'x');
  CHECK_OK(byname_file_close(file, &error), error);

  struct waiter waiter;
  waiter_init(&waiter);
  byname_completion completion = completion_of(&waiter);
  CHECK_OK(byname_open_entry_start(listing, "file301", &file, &completion, &error), error);
  CHECK(wait_for(&waiter, 1) == 0);
  CHECK(byname_read(file, buffer, sizeof buffer, 0, &error) == 301);
  // A file opened from a listing outlives it.
  CHECK_OK(byname_listing_close(listing, &error), error);
  CHECK(byname_read(file, buffer, 3, 0, &error) == 3);
  CHECK_ERROR(byname_open_entry(listing, "file300", &error), EBADF, error);
}

void test_listings(const struct tree *tree) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_session session = open_session(tree);
  byname_listing listing = byname_list(session, "many", &error);
  CHECK_OK(listing, error);
  CHECK(byname_listing_count(listing, &error) == FILES);
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  CHECK_OK(byname_listing_attributes(listing, &attributes, &error), error);
  CHECK(attributes.kind == BYNAME_KIND_DIRECTORY && attributes.version > 0);
  CHECK_ERROR(byname_open_entry(listing, "file500", &error), ENOENT, error);
  CHECK_ERROR(byname_open_entry(listing, "", &error), ENOENT, error);
  check_small_pages(listing);
  check_wide_entries(listing);
  check_entries(session, listing);

  struct waiter waiter;
  waiter_init(&waiter);
  byname_completion completion = completion_of(&waiter);
  CHECK_OK(byname_list_start(session, "", &listing, &completion, &error), error);
  CHECK(wait_for(&waiter, 1) == 0);
  CHECK(byname_listing_count(listing, &error) == 9);
  // What is left open is closed with the session.
  CHECK_OK(byname_session_close(session, &error), error);
  CHECK_ERROR(byname_listing_count(listing, &error), EBADF, error);
}
