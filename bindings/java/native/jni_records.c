#include "jni_records.h"

#include <stdlib.h>
#include <string.h>

#include "jni_errors.h"

// Numbers in the order of the machine, digests as they are printed, then texts, each behind its
// length, which is -1 if there is none. Record.java has the same order.
enum { kNumbers = 7, kDigests = 32 + 4 };

static size_t text_bytes(const char *text) {
  return sizeof(int32_t) + (text == NULL ? 0 : strlen(text));
}

static size_t record_bytes(const char *name, const byname_attributes *from) {
  return kNumbers * sizeof(int64_t) + kDigests + text_bytes(name) + text_bytes(from->owner) +
         text_bytes(from->group) + text_bytes(from->link_target);
}

static char *put(char *at, const void *from, size_t bytes) {
  memcpy(at, from, bytes);
  return at + bytes;
}

static char *put_text(char *at, const char *text) {
  const int32_t bytes = text == NULL ? -1 : (int32_t)strlen(text);
  at = put(at, &bytes, sizeof bytes);
  return text == NULL ? at : put(at, text, (size_t)bytes);
}

static char *put_record(char *at, const char *name, const byname_attributes *from) {
  const int64_t numbers[kNumbers] = {from->kind,          from->present,
                                     (int64_t)from->version, (int64_t)from->size,
                                     (int64_t)from->mtime_ns, from->mode, from->replicas};
  at = put(at, numbers, sizeof numbers);
  at = put(at, from->root, sizeof from->root);
  at = put(at, from->crc32c, sizeof from->crc32c);
  at = put_text(at, name);
  at = put_text(at, from->owner);
  at = put_text(at, from->group);
  return put_text(at, from->link_target);
}

static jbyteArray to_java(JNIEnv *env, char *record, size_t bytes) {
  jbyteArray made = (*env)->NewByteArray(env, (jsize)bytes);
  if (made != NULL) {
    (*env)->SetByteArrayRegion(env, made, 0, (jsize)bytes, (const jbyte *)record);
  }
  free(record);
  return made;
}

jbyteArray make_record(JNIEnv *env, const byname_attributes *attributes) {
  const size_t bytes = record_bytes(NULL, attributes);
  char *record = malloc(bytes);
  if (record == NULL) {
    throw_no_memory(env);
    return NULL;
  }
  put_record(record, NULL, attributes);
  return to_java(env, record, bytes);
}

jbyteArray make_page_record(JNIEnv *env, const byname_page *page) {
  size_t bytes = sizeof(int64_t);
  for (uint64_t at = 0; at < page->count; at++) {
    bytes += record_bytes(page->entries[at].name, &page->entries[at].attributes);
  }
  char *record = malloc(bytes);
  if (record == NULL) {
    throw_no_memory(env);
    return NULL;
  }
  const int64_t count = (int64_t)page->count;
  char *end = put(record, &count, sizeof count);
  for (uint64_t at = 0; at < page->count; at++) {
    end = put_record(end, page->entries[at].name, &page->entries[at].attributes);
  }
  return to_java(env, record, bytes);
}
