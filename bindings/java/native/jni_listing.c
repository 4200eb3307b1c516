// Listings: pages of entries, close.
#include <stdlib.h>

#include "byname_hadoop_Native.h"
#include "jni_errors.h"
#include "jni_records.h"

// Room of a page. One entry needs at most 255 octets of name and a few texts.
enum { kEntriesMax = 512, kTextBytes = 256 * 1024 };

JNIEXPORT jbyteArray JNICALL Java_byname_hadoop_Native_listingPage(JNIEnv *env, jclass type,
                                                                   jlong listing, jlong next) {
  (void)type;
  byname_page page = BYNAME_INIT(byname_page);
  page.entry_size = sizeof(byname_entry);
  page.next = (uint64_t)next;
  page.entries = calloc(kEntriesMax, sizeof(byname_entry));
  page.entries_max = kEntriesMax;
  page.text = malloc(kTextBytes);
  page.text_size = kTextBytes;
  jbyteArray made = NULL;
  if (page.entries == NULL || page.text == NULL) {
    throw_no_memory(env);
  } else {
    byname_error error = BYNAME_INIT(byname_error);
    if (byname_listing_page(listing, &page, &error) < 0) {
      throw_error(env, &error);
    } else {
      made = make_page_record(env, &page);
    }
  }
  free(page.entries);
  free(page.text);
  return made;
}

JNIEXPORT void JNICALL Java_byname_hadoop_Native_listingClose(JNIEnv *env, jclass type,
                                                              jlong listing) {
  (void)env, (void)type;
  byname_listing_close(listing, NULL);
}
