// Failures of byname and of the shim, as Java exceptions.
#ifndef BYNAME_JNI_ERRORS_H
#define BYNAME_JNI_ERRORS_H

#include <byname.h>
#include <jni.h>

// Leaves a byname.hadoop.NativeException pending that says what `error` says.
void throw_error(JNIEnv *env, const byname_error *error);

// Leaves an OutOfMemoryError pending.
void throw_no_memory(JNIEnv *env);

#endif
