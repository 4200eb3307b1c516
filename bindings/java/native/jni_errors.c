#include "jni_errors.h"

#include <string.h>

// Looked up each time and only for failures: no reference to a class outlives its loader.
void throw_error(JNIEnv *env, const byname_error *error) {
  jclass type = (*env)->FindClass(env, "byname/hadoop/NativeException");
  if (type == NULL) {
    return;
  }
  jmethodID make = (*env)->GetMethodID(env, type, "<init>", "(II[B)V");
  if (make == NULL) {
    return;
  }
  const jsize bytes = (jsize)strlen(error->message);
  jbyteArray text = (*env)->NewByteArray(env, bytes);
  if (text == NULL) {
    return;
  }
  (*env)->SetByteArrayRegion(env, text, 0, bytes, (const jbyte *)error->message);
  jobject made =
      (*env)->NewObject(env, type, make, (jint)error->code, (jint)error->error_class, text);
  if (made != NULL) {
    (*env)->Throw(env, (jthrowable)made);
  }
}

void throw_no_memory(JNIEnv *env) {
  jclass type = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
  if (type != NULL) {
    (*env)->ThrowNew(env, type, "no memory outside of the heap");
  }
}
