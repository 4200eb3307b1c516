// A user at a site: changes, and that the next question sees them.
#include "harness.h"

#include <fcntl.h>
#include <unistd.h>

static byname_site open_site(byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_site site = byname_site_open(session, "", NULL, &error);
  CHECK_OK(site, error);
  char names[100];
  const int64_t needed = byname_site_names(site, names, sizeof names, &error);
  CHECK(needed > 0 && names[0] != 0 && strcmp(names + strlen(names) + 1, "/lab") == 0);
  CHECK(byname_site_names(site, NULL, 0, &error) == needed);
  return site;
}

// An anonymous local file with these octets.
static int local_with(const void *octets, size_t bytes) {
  FILE *stream = tmpfile();
  CHECK(stream != NULL);
  const int file = dup(fileno(stream));
  CHECK(file >= 0 && fclose(stream) == 0);
  CHECK(write(file, octets, bytes) == (ssize_t)bytes);
  return file;
}

static void put(byname_site site, const char *path, const char *text, uint32_t flags) {
  byname_put_options options = BYNAME_INIT(byname_put_options);
  byname_error error = BYNAME_INIT(byname_error);
  options.flags = flags;
  options.mode = 0640;
  const int file = local_with(text, strlen(text));
  CHECK_OK(byname_site_put(site, path, file, &options, &error), error);
  close(file);
}

static void reads(byname_site site, const char *path, const char *wanted) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_file file = byname_site_open_file(site, path, &error);
  CHECK_OK(file, error);
  char found[200];
  const int64_t count = byname_read(file, found, sizeof found, 0, &error);
  CHECK_OK(count, error);
  CHECK(count == (int64_t)strlen(wanted) && memcmp(found, wanted, (size_t)count) == 0);
  CHECK_OK(byname_file_close(file, &error), error);
}

static byname_attributes stat_of(byname_site site, const char *path) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  CHECK_OK(byname_site_stat(site, path, &attributes, &error), error);
  return attributes;
}

// Written, read, rewritten and renamed without a pause: no cache answers in between.
static void check_files(byname_site site) {
  byname_error error = BYNAME_INIT(byname_error);
  CHECK_ERROR(byname_site_open_file(site, "d/a", &error), ENOENT, error);
  const int early = local_with("x", 1);
  CHECK_ERROR(byname_site_put(site, "d/a", early, NULL, &error), ENOENT, error);
  close(early);
  put(site, "d/e/a", "first", BYNAME_SITE_PARENTS | BYNAME_SITE_EXCLUSIVE);
  reads(site, "d/e/a", "first");
  const byname_attributes first = stat_of(site, "d/e/a");
  CHECK(first.kind == BYNAME_KIND_FILE && first.size == 5 && (first.mode & 0777) == 0640);
  CHECK((first.present & BYNAME_HAS_REPLICAS) != 0 && first.replicas == 2);
  put(site, "d/e/a", "second and longer", 0);
  reads(site, "d/e/a", "second and longer");
  const byname_attributes second = stat_of(site, "d/e/a");
  CHECK(second.version > first.version);

  byname_put_options options = BYNAME_INIT(byname_put_options);
  options.flags = BYNAME_SITE_EXCLUSIVE;
  const int file = local_with("x", 1);
  CHECK_ERROR(byname_site_put(site, "d/e/a", file, &options, &error), EEXIST, error);
  close(file);
  CHECK_ERROR(byname_site_put(site, "d/x", -1, NULL, &error), EBADF, error);

  // In the place of a version that is there, and not of one that was.
  options = BYNAME_INIT(byname_put_options);
  options.base_version = first.version;
  const int next = local_with("third", 5);
  CHECK_ERROR(byname_site_put(site, "d/e/a", next, &options, &error), ESTALE, error);
  CHECK_ERROR(byname_site_put(site, "d/e/none", next, &options, &error), ESTALE, error);
  CHECK_ERROR(byname_site_open_file(site, "d/e/none", &error), ENOENT, error);
  reads(site, "d/e/a", "second and longer");
  uint64_t version = 0;
  options.base_version = second.version;
  options.version = &version;
  CHECK_OK(byname_site_put(site, "d/e/a", next, &options, &error), error);
  close(next);
  reads(site, "d/e/a", "third");
  CHECK(version > second.version && stat_of(site, "d/e/a").version == version);
  put(site, "d/e/a", "second and longer", 0);
  const byname_attributes last = stat_of(site, "d/e/a");

  put(site, "d/e/b 100%:", "other", 0);
  CHECK_ERROR(byname_site_rename(site, "d/e/a", "d/e/b 100%:", BYNAME_SITE_EXCLUSIVE, &error),
              EEXIST, error);
  CHECK_OK(byname_site_rename(site, "d/e/a", "d/e/b 100%:", 0, &error), error);
  reads(site, "d/e/b 100%:", "second and longer");
  CHECK(stat_of(site, "d/e/b 100%:").version == last.version);
  CHECK_ERROR(byname_site_open_file(site, "d/e/a", &error), ENOENT, error);

  CHECK_OK(byname_site_truncate(site, "d/e/b 100%:", 6, &error), error);
  reads(site, "d/e/b 100%:", "second");
  CHECK_OK(byname_site_truncate(site, "d/e/b 100%:", 0, &error), error);
  reads(site, "d/e/b 100%:", "");
  char servers[100];
  CHECK(byname_site_servers(site, "d/e/b 100%:", servers, sizeof servers, &error) == 0);
  put(site, "d/e/c", "content", 0);
  CHECK(byname_site_servers(site, "d/e/c", servers, sizeof servers, &error) > 2);
}

