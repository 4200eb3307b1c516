// Status of files as octets that Record.java takes apart: one crossing for a whole page.
#ifndef BYNAME_JNI_RECORDS_H
#define BYNAME_JNI_RECORDS_H

#include <byname.h>
#include <jni.h>

// One status without a name. NULL with an exception pending if there is no memory.
jbyteArray make_record(JNIEnv *env, const byname_attributes *attributes);

// A page of entries, each with its name.
jbyteArray make_page_record(JNIEnv *env, const byname_page *page);

#endif
