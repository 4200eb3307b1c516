#include "jni_texts.h"

#include <stdlib.h>

#include "jni_errors.h"

char *copy_text(JNIEnv *env, jbyteArray text) {
  if (text == NULL) {
    return NULL;
  }
  const jsize bytes = (*env)->GetArrayLength(env, text);
  char *copy = malloc((size_t)bytes + 1);
  if (copy == NULL) {
    throw_no_memory(env);
    return NULL;
  }
  (*env)->GetByteArrayRegion(env, text, 0, bytes, (jbyte *)copy);
  copy[bytes] = '\0';
  return copy;
}
