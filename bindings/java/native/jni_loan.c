// Keys that a user lends for a while. Copies of their texts are wiped.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "byname_hadoop_Native.h"
#include "jni_calls.h"
#include "jni_errors.h"

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_siteLend(JNIEnv *env, jclass type,
                                                                jlong site, jlong seconds) {
  (void)type;
  char text[BYNAME_LOAN_BYTES];
  byname_error error = BYNAME_INIT(byname_error);
  const int64_t bytes = byname_site_lend(site, (uint64_t)seconds, text, sizeof text, &error);
  finish(env, bytes, &error);
  jbyteArray made = NULL;
  if (bytes > 0) {
    made = (*env)->NewByteArray(env, (jsize)bytes - 1);
  }
  if (made != NULL) {
    (*env)->SetByteArrayRegion(env, made, 0, (jsize)bytes - 1, (const jbyte *)text);
  }
  explicit_bzero(text, sizeof text);
  return made;
}

static int64_t ask_texts(const struct question *question, char *room, uint64_t size,
                         byname_error *error) {
  return byname_loan_texts(question->path, room, size, error);
}

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_loanTexts(JNIEnv *env, jclass type,
                                                                 jbyteArray octets) {
  (void)type;
  struct path loan = path_of(env, octets);
  jbyteArray made = NULL;
  if (loan.made) {
    const struct question question = {0, loan.text, NULL, ask_texts};
    made = answer_of(env, &question);
  }
  if (loan.text != NULL) {
    explicit_bzero(loan.text, strlen(loan.text));
  }
  free(loan.text);
  return made;
}

JNIEXPORT jlong JNICALL Java_byname_hadoop_Native_siteLentUntil(JNIEnv *env, jclass type,
                                                                jlong site) {
  (void)type;
  uint64_t until_ns = 0;
  byname_error error = BYNAME_INIT(byname_error);
  finish(env, byname_site_lent_until(site, NULL, &until_ns, &error), &error);
  return (jlong)until_ns;
}

JNIEXPORT jboolean JNICALL Java_byname_hadoop_Native_siteRecall(JNIEnv *env, jclass type,
                                                                jlong site) {
  (void)type;
  byname_error error = BYNAME_INIT(byname_error);
  const int32_t outcome = byname_site_recall(site, NULL, &error);
  finish(env, outcome, &error);
  return outcome > 0;
}
