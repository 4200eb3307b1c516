// Access control lists of a site.
#include <stdlib.h>

#include "byname_hadoop_Native.h"
#include "jni_calls.h"

static int64_t ask_lists(const struct question *question, char *room, uint64_t size,
                         byname_error *error) {
  return byname_site_get_acl(question->site, question->path, room, size, error);
}

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_siteGetAcl(JNIEnv *env, jclass type,
                                                                  jlong site, jbyteArray octets) {
  (void)type;
  struct path path = path_of(env, octets);
  jbyteArray made = NULL;
  if (path.made) {
    const struct question question = {site, path.text, NULL, ask_lists};
    made = answer_of(env, &question);
  }
  free(path.text);
  return made;
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_siteChangeAcl(JNIEnv *env, jclass type,
                                                               jlong site, jbyteArray octets,
                                                               jbyteArray set, jbyteArray remove,
                                                               jint flags) {
  (void)type;
  struct path path = path_of(env, octets);
  struct path added = {NULL, 0};
  struct path removed = {NULL, 0};
  if (path.made) {
    added = path_of(env, set);
  }
  if (added.made) {
    removed = path_of(env, remove);
  }
  if (removed.made) {
    byname_site_acl acl = BYNAME_INIT(byname_site_acl);
    acl.flags = (uint32_t)flags;
    acl.set = added.text;
    acl.remove = removed.text;
    byname_error error = BYNAME_INIT(byname_error);
    finish(env, byname_site_change_acl(site, path.text, &acl, &error), &error);
  }
  free(path.text);
  free(added.text);
  free(removed.text);
}