static void check_directories(byname_site site) {
  byname_error error = BYNAME_INIT(byname_error);
  CHECK_ERROR(byname_site_mkdir(site, "many/below", 0755, 0, &error), ENOENT, error);
  CHECK_OK(byname_site_mkdir(site, "many/below", 0755, BYNAME_SITE_PARENTS, &error), error);
  CHECK_ERROR(byname_site_mkdir(site, "many", 0755, 0, &error), EEXIST, error);
  for (int at = 0; at < 60; at++) {
    char path[40];
    snprintf(path, sizeof path, "many/%03d", at);
    CHECK_OK(byname_site_mkdir(site, path, 0700, 0, &error), error);
  }
  enum { PAGE = 25 };
  byname_entry entries[PAGE];
  char text[4096], after[300] = "";
  int count = 0, more = 1;
  while (more) {
    byname_page page = BYNAME_INIT(byname_page);
    page.entry_size = sizeof *entries;
    page.entries = entries;
    page.entries_max = PAGE;
    page.text = text;
    page.text_size = sizeof text;
    more = byname_site_entries(site, "many", after, &page, &error);
    CHECK_OK(more, error);
    for (uint64_t at = 0; at < page.count; at++, count++) {
      CHECK(strcmp(entries[at].name, after) > 0);
      CHECK(entries[at].attributes.kind == BYNAME_KIND_DIRECTORY);
      CHECK(entries[at].attributes.owner != NULL);
      snprintf(after, sizeof after, "%s", entries[at].name);
    }
  }
  CHECK(count == 61);
  CHECK_ERROR(byname_site_remove(site, "many", 0, &error), ENOTEMPTY, error);
  CHECK_OK(byname_site_remove(site, "many", BYNAME_SITE_RECURSIVE, &error), error);
  CHECK_ERROR(byname_site_remove(site, "many", BYNAME_SITE_RECURSIVE, &error), ENOENT, error);
  CHECK_ERROR(byname_site_remove(site, "d", 64, &error), EINVAL, error);
}

static void check_lists(byname_site site) {
  byname_error error = BYNAME_INIT(byname_error);
  char texts[200];
  CHECK_OK(byname_site_mkdir(site, "lists", 0750, 0, &error), error);
  byname_site_acl acl = BYNAME_INIT(byname_site_acl);
  acl.set = "u:bert:rwx,g:cms:r-x";
  CHECK_OK(byname_site_change_acl(site, "lists", &acl, &error), error);
  acl.flags = BYNAME_ACL_DEFAULT;
  CHECK_OK(byname_site_change_acl(site, "lists", &acl, &error), error);
  const char own[] = "u::rwx,u:bert:rwx,g::r-x,g:cms:r-x,m::rwx,o::---";
  CHECK(byname_site_get_acl(site, "lists", texts, sizeof texts, &error) == 2 * sizeof own);
  CHECK(strcmp(texts, own) == 0 && strcmp(texts + sizeof own, own) == 0);
  acl = (byname_site_acl){sizeof acl, BYNAME_ACL_KEEP_MASK, NULL, "u:bert,g:cms"};
  CHECK_OK(byname_site_change_acl(site, "lists", &acl, &error), error);
  acl = (byname_site_acl){sizeof acl, BYNAME_ACL_DEFAULT | BYNAME_ACL_CLEAR, NULL, NULL};
  CHECK_OK(byname_site_change_acl(site, "lists", &acl, &error), error);
  const char left[] = "u::rwx,g::r-x,m::rwx,o::---\0";
  CHECK(byname_site_get_acl(site, "lists", texts, sizeof texts, &error) == sizeof left);
  CHECK(memcmp(texts, left, sizeof left) == 0);
  acl = (byname_site_acl){sizeof acl, BYNAME_ACL_CLEAR, NULL, NULL};
  CHECK_OK(byname_site_change_acl(site, "lists", &acl, &error), error);
  const char plain[] = "u::rwx,g::r-x,o::---\0";
  CHECK(byname_site_get_acl(site, "lists", texts, sizeof texts, &error) == sizeof plain);
  acl = (byname_site_acl){sizeof acl, 0, "u:bert:rwx,what", NULL};
  CHECK_ERROR(byname_site_change_acl(site, "lists", &acl, &error), EINVAL, error);
  acl = (byname_site_acl){sizeof acl, 64, "u:bert:rwx", NULL};
  CHECK_ERROR(byname_site_change_acl(site, "lists", &acl, &error), EINVAL, error);
  CHECK_ERROR(byname_site_get_acl(site, "nowhere", texts, sizeof texts, &error), ENOENT, error);
}

