#include "jni_calls.h"

#include <stdlib.h>

#include "jni_errors.h"
#include "jni_texts.h"

struct path path_of(JNIEnv *env, jbyteArray octets) {
  struct path path = {copy_text(env, octets), 0};
  path.made = !(*env)->ExceptionCheck(env);
  return path;
}

void finish(JNIEnv *env, int64_t outcome, const byname_error *error) {
  if (outcome < 0) {
    throw_error(env, error);
  }
}

static jbyteArray to_java(JNIEnv *env, const char *octets, int64_t bytes) {
  jbyteArray made = (*env)->NewByteArray(env, (jsize)bytes);
  if (made != NULL) {
    (*env)->SetByteArrayRegion(env, made, 0, (jsize)bytes, (const jbyte *)octets);
  }
  return made;
}

jbyteArray answer_of(JNIEnv *env, const struct question *question) {
  uint64_t size = 4096;
  for (;;) {
    char *room = malloc(size);
    if (room == NULL) {
      throw_no_memory(env);
      return NULL;
    }
    byname_error error = BYNAME_INIT(byname_error);
    const int64_t needed = question->ask(question, room, size, &error);
    jbyteArray made = NULL;
    const int fits = needed <= (int64_t)size;
    if (needed < 0) {
      throw_error(env, &error);
    } else if (fits) {
      made = to_java(env, room, needed);
    }
    free(room);
    if (fits) {
      return made;
    }
    size = (uint64_t)needed;
  }
}
