// Files: reads into direct buffers and arrays, vectors of ranges, status, counters, close.
//
// Arrays are filled from memory of our own and never held "critical": a read may wait for the
// network, and the garbage collector would wait with it. The copy costs what GetByteArrayRegion
// costs, far less than verifying the octets did.
#include <stdlib.h>
#include <string.h>

#include "byname_hadoop_Native.h"
#include "jni_errors.h"
#include "jni_records.h"

// Reads of arrays up to this size need no memory from the heap.
enum { kStackBytes = 16 * 1024 };

JNIEXPORT jlong JNICALL Java_byname_hadoop_Native_readDirect(JNIEnv *env, jclass type, jlong file,
                                                             jlong offset, jobject buffer,
                                                             jint position, jint length) {
  (void)type;
  char *address = (*env)->GetDirectBufferAddress(env, buffer);
  if (address == NULL) {
    throw_no_memory(env);
    return -1;
  }
  byname_error error = BYNAME_INIT(byname_error);
  const int64_t count =
      byname_read(file, address + position, (uint64_t)length, (uint64_t)offset, &error);
  if (count < 0) {
    throw_error(env, &error);
  }
  return count;
}

JNIEXPORT jlong JNICALL Java_byname_hadoop_Native_readArray(JNIEnv *env, jclass type, jlong file,
                                                            jlong offset, jbyteArray array,
                                                            jint position, jint length) {
  (void)type;
  char small[kStackBytes];
  char *staging = length <= kStackBytes ? small : malloc((size_t)length);
  if (staging == NULL) {
    throw_no_memory(env);
    return -1;
  }
  byname_error error = BYNAME_INIT(byname_error);
  const int64_t count = byname_read(file, staging, (uint64_t)length, (uint64_t)offset, &error);
  if (count < 0) {
    throw_error(env, &error);
  } else {
    (*env)->SetByteArrayRegion(env, array, position, (jsize)count, (const jbyte *)staging);
  }
  if (staging != small) {
    free(staging);
  }
  return count;
}

// One call of readRanges, taken apart.
struct vector {
  jsize count;
  jlong *offsets;
  jint *lengths;
  jint *positions;
  byname_range *ranges;
  // Room for what goes to arrays.
  char *staging;
};

static void free_vector(struct vector *vector) {
  free(vector->offsets);
  free(vector->lengths);
  free(vector->positions);
  free(vector->ranges);
  free(vector->staging);
}

static int copy_numbers(JNIEnv *env, struct vector *into, jlongArray offsets, jintArray lengths,
                        jintArray positions) {
  const size_t count = (size_t)into->count;
  into->offsets = malloc(count * sizeof(jlong));
  into->lengths = malloc(count * sizeof(jint));
  into->positions = malloc(count * sizeof(jint));
  into->ranges = calloc(count, sizeof(byname_range));
  if (!into->offsets || !into->lengths || !into->positions || !into->ranges) {
    throw_no_memory(env);
    return 0;
  }
  (*env)->GetLongArrayRegion(env, offsets, 0, into->count, into->offsets);
  (*env)->GetIntArrayRegion(env, lengths, 0, into->count, into->lengths);
  (*env)->GetIntArrayRegion(env, positions, 0, into->count, into->positions);
  return !(*env)->ExceptionCheck(env);
}

// Gives every range its room: in its direct buffer, or in `staging` if it has none.
static int place(JNIEnv *env, struct vector *vector, jobjectArray buffers) {
  size_t staged = 0;
  for (jsize at = 0; at < vector->count; at++) {
    byname_range *range = &vector->ranges[at];
    range->offset = (uint64_t)vector->offsets[at];
    range->buffer_bytes = (uint64_t)vector->lengths[at];
    jobject buffer = (*env)->GetObjectArrayElement(env, buffers, at);
    if (buffer == NULL) {
      staged += (size_t)vector->lengths[at];
      continue;
    }
    char *address = (*env)->GetDirectBufferAddress(env, buffer);
    (*env)->DeleteLocalRef(env, buffer);
    if (address == NULL) {
      throw_no_memory(env);
      return 0;
    }
    range->buffer = address + vector->positions[at];
  }
  vector->staging = malloc(staged + 1);
  if (vector->staging == NULL) {
    throw_no_memory(env);
    return 0;
  }
  char *room = vector->staging;
  for (jsize at = 0; at < vector->count; at++) {
    if (vector->ranges[at].buffer == NULL) {
      vector->ranges[at].buffer = room;
      room += vector->lengths[at];
    }
  }
  return 1;
}

// Hands staged octets to their arrays.
static void deliver(JNIEnv *env, struct vector *vector, jobjectArray arrays) {
  for (jsize at = 0; at < vector->count && !(*env)->ExceptionCheck(env); at++) {
    jobject array = (*env)->GetObjectArrayElement(env, arrays, at);
    if (array != NULL) {
      const byname_range *range = &vector->ranges[at];
      (*env)->SetByteArrayRegion(env, (jbyteArray)array, vector->positions[at],
                                 (jsize)range->filled_bytes, range->buffer);
      (*env)->DeleteLocalRef(env, array);
    }
  }
}

JNIEXPORT jlong JNICALL Java_byname_hadoop_Native_readRanges(JNIEnv *env, jclass type, jlong file,
                                                             jlongArray offsets, jintArray lengths,
                                                             jintArray positions,
                                                             jobjectArray buffers,
                                                             jobjectArray arrays) {
  (void)type;
  struct vector vector = {.count = (*env)->GetArrayLength(env, offsets)};
  int64_t count = -1;
  if (copy_numbers(env, &vector, offsets, lengths, positions) && place(env, &vector, buffers)) {
    byname_error error = BYNAME_INIT(byname_error);
    count = byname_read_ranges(file, vector.ranges, (uint64_t)vector.count, &error);
    if (count < 0) {
      throw_error(env, &error);
    } else {
      deliver(env, &vector, arrays);
    }
  }
  free_vector(&vector);
  return count;
}

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_fileStat(JNIEnv *env, jclass type,
                                                                jlong file) {
  (void)type;
  char texts[BYNAME_TEXT_BYTES];
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  attributes.text = texts;
  attributes.text_size = sizeof texts;
  byname_error error = BYNAME_INIT(byname_error);
  if (byname_file_attributes(file, &attributes, &error) < 0) {
    throw_error(env, &error);
    return NULL;
  }
  return make_record(env, &attributes);
}

JNIEXPORT jboolean JNICALL Java_byname_hadoop_Native_fileCounters(JNIEnv *env, jclass type,
                                                                  jlong file, jlongArray into) {
  (void)type;
  byname_counters counters = BYNAME_INIT(byname_counters);
  if (byname_file_counters(file, &counters, NULL) < 0) {
    return JNI_FALSE;
  }
  const jlong numbers[] = {(jlong)counters.requests, (jlong)counters.received_bytes,
                           (jlong)counters.cached_bytes, (jlong)counters.prefetched_bytes};
  (*env)->SetLongArrayRegion(env, into, 0, sizeof numbers / sizeof *numbers, numbers);
  return JNI_TRUE;
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_fileClose(JNIEnv *env, jclass type, jlong file) {
  (void)env, (void)type;
  byname_file_close(file, NULL);
}
