// Sessions: open, close, status, handles of files and listings.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "byname_hadoop_Native.h"
#include "jni_errors.h"
#include "jni_records.h"
#include "jni_texts.h"

// Order of the texts and numbers that NativeSession.java passes.
enum { kLink, kHome, kConfigFile, kConnect, kLoan, kTextCount };
enum {
  kUnknownKeys,
  kFreshness,
  kRetries,
  kTimeoutMs,
  kCacheBytes,
  kNodeBytes,
  kPrefetchBytes,
  kNumberCount
};

static int copy_texts(JNIEnv *env, jobjectArray from, char *to[kTextCount]) {
  for (jsize at = 0; at < kTextCount; at++) {
    jbyteArray text = (jbyteArray)(*env)->GetObjectArrayElement(env, from, at);
    if ((*env)->ExceptionCheck(env)) {
      return 0;
    }
    to[at] = copy_text(env, text);
    (*env)->DeleteLocalRef(env, text);
    if ((*env)->ExceptionCheck(env)) {
      return 0;
    }
  }
  return 1;
}

JNIEXPORT jlong JNICALL Java_byname_hadoop_Native_sessionOpen(JNIEnv *env, jclass type,
                                                              jobjectArray texts,
                                                              jlongArray numbers) {
  (void)type;
  jlong wanted[kNumberCount];
  (*env)->GetLongArrayRegion(env, numbers, 0, kNumberCount, wanted);
  if ((*env)->ExceptionCheck(env)) {
    return -1;
  }
  char *copies[kTextCount] = {NULL};
  jlong session = -1;
  if (copy_texts(env, texts, copies)) {
    byname_session_options options = BYNAME_INIT(byname_session_options);
    options.link = copies[kLink];
    options.home = copies[kHome];
    options.config_file = copies[kConfigFile];
    options.connect = copies[kConnect];
    options.unknown_keys = (uint32_t)wanted[kUnknownKeys];
    options.freshness = (uint32_t)wanted[kFreshness];
    options.retries = (uint32_t)wanted[kRetries];
    options.timeout_ms = (uint64_t)wanted[kTimeoutMs];
    options.cache_bytes_max = (uint64_t)wanted[kCacheBytes];
    options.node_bytes_max = (uint64_t)wanted[kNodeBytes];
    options.prefetch_bytes_max = (uint64_t)wanted[kPrefetchBytes];
    options.is_bulk = 1;
    byname_error error = BYNAME_INIT(byname_error);
    session = copies[kLoan] == NULL
                  ? byname_session_open(&options, BYNAME_ABI_VERSION, &error)
                  : byname_session_open_lent(&options, BYNAME_ABI_VERSION, copies[kLoan], &error);
    if (session < 0) {
      throw_error(env, &error);
    }
  }
  if (copies[kLoan] != NULL) {
    explicit_bzero(copies[kLoan], strlen(copies[kLoan]));
  }
  for (int at = 0; at < kTextCount; at++) {
    free(copies[at]);
  }
  return session;
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_sessionClose(JNIEnv *env, jclass type,
                                                              jlong session) {
  (void)env, (void)type;
  byname_session_close(session, NULL);
}

JNIEXPORT jstring JNICALL Java_byname_hadoop_Native_version(JNIEnv *env, jclass type) {
  (void)type;
  return (*env)->NewStringUTF(env, byname_version());
}

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_stat(JNIEnv *env, jclass type, jlong session,
                                                            jbyteArray path) {
  (void)type;
  char *copy = copy_text(env, path);
  if (copy == NULL) {
    return NULL;
  }
  char texts[BYNAME_TEXT_BYTES];
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  attributes.text = texts;
  attributes.text_size = sizeof texts;
  byname_error error = BYNAME_INIT(byname_error);
  const int32_t outcome = byname_stat(session, copy, &attributes, &error);
  free(copy);
  if (outcome < 0) {
    throw_error(env, &error);
    return NULL;
  }
  return make_record(env, &attributes);
}

JNIEXPORT jlong JNICALL Java_byname_hadoop_Native_open(JNIEnv *env, jclass type, jlong session,
                                                       jbyteArray path) {
  (void)type;
  char *copy = copy_text(env, path);
  if (copy == NULL) {
    return -1;
  }
  byname_error error = BYNAME_INIT(byname_error);
  const byname_file file = byname_open(session, copy, &error);
  free(copy);
  if (file < 0) {
    throw_error(env, &error);
  }
  return file;
}

JNIEXPORT jlong JNICALL Java_byname_hadoop_Native_list(JNIEnv *env, jclass type, jlong session,
                                                       jbyteArray path) {
  (void)type;
  char *copy = copy_text(env, path);
  if (copy == NULL) {
    return -1;
  }
  byname_error error = BYNAME_INIT(byname_error);
  const byname_listing listing = byname_list(session, copy, &error);
  free(copy);
  if (listing < 0) {
    throw_error(env, &error);
  }
  return listing;
}
