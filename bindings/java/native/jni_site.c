// Sites: who acts, status and entries as the head has them, changes, content.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "byname_hadoop_Native.h"
#include "jni_calls.h"
#include "jni_errors.h"
#include "jni_records.h"
#include "jni_texts.h"

// Room of a page, as in jni_listing.c.
enum { kEntriesMax = 512, kTextBytes = 256 * 1024 };
// Octets that are written at a time.
enum { kPieceBytes = 64 * 1024 };

JNIEXPORT jlong JNICALL Java_byname_hadoop_Native_siteOpen(JNIEnv *env, jclass type, jlong session,
                                                           jbyteArray path, jbyteArray user) {
  (void)type;
  jlong site = -1;
  struct path above = path_of(env, path);
  struct path who = {NULL, 0};
  if (above.made) {
    who = path_of(env, user);
  }
  if (above.made && who.made) {
    byname_site_options options = BYNAME_INIT(byname_site_options);
    options.user = who.text;
    byname_error error = BYNAME_INIT(byname_error);
    site = byname_site_open(session, above.text, &options, &error);
    finish(env, site, &error);
  }
  free(above.text);
  free(who.text);
  return site;
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_siteClose(JNIEnv *env, jclass type, jlong site) {
  (void)env, (void)type;
  byname_site_close(site, NULL);
}

static int64_t ask_names(const struct question *question, char *room, uint64_t size,
                         byname_error *error) {
  return byname_site_names(question->site, room, size, error);
}

static int64_t ask_servers(const struct question *question, char *room, uint64_t size,
                           byname_error *error) {
  return byname_site_servers(question->site, question->path, room, size, error);
}

static int64_t ask_xattrs(const struct question *question, char *room, uint64_t size,
                          byname_error *error) {
  return byname_site_list_xattrs(question->site, question->path, room, size, error);
}

static int64_t ask_xattr(const struct question *question, char *room, uint64_t size,
                         byname_error *error) {
  byname_site_xattr xattr = BYNAME_INIT(byname_site_xattr);
  xattr.name = question->name;
  xattr.value = room;
  xattr.value_bytes = size;
  return byname_site_get_xattr(question->site, question->path, &xattr, error);
}

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_siteNames(JNIEnv *env, jclass type,
                                                                 jlong site) {
  (void)type;
  const struct question question = {site, NULL, NULL, ask_names};
  return answer_of(env, &question);
}

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_siteServers(JNIEnv *env, jclass type,
                                                                   jlong site, jbyteArray octets) {
  (void)type;
  struct path path = path_of(env, octets);
  jbyteArray made = NULL;
  if (path.made) {
    const struct question question = {site, path.text, NULL, ask_servers};
    made = answer_of(env, &question);
  }
  free(path.text);
  return made;
}

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_siteListXattrs(JNIEnv *env, jclass type,
                                                                      jlong site,
                                                                      jbyteArray octets) {
  (void)type;
  struct path path = path_of(env, octets);
  jbyteArray made = NULL;
  if (path.made) {
    const struct question question = {site, path.text, NULL, ask_xattrs};
    made = answer_of(env, &question);
  }
  free(path.text);
  return made;
}

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_siteGetXattr(JNIEnv *env, jclass type,
                                                                    jlong site, jbyteArray octets,
                                                                    jbyteArray key) {
  (void)type;
  struct path path = path_of(env, octets);
  struct path name = {NULL, 0};
  jbyteArray made = NULL;
  if (path.made) {
    name = path_of(env, key);
  }
  if (name.made) {
    const struct question question = {site, path.text, name.text, ask_xattr};
    made = answer_of(env, &question);
  }
  free(path.text);
  free(name.text);
  return made;
}

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_siteStat(JNIEnv *env, jclass type,
                                                                jlong site, jbyteArray octets) {
  (void)type;
  struct path path = path_of(env, octets);
  if (!path.made) {
    return NULL;
  }
  char texts[BYNAME_TEXT_BYTES];
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  attributes.text = texts;
  attributes.text_size = sizeof texts;
  byname_error error = BYNAME_INIT(byname_error);
  const int32_t outcome = byname_site_stat(site, path.text, &attributes, &error);
  free(path.text);
  if (outcome < 0) {
    throw_error(env, &error);
    return NULL;
  }
  return make_record(env, &attributes);
}

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_siteEntries(JNIEnv *env, jclass type,
                                                                   jlong site, jbyteArray octets,
                                                                   jbyteArray behind,
                                                                   jlongArray more) {
  (void)type;
  struct path path = path_of(env, octets);
  struct path after = {NULL, 0};
  if (path.made) {
    after = path_of(env, behind);
  }
  jbyteArray made = NULL;
  if (after.made) {
    byname_page page = BYNAME_INIT(byname_page);
    page.entry_size = sizeof(byname_entry);
    page.entries = calloc(kEntriesMax, sizeof(byname_entry));
    page.entries_max = kEntriesMax;
    page.text = malloc(kTextBytes);
    page.text_size = kTextBytes;
    if (page.entries == NULL || page.text == NULL) {
      throw_no_memory(env);
    } else {
      byname_error error = BYNAME_INIT(byname_error);
      const int32_t outcome = byname_site_entries(site, path.text, after.text, &page, &error);
      finish(env, outcome, &error);
      if (outcome >= 0) {
        const jlong is_more = outcome;
        (*env)->SetLongArrayRegion(env, more, 0, 1, &is_more);
        made = make_page_record(env, &page);
      }
    }
    free(page.entries);
    free(page.text);
  }
  free(path.text);
  free(after.text);
  return made;
}

JNIEXPORT jlong JNICALL Java_byname_hadoop_Native_siteOpenFile(JNIEnv *env, jclass type,
                                                               jlong site, jbyteArray octets) {
  (void)type;
  struct path path = path_of(env, octets);
  if (!path.made) {
    return -1;
  }
  byname_error error = BYNAME_INIT(byname_error);
  const byname_file file = byname_site_open_file(site, path.text, &error);
  free(path.text);
  finish(env, file, &error);
  return file;
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_siteMakePath(JNIEnv *env, jclass type, jlong site,
                                                              jbyteArray octets, jint mode) {
  (void)type;
  struct path path = path_of(env, octets);
  if (path.made) {
    byname_error error = BYNAME_INIT(byname_error);
    finish(env,
           byname_site_mkdir(site, path.text, (uint32_t)mode, BYNAME_SITE_PARENTS, &error),
           &error);
  }
  free(path.text);
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_siteRename(JNIEnv *env, jclass type, jlong site,
                                                            jbyteArray from, jbyteArray to,
                                                            jboolean exclusive) {
  (void)type;
  struct path source = path_of(env, from);
  struct path target = {NULL, 0};
  if (source.made) {
    target = path_of(env, to);
  }
  if (target.made) {
    const uint32_t flags = exclusive ? BYNAME_SITE_EXCLUSIVE : 0;
    byname_error error = BYNAME_INIT(byname_error);
    finish(env, byname_site_rename(site, source.text, target.text, flags, &error), &error);
  }
  free(source.text);
  free(target.text);
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_siteRemove(JNIEnv *env, jclass type, jlong site,
                                                            jbyteArray octets,
                                                            jboolean recursive) {
  (void)type;
  struct path path = path_of(env, octets);
  if (path.made) {
    const uint32_t flags = recursive ? BYNAME_SITE_RECURSIVE : 0;
    byname_error error = BYNAME_INIT(byname_error);
    finish(env, byname_site_remove(site, path.text, flags, &error), &error);
  }
  free(path.text);
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_siteChange(JNIEnv *env, jclass type, jlong site,
                                                            jbyteArray octets, jint mode,
                                                            jlong nanos, jbyteArray owner,
                                                            jbyteArray group) {
  (void)type;
  struct path path = path_of(env, octets);
  struct path user = {NULL, 0};
  struct path users = {NULL, 0};
  if (path.made) {
    user = path_of(env, owner);
  }
  if (user.made) {
    users = path_of(env, group);
  }
  if (users.made) {
    byname_site_changes changes = BYNAME_INIT(byname_site_changes);
    if (mode >= 0) {
      changes.wanted |= BYNAME_CHANGE_MODE;
      changes.mode = (uint32_t)mode;
    }
    if (nanos >= 0) {
      changes.wanted |= BYNAME_CHANGE_MTIME;
      changes.mtime_ns = (uint64_t)nanos;
    }
    changes.owner = user.text;
    changes.group = users.text;
    byname_error error = BYNAME_INIT(byname_error);
    finish(env, byname_site_change(site, path.text, &changes, &error), &error);
  }
  free(path.text);
  free(user.text);
  free(users.text);
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_siteSetReplicas(JNIEnv *env, jclass type,
                                                                 jlong site, jbyteArray octets,
                                                                 jint replicas) {
  (void)type;
  struct path path = path_of(env, octets);
  if (path.made) {
    byname_error error = BYNAME_INIT(byname_error);
    finish(env, byname_site_set_replicas(site, path.text, (uint32_t)replicas, &error), &error);
  }
  free(path.text);
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_siteSetXattr(JNIEnv *env, jclass type, jlong site,
                                                              jbyteArray octets, jbyteArray key,
                                                              jbyteArray value, jint when) {
  (void)type;
  static const uint32_t kFlags[] = {0, BYNAME_SITE_EXCLUSIVE, BYNAME_SITE_REPLACE};
  struct path path = path_of(env, octets);
  struct path name = {NULL, 0};
  if (path.made) {
    name = path_of(env, key);
  }
  char *copy = name.made ? copy_text(env, value) : NULL;
  if (copy != NULL) {
    byname_site_xattr xattr = BYNAME_INIT(byname_site_xattr);
    xattr.flags = kFlags[when];
    xattr.name = name.text;
    xattr.value = copy;
    xattr.value_bytes = (uint64_t)(*env)->GetArrayLength(env, value);
    byname_error error = BYNAME_INIT(byname_error);
    finish(env, byname_site_set_xattr(site, path.text, &xattr, &error), &error);
  }
  free(path.text);
  free(name.text);
  free(copy);
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_siteRemoveXattr(JNIEnv *env, jclass type,
                                                                 jlong site, jbyteArray octets,
                                                                 jbyteArray key) {
  (void)type;
  struct path path = path_of(env, octets);
  struct path name = {NULL, 0};
  if (path.made) {
    name = path_of(env, key);
  }
  if (name.made) {
    byname_error error = BYNAME_INIT(byname_error);
    finish(env, byname_site_remove_xattr(site, path.text, name.text, &error), &error);
  }
  free(path.text);
  free(name.text);
}

JNIEXPORT jlongArray JNICALL Java_byname_hadoop_Native_siteRoom(JNIEnv *env, jclass type,
                                                                jlong site, jbyteArray octets) {
  (void)type;
  struct path path = path_of(env, octets);
  if (!path.made) {
    return NULL;
  }
  byname_site_room room = BYNAME_INIT(byname_site_room);
  byname_error error = BYNAME_INIT(byname_error);
  const int32_t outcome = byname_site_room_below(site, path.text, &room, &error);
  free(path.text);
  if (outcome < 0) {
    throw_error(env, &error);
    return NULL;
  }
  const jlong numbers[] = {(jlong)room.size_bytes, (jlong)room.used_bytes, (jlong)room.free_bytes};
  jlongArray made = (*env)->NewLongArray(env, 3);
  if (made != NULL) {
    (*env)->SetLongArrayRegion(env, made, 0, 3, numbers);
  }
  return made;
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_siteTruncate(JNIEnv *env, jclass type, jlong site,
                                                              jbyteArray octets, jlong size) {
  (void)type;
  struct path path = path_of(env, octets);
  if (path.made) {
    byname_error error = BYNAME_INIT(byname_error);
    finish(env, byname_site_truncate(site, path.text, (uint64_t)size, &error), &error);
  }
  free(path.text);
}

JNIEXPORT jlong JNICALL Java_byname_hadoop_Native_sitePut(JNIEnv *env, jclass type, jlong site,
                                                          jbyteArray octets, jint spool, jint mode,
                                                          jint replicas, jboolean exclusive,
                                                          jlong base, jboolean grown) {
  (void)type;
  uint64_t version = 0;
  struct path path = path_of(env, octets);
  if (path.made) {
    byname_put_options options = BYNAME_INIT(byname_put_options);
    options.flags = (exclusive ? BYNAME_SITE_EXCLUSIVE : 0) | (grown ? BYNAME_SITE_GROWN : 0);
    options.mode = (uint32_t)mode;
    options.replicas = (uint32_t)replicas;
    options.base_version = (uint64_t)base;
    options.version = &version;
    byname_error error = BYNAME_INIT(byname_error);
    finish(env, byname_site_put(site, path.text, spool, &options, &error), &error);
  }
  free(path.text);
  return (jlong)version;
}

// Leaves an exception with the system's number pending.
static void throw_system(JNIEnv *env, int number) {
  byname_error error = BYNAME_INIT(byname_error);
  error.code = number;
  error.error_class = BYNAME_CLASS_PERMANENT;
  // The text of this thread, whichever of the two forms of the function there is.
  const char *text = strerror(number);
  strncpy(error.message, text, sizeof error.message - 1);
  throw_error(env, &error);
}

JNIEXPORT jint JNICALL Java_byname_hadoop_Native_spoolOpen(JNIEnv *env, jclass type,
                                                           jbyteArray octets) {
  (void)type;
  struct path path = path_of(env, octets);
  int spool = -1;
  if (path.made) {
    spool = open(path.text, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (spool < 0) {
      throw_system(env, errno);
    }
  }
  free(path.text);
  return spool;
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_spoolWrite(JNIEnv *env, jclass type, jint spool,
                                                            jbyteArray from, jint position,
                                                            jint length) {
  (void)type;
  char piece[kPieceBytes];
  while (length > 0) {
    const jint bytes = length < kPieceBytes ? length : kPieceBytes;
    (*env)->GetByteArrayRegion(env, from, position, bytes, (jbyte *)piece);
    if ((*env)->ExceptionCheck(env)) {
      return;
    }
    for (jint done = 0; done < bytes;) {
      const ssize_t count = write(spool, piece + done, (size_t)(bytes - done));
      if (count < 0 && errno != EINTR) {
        throw_system(env, errno);
        return;
      }
      done += count < 0 ? 0 : (jint)count;
    }
    position += bytes;
    length -= bytes;
  }
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_spoolClose(JNIEnv *env, jclass type, jint spool) {
  (void)env, (void)type;
  close(spool);
}
