// What calls at a site have in common: paths, outcomes, answers of unknown size.
#pragma once
#include <byname.h>
#include <jni.h>

// A path of Java's for the time of a call; whether there is one is `made`.
struct path {
  char *text;
  int made;
};

struct path path_of(JNIEnv *env, jbyteArray octets);

// Throws what a call says that failed.
void finish(JNIEnv *env, int64_t outcome, const byname_error *error);

// What a function gives that says how many octets it needs.
struct question {
  jlong site;
  const char *path;
  const char *name;
  int64_t (*ask)(const struct question *question, char *room, uint64_t size, byname_error *error);
};

// Asks, and once more if the first room was small.
jbyteArray answer_of(JNIEnv *env, const struct question *question);