static void check_attributes(byname_site site) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_site_changes changes = BYNAME_INIT(byname_site_changes);
  changes.wanted = BYNAME_CHANGE_MODE | BYNAME_CHANGE_MTIME;
  changes.mode = 0604;
  changes.mtime_ns = 1234567890123456789;
  CHECK_OK(byname_site_change(site, "d/e/c", &changes, &error), error);
  const byname_attributes found = stat_of(site, "d/e/c");
  CHECK((found.mode & 0777) == 0604 && found.mtime_ns == changes.mtime_ns);
  CHECK_OK(byname_site_set_replicas(site, "d/e/c", 1, &error), error);
  CHECK(stat_of(site, "d/e/c").replicas == 1);

  char value[10];
  byname_site_xattr xattr = {sizeof xattr, 0, "user.a", value, sizeof value};
  CHECK_ERROR(byname_site_get_xattr(site, "d", &xattr, &error), ENODATA, error);
  xattr = (byname_site_xattr){sizeof xattr, 0, "user.a", "1\0002", 3};
  CHECK_OK(byname_site_set_xattr(site, "d", &xattr, &error), error);
  xattr = (byname_site_xattr){sizeof xattr, 0, "user.a", value, sizeof value};
  CHECK(byname_site_get_xattr(site, "d", &xattr, &error) == 3);
  CHECK(memcmp(value, "1\0002", 3) == 0);
  xattr = (byname_site_xattr){sizeof xattr, BYNAME_SITE_EXCLUSIVE, "user.a", NULL, 0};
  CHECK_ERROR(byname_site_set_xattr(site, "d", &xattr, &error), EEXIST, error);
  xattr = (byname_site_xattr){sizeof xattr, BYNAME_SITE_REPLACE, "user.b", NULL, 0};
  CHECK_ERROR(byname_site_set_xattr(site, "d", &xattr, &error), ENODATA, error);
  xattr.flags = 0;
  CHECK_OK(byname_site_set_xattr(site, "d", &xattr, &error), error);
  char names[20];
  CHECK(byname_site_list_xattrs(site, "d", names, sizeof names, &error) == 14);
  CHECK(strcmp(names, "user.a") == 0 && strcmp(names + 7, "user.b") == 0);
  CHECK_OK(byname_site_remove_xattr(site, "d", "user.a", &error), error);
  CHECK_ERROR(byname_site_remove_xattr(site, "d", "user.a", &error), ENODATA, error);

  byname_site_room room = BYNAME_INIT(byname_site_room);
  CHECK_OK(byname_site_room_below(site, "", &room, &error), error);
  CHECK(room.replicas == 2 && room.free_bytes > 0 && room.size_bytes >= room.free_bytes);
  CHECK(room.quota_bytes == BYNAME_NONE && room.entries >= 3);
}

struct turn {
  byname_site site;
  int number;
};

static void *write_many(void *context) {
  const struct turn *turn = context;
  for (int at = 0; at < 5; at++) {
    char path[60], text[60];
    snprintf(path, sizeof path, "d/thread%d/file%d", turn->number, at);
    snprintf(text, sizeof text, "content of %d, %d", turn->number, at);
    put(turn->site, path, text, BYNAME_SITE_PARENTS);
    reads(turn->site, path, text);
  }
  return NULL;
}

void test_site(const struct tree *tree) {
  byname_session session = open_session(tree);
  byname_site site = open_site(session);
  check_files(site);
  check_directories(site);
  check_attributes(site);
  check_lists(site);

  pthread_t threads[12];
  struct turn turns[12];
  for (int at = 0; at < 12; at++) {
    turns[at] = (struct turn){site, at};
    CHECK(pthread_create(&threads[at], NULL, write_many, &turns[at]) == 0);
  }
  for (int at = 0; at < 12; at++) pthread_join(threads[at], NULL);

  byname_error error = BYNAME_INIT(byname_error);
  byname_site_options options = BYNAME_INIT(byname_site_options);
  options.user = "nobody-here";
  CHECK_ERROR(byname_site_open(session, "", &options, &error), ENOKEY, error);
  CHECK(strstr(error.message, "nobody-here") != NULL);
  CHECK_ERROR(byname_site_close(session, &error), EBADF, error);
  CHECK_OK(byname_site_close(site, &error), error);
  CHECK_ERROR(byname_site_mkdir(site, "x", 0755, 0, &error), EBADF, error);
  site = open_site(session);
  CHECK_OK(byname_session_close(session, &error), error);
  CHECK_ERROR(byname_site_mkdir(site, "x", 0755, 0, &error), EBADF, error);
  CHECK_OK(byname_site_close(site, &error), error);
}
