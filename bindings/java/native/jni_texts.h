// Octets that Java hands over as byte[], as C strings.
#ifndef BYNAME_JNI_TEXTS_H
#define BYNAME_JNI_TEXTS_H

#include <jni.h>

// A copy with a NUL at its end, to be freed. NULL for null, and with an exception pending if there
// is no memory. Java has made sure that there is no NUL inside.
char *copy_text(JNIEnv *env, jbyteArray text);

#endif
