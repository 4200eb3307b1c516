// byname: files by name. The C interface. Made by `cargo xtask header` from crates/ffi/src.
//
// Results. Every function that can fail returns a negative number, which is -errno (of <errno.h>)
// or -BYNAME_EINTERNAL, and 0 or something positive if it succeeded. The last argument takes the
// same with a text; it may be NULL. It belongs to whoever passes it: no function touches it after
// it has returned.
//
// Handles (byname_session, byname_site, byname_file, byname_listing, byname_call) are numbers above 0. One that
// was closed, was never given, or is of another kind is refused with EBADF, whatever its bits are.
// Any thread may use any handle at any time, also to close it: calls on a file or listing that have
// begun come to their end.
//
// Two forms. A call blocks, or it is started: the function whose name ends in _start returns the
// handle of a call, and `done` is called exactly once when it has ended, from a thread of the
// library, perhaps before _start has returned. Everything that was given to _start by a pointer,
// texts and the completion itself excepted, stays the library's until then: neither free nor touch
// it. If _start fails, `done` is not called. Results are written before `done` is called, and only
// if all went well. `done` may call everything, blocking functions too, but for closing its own
// session. The call-backs of a session come one after the other.
//
// Paths are octets, taken below the name in the session's link, with '/' between their parts. They
// are no URIs: '%', ' ' and UTF-8 stand for themselves. Slashes at the beginning or end, or several,
// mean nothing; "" is the linked name itself. "." and ".." are refused with EINVAL.
//
// Structs begin with their size, which the caller sets: byname_stat's attributes are made by
// `byname_attributes attributes = BYNAME_INIT(byname_attributes);`. Later versions add members at
// the end, and fill only what there is room for.
//
// Sites. byname_site_open makes of a session a user at the site above a path, whose key is in the
// key directory of the session's home: byname_site_* functions are signed with it. They block, ask
// the head of the site, and are answered by no cache: what was told to be done is seen by the next
// one. Paths are those of the session. A user that the head refuses gets the number of its refusal,
// such as EACCES, ENOENT, EEXIST, ENOTEMPTY, EDQUOT, ENOSPC, EXDEV (another quota or site), ESTALE
// (somebody else was faster). ENOKEY: there is no key here for a site above the path.
//
// After fork() a child cannot use the library (ENOTSUP) if it was used before; after exec() it can.


#ifndef BYNAME_H
#define BYNAME_H

#include <stddef.h>
#include <stdint.h>

// A struct of zeros with its size.
#ifdef __cplusplus
template <class Struct>
inline Struct byname_init() {
  Struct made{};
  made.struct_size = sizeof made;
  return made;
}
#define BYNAME_INIT(Struct) (byname_init<Struct>())
#else
#define BYNAME_INIT(Struct) ((Struct){.struct_size = sizeof(Struct)})
#endif


// Major version in the upper half: other majors do not fit. Minors only add.
#define BYNAME_ABI_VERSION 65536

// A bug of the library. The handles of the call may be unusable: close them.
#define BYNAME_EINTERNAL 10001

// No error.
#define BYNAME_CLASS_NONE 0

// The same call may succeed later.
#define BYNAME_CLASS_RETRYABLE 1

// The same call fails again until somebody changes something.
#define BYNAME_CLASS_PERMANENT 2

// The answer is not what was signed, or by nobody who counts.
#define BYNAME_CLASS_CORRUPT 3

// The program is wrong: a bad handle or argument.
#define BYNAME_CLASS_MISUSE 4

// The library is wrong.
#define BYNAME_CLASS_INTERNAL 5

// A file.
#define BYNAME_KIND_FILE 1

// A directory.
#define BYNAME_KIND_DIRECTORY 2

// A symbolic link.
#define BYNAME_KIND_SYMLINK 3

// The publisher's key is trusted for the name.
#define BYNAME_TRUST_ANCHORED 1

// The key was met for the first time, and the options of the session allow that.
#define BYNAME_TRUST_FIRST_USE 2

// Nothing was checked.
#define BYNAME_TRUST_INSECURE 3

// Bits of `byname_attributes.present`: the member of that name is known.
#define BYNAME_HAS_VERSION 1

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_SIZE 2

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_MTIME 4

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_MODE 8

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_ROOT 16

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_SEGMENT_BYTES 32

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_PUBLISHER_KEY 64

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_ADLER32 128

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_CRC32 256

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_CRC32C 512

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_MD5 1024

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_SHA256 2048

// The publisher still computes the root.
#define BYNAME_ROOT_PENDING 4096

// The publisher says so now, not a cache or mirror.
#define BYNAME_IS_FRESH 8192

// See BYNAME_HAS_VERSION.
#define BYNAME_HAS_REPLICAS 16384

// Keys that nobody has said to trust are refused.
#define BYNAME_UNKNOWN_KEYS_REFUSE 0

// They are taken for names that no trusted key covers; they are not kept.
#define BYNAME_UNKNOWN_KEYS_FIRST_USE 1

// Nothing is checked: whoever answers decides what is read.
#define BYNAME_UNKNOWN_KEYS_INSECURE 2

// Older descriptions count if the publisher does not answer.
#define BYNAME_FRESHNESS_PREFERRED 0

// Older descriptions never count.
#define BYNAME_FRESHNESS_REQUIRED 1

// The publisher is not asked: what caches and mirrors have counts.
#define BYNAME_FRESHNESS_OFFLINE 2

// For sizes in `byname_session_options` where 0 means the default: none at all.
#define BYNAME_NONE UINT64_MAX

// Ranges in one call (EINVAL).
#define BYNAME_RANGES_MAX 65536

// Octets in a path (ENAMETOOLONG).
#define BYNAME_PATH_BYTES_MAX 4096

// Sessions of a process (EMFILE).
#define BYNAME_SESSIONS_MAX 1024

// Sites of a process (EMFILE).
#define BYNAME_SITES_MAX 1024

// Doors of a process (EMFILE).
#define BYNAME_DOORS_MAX 64

// Open files of a session (EMFILE).
#define BYNAME_FILES_MAX 4096

// Open listings of a session (EMFILE).
#define BYNAME_LISTINGS_MAX 1024

// Octets of the open listings of a session (ENOMEM).
#define BYNAME_LISTINGS_BYTES_MAX 536870912

// Started calls of a session that have not ended (EAGAIN).
#define BYNAME_CALLS_MAX 65536

// Room for a loan as a text, with its NUL.
#define BYNAME_LOAN_BYTES 8192

// Room for the texts of almost every `byname_attributes`; `text_bytes` says if it was too small.
#define BYNAME_TEXT_BYTES 8192

// byname_site_mkdir, byname_site_put: make what is missing above, too.
#define BYNAME_SITE_PARENTS 1

// byname_site_put, byname_site_rename, byname_site_set_xattr: fail with EEXIST if it is there.
#define BYNAME_SITE_EXCLUSIVE 2

// byname_site_remove: a directory with all that is in it.
#define BYNAME_SITE_RECURSIVE 4

// byname_site_set_xattr: fail with ENODATA if it is not there.
#define BYNAME_SITE_REPLACE 8

// byname_site_put: since this file was put here the last time, octets were only added at its end.
// What was there is not read again.
#define BYNAME_SITE_GROWN 16

// byname_site_access: a right that the user shall have.
#define BYNAME_MAY_READ 4

// See BYNAME_MAY_READ.
#define BYNAME_MAY_WRITE 2

// See BYNAME_MAY_READ: to run a file, to search a directory.
#define BYNAME_MAY_SEARCH 1

// Bits of `byname_site_changes.wanted`: the member of that name is a new value.
#define BYNAME_CHANGE_MODE 1

// See BYNAME_CHANGE_MODE.
#define BYNAME_CHANGE_MTIME 2

// byname_site_change_acl: the list of what is made in a directory, in place of its own.
#define BYNAME_ACL_DEFAULT 1

// byname_site_change_acl: begin without any entry but those of a mode. Where nothing is set after
// that, a directory has no default list any more.
#define BYNAME_ACL_CLEAR 2

// byname_site_change_acl: leave the mask as it is, also where more is granted.
#define BYNAME_ACL_KEEP_MASK 4

// A call that was started and has not ended.
typedef int64_t byname_call;

// An error, as a number and a text. It belongs to whoever passes it.
typedef struct byname_error {
  // sizeof(byname_error), set by the caller.
  uint32_t struct_size;
  // An errno, or BYNAME_EINTERNAL; 0 if there was no error.
  int32_t code;
  // BYNAME_CLASS_*: what a caller can do about it.
  uint32_t error_class;
  // Octets of the whole text. If it did not fit, it was cut at a character.
  uint32_t message_bytes;
  // UTF-8 with a NUL at its end.
  char message[1024];
} byname_error;

// A connection to who has the files, with whom to trust, memory and a thread.
typedef int64_t byname_session;

// Wishes for a session. What is 0 or NULL is as the configuration has it.
typedef struct byname_session_options {
  // sizeof(byname_session_options), set by the caller.
  uint32_t struct_size;
  // BYNAME_UNKNOWN_KEYS_*.
  uint32_t unknown_keys;
  // BYNAME_FRESHNESS_*.
  uint32_t freshness;
  // Retransmissions of one request.
  uint32_t retries;
  // "byname:/lab,via=tcp://host:6363,key=SHA256:..." or a name. NULL: paths are whole names, and
  // the forwarder of this machine is asked.
  const char *link;
  // File with options in place of the user's and the system's.
  const char *config_file;
  // Directory with configuration, keys and state in place of the user's, and of BYNAME_HOME; the
  // environment does not count then.
  const char *home;
  // URI of the forwarder or server to ask, in place of the link's.
  const char *connect;
  // Silence that counts as failure.
  uint64_t timeout_ms;
  // Verified content kept in memory; 16 MiB unless told, or BYNAME_NONE.
  uint64_t cache_bytes_max;
  // Hash tree nodes of open files kept in memory; 16 MiB unless told, or BYNAME_NONE.
  uint64_t node_bytes_max;
  // Readahead of each file; 4 MiB unless told, or BYNAME_NONE.
  uint64_t prefetch_bytes_max;
  // 1 if much will be read: shared memory with a forwarder is worth its setting up.
  uint32_t is_bulk;
  // 0.
  uint32_t reserved;
} byname_session_options;

// Counts since a file was opened, or of all files of a session.
typedef struct byname_counters {
  // sizeof(byname_counters), set by the caller.
  uint32_t struct_size;
  // 0.
  uint32_t reserved;
  // Octets that calls asked for and that exist.
  uint64_t asked_bytes;
  // Octets of all Data packets that came, nodes of the hash tree included.
  uint64_t received_bytes;
  // Interests sent.
  uint64_t requests;
  // Octets served from memory.
  uint64_t cached_bytes;
  // Octets read ahead.
  uint64_t prefetched_bytes;
  // Of these, units of which something was read.
  uint64_t prefetch_useful_bytes;
  // Of these, units that were dropped unread.
  uint64_t prefetch_wasted_bytes;
  // Files opened so far; 1 of a file.
  uint64_t files_opened;
  // Files open now; 1 of a file.
  uint64_t files_open;
  // Calls that run in the session, this one included.
  uint64_t calls_in_flight;
} byname_counters;

// The peer that a session asks at this moment, and the path to it.
typedef struct byname_source {
  // sizeof(byname_source), set by the caller.
  uint32_t struct_size;
  // 0.
  uint32_t reserved;
  // Requests that may be in flight.
  uint64_t window;
  // Smoothed round-trip time; 0 if nothing was measured.
  uint64_t rtt_ns;
  // Requests sent, repeated ones included.
  uint64_t requests;
  // Requests that were not answered.
  uint64_t losses;
  // Answers with a congestion mark.
  uint64_t marks;
  // Frames that made no packet.
  uint64_t dropped_frames;
  // Its URI, cut if it is longer, with a NUL at its end.
  char endpoint[256];
} byname_source;

// Status of one version of a file or directory, as its publisher has signed it.
typedef struct byname_attributes {
  // sizeof(byname_attributes), set by the caller.
  uint32_t struct_size;
  // BYNAME_KIND_*.
  uint32_t kind;
  // BYNAME_HAS_*: which members are known; the others are 0.
  uint32_t present;
  // BYNAME_TRUST_*.
  uint32_t trust;
  // Newer versions have larger numbers.
  uint64_t version;
  // Octets: of the file, or of the directory's listing.
  uint64_t size;
  // Last change of the content, nanoseconds since the Unix epoch.
  uint64_t mtime_ns;
  // Time since this was signed, by the clocks of the publisher and of this machine.
  uint64_t age_ns;
  // Octets in every segment but the last.
  uint64_t segment_bytes;
  // Type and permissions as in st_mode.
  uint32_t mode;
  // Checksums: octets in the order in which they are printed.
  uint8_t adler32[4];
  // CRC-32 as gzip has it.
  uint8_t crc32[4];
  // CRC-32C (Castagnoli).
  uint8_t crc32c[4];
  // MD5.
  uint8_t md5[16];
  // SHA-256.
  uint8_t sha256[32];
  // BLAKE3 of the content: what b3sum prints.
  uint8_t root[32];
  // SHA-256 of the public key that has signed this.
  uint8_t publisher_key[32];
  // Set by the caller: room for the texts; NULL if they are not wanted.
  char *text;
  // Set by the caller: octets of that room.
  uint64_t text_size;
  // Octets that all texts need. Those that do not fit are left out.
  uint64_t text_bytes;
  // In `text` with a NUL at its end, or NULL.
  const char *owner;
  // In `text` with a NUL at its end, or NULL.
  const char *group;
  // Target of a symbolic link, neither checked nor followed; in `text` with a NUL at its end, or
  // NULL.
  const char *link_target;
  // URI of the name that the key speaks for; in `text` with a NUL at its end, or NULL. Entries
  // of a listing have none: it is that of the listing.
  const char *publisher;
  // Replicas that a file of a site shall have; of a directory those of what is made in it.
  uint32_t replicas;
  // 0.
  uint32_t reserved;
} byname_attributes;

// Hears that a started call has ended. `error` is never NULL, is valid during this call, and its
// code is 0 if all went well. It must not throw.
typedef void (*byname_done)(void *context, const struct byname_error *error);

// Receiver of the end of a started call.
typedef struct byname_completion {
  // sizeof(byname_completion), set by the caller.
  uint32_t struct_size;
  // 0.
  uint32_t reserved;
  // Called exactly once; not NULL.
  byname_done done;
  // Handed to `done`.
  void *context;
} byname_completion;

// One version of a directory.
typedef int64_t byname_listing;

// One entry of a directory.
typedef struct byname_entry {
  // Its name, without path, in the text of the page with a NUL at its end.
  const char *name;
  // Octets of the name.
  uint64_t name_bytes;
  // 1 if byname_open_entry asks nobody.
  uint32_t is_resolved;
  // 0.
  uint32_t reserved;
  // Its status, as far as the listing says; kind at least. Size and text are set by the library.
  struct byname_attributes attributes;
} byname_entry;

// A page of a listing, and room for it.
typedef struct byname_page {
  // sizeof(byname_page), set by the caller.
  uint32_t struct_size;
  // sizeof(byname_entry), set by the caller.
  uint32_t entry_size;
  // Index of the first entry that is wanted. The library adds `count`.
  uint64_t next;
  // Room for entries.
  struct byname_entry *entries;
  // Entries that fit there.
  uint64_t entries_max;
  // Room for names and other texts.
  char *text;
  // Octets of that room.
  uint64_t text_size;
  // Entries in this page; 0 at the end.
  uint64_t count;
} byname_page;

// One version of a file, open for reading.
typedef int64_t byname_file;

// Octets of a file, and where they go. This struct never changes.
typedef struct byname_range {
  // The first octet that is wanted.
  uint64_t offset;
  // Room for the octets; need not be initialised.
  void *buffer;
  // Octets that are wanted.
  uint64_t buffer_bytes;
  // Set by the library: octets read. Fewer than wanted only where the file ends.
  uint64_t filled_bytes;
} byname_range;

// A user at a site: commands, questions that no cache answers, files that are written.
typedef int64_t byname_site;

// Wishes for a site. What is 0 or NULL follows from the keys that are here.
typedef struct byname_site_options {
  // sizeof(byname_site_options), set by the caller.
  uint32_t struct_size;
  // 0.
  uint32_t reserved;
  // User of the site to act as, whose key is here.
  const char *user;
  // Silence that counts as failure.
  uint64_t timeout_ms;
} byname_site_options;

// New attributes.
typedef struct byname_site_changes {
  // sizeof(byname_site_changes), set by the caller.
  uint32_t struct_size;
  // BYNAME_CHANGE_*.
  uint32_t wanted;
  // Permission bits.
  uint32_t mode;
  // 0.
  uint32_t reserved;
  // Time of last modification, nanoseconds since the Unix epoch.
  uint64_t mtime_ns;
  // Owner; NULL if it stays.
  const char *owner;
  // Group; NULL if it stays.
  const char *group;
} byname_site_changes;

// An extended attribute.
typedef struct byname_site_xattr {
  // sizeof(byname_site_xattr), set by the caller.
  uint32_t struct_size;
  // To set it: 0, BYNAME_SITE_EXCLUSIVE or BYNAME_SITE_REPLACE.
  uint32_t flags;
  // Its name, which begins with `user.`.
  const char *name;
  // Its value, or room for it. Nothing is written to it when it is set.
  void *value;
  // Octets of the value, or of the room.
  uint64_t value_bytes;
} byname_site_xattr;

// Room below a name, in octets of files.
typedef struct byname_site_room {
  // sizeof(byname_site_room), set by the caller.
  uint32_t struct_size;
  // Replicas of each file.
  uint32_t replicas;
  // Octets that there can be, by quota and disks.
  uint64_t size_bytes;
  // Octets of the files there.
  uint64_t used_bytes;
  // Octets that are left.
  uint64_t free_bytes;
  // Entries there.
  uint64_t entries;
  // Most octets of files by quota; BYNAME_NONE for no limit.
  uint64_t quota_bytes;
  // Most entries by quota; BYNAME_NONE for no limit.
  uint64_t quota_entries;
} byname_site_room;

// A program that acts for users whom it has authenticated, and who is who there.
typedef int64_t byname_door;

// A door: its key, and who is who.
typedef struct byname_door_options {
  // sizeof(byname_door_options), set by the caller.
  uint32_t struct_size;
  // 0.
  uint32_t reserved;
  // Name of the door, whose key is here.
  const char *door;
  // File with its table: docs/site.md.
  const char *table;
  // Silence that counts as failure; 0 for that of the session.
  uint64_t timeout_ms;
} byname_door_options;

// Somebody as a door has authenticated him. Texts may be NULL. Lists have spaces between their
// words, and go together: the first of each, the second of each.
typedef struct byname_authenticated {
  // sizeof(byname_authenticated), set by the caller.
  uint32_t struct_size;
  // 0.
  uint32_t reserved;
  // How: krb5, ztn, gsi, unix, sss, host.
  const char *method;
  // His name there.
  const char *name;
  // His machine's name, which counts for `host`.
  const char *host;
  // Virtual organisations.
  const char *vos;
  // Roles.
  const char *roles;
  // Groups.
  const char *groups;
} byname_authenticated;

// Changes of an access control list. Entries are those of setfacl(1) with commas between them:
// `u:anna:rwx,g::r-x,m::rwx,o::---`.
typedef struct byname_site_acl {
  // sizeof(byname_site_acl), set by the caller.
  uint32_t struct_size;
  // BYNAME_ACL_*.
  uint32_t flags;
  // Entries that are there afterwards; NULL for none.
  const char *set;
  // Entries that go, their rights not looked at; NULL for none.
  const char *remove;
} byname_site_acl;

// How a file is written.
typedef struct byname_put_options {
  // sizeof(byname_put_options), set by the caller.
  uint32_t struct_size;
  // BYNAME_SITE_PARENTS, BYNAME_SITE_EXCLUSIVE, BYNAME_SITE_GROWN.
  uint32_t flags;
  // Permission bits of a new file.
  uint32_t mode;
  // Replicas; 0 for as many as the site says.
  uint32_t replicas;
  // The version that it takes the place of: if another one is there by now, ESTALE. 0 for
  // whatever is there.
  uint64_t base_version;
  // Where the new version is written; may be NULL.
  uint64_t *version;
} byname_put_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of this interface that the library has.
uint32_t byname_abi_version(void);

// Version of the release, for people. Valid for ever.
const char *byname_version(void);

// Asks a started call to end. Does not wait: its call-back comes as ever, with ECANCELED or, if
// the call was faster, with its outcome. EBADF if it has ended.
int32_t byname_cancel(byname_call call, struct byname_error *error);

// Opens a session and connects it. Pass BYNAME_ABI_VERSION; a library of another major version, or
// of an older minor one, answers ENOTSUP. `options` may be NULL.
byname_session byname_session_open(const struct byname_session_options *options,
                                   uint32_t abi_version,
                                   struct byname_error *error);

// Closes a session with its files and listings. Its calls end, blocking ones of other threads and
// started ones with ECANCELED if not otherwise; this returns when all have, call-backs included.
// EDEADLK from a call-back of this session.
int32_t byname_session_close(byname_session session, struct byname_error *error);

// Counts of all files of a session, open and closed.
int32_t byname_session_counters(byname_session session,
                                struct byname_counters *counters,
                                struct byname_error *error);

// The peer that a session asks at this moment.
int32_t byname_session_source(byname_session session,
                              struct byname_source *source,
                              struct byname_error *error);

// Writes to disk which versions were seen, as closing does, so that no later session is given
// older ones. A program that runs for long calls it now and then.
int32_t byname_session_keep_versions(byname_session session, struct byname_error *error);

// The name that a path stands for, as a URI. Returns the octets that it needs with its NUL; if
// `buffer_size` is less, nothing is written.
int64_t byname_session_name(byname_session session,
                            const char *path,
                            char *buffer,
                            uint64_t buffer_size,
                            struct byname_error *error);

// Status of the current version of a file or directory.
int32_t byname_stat(byname_session session,
                    const char *path,
                    struct byname_attributes *attributes,
                    struct byname_error *error);

// Starts byname_stat.
byname_call byname_stat_start(byname_session session,
                              const char *path,
                              struct byname_attributes *attributes,
                              const struct byname_completion *completion,
                              struct byname_error *error);

// The verified content of a directory, as it is now. It is kept until it is closed.
byname_listing byname_list(byname_session session, const char *path, struct byname_error *error);

// Starts byname_list; the handle goes to `listing`.
byname_call byname_list_start(byname_session session,
                              const char *path,
                              byname_listing *listing,
                              const struct byname_completion *completion,
                              struct byname_error *error);

// Number of entries. Those whose names cannot be names of files are left out.
int64_t byname_listing_count(byname_listing listing, struct byname_error *error);

// Status of the directory itself, as it was listed.
int32_t byname_listing_attributes(byname_listing listing,
                                  struct byname_attributes *attributes,
                                  struct byname_error *error);

// Fills a page with the entries from `page->next` on, ascending by name, as many as there is room
// for. ERANGE if the text has no room for a single one.
int32_t byname_listing_page(byname_listing listing,
                            struct byname_page *page,
                            struct byname_error *error);

// Closes a listing. Files opened from it stay open.
int32_t byname_listing_close(byname_listing listing, struct byname_error *error);

// Opens the current version of a file. It stays that version, however long it is open.
byname_file byname_open(byname_session session, const char *path, struct byname_error *error);

// Starts byname_open; the handle goes to `file`.
byname_call byname_open_start(byname_session session,
                              const char *path,
                              byname_file *file,
                              const struct byname_completion *completion,
                              struct byname_error *error);

// Opens the entry of that name, in the version that the listing has. The publisher is asked only
// if the listing has no root for it.
byname_file byname_open_entry(byname_listing listing, const char *name, struct byname_error *error);

// Starts byname_open_entry; the handle goes to `file`.
byname_call byname_open_entry_start(byname_listing listing,
                                    const char *name,
                                    byname_file *file,
                                    const struct byname_completion *completion,
                                    struct byname_error *error);

// Closes a file. Reads that have begun come to their end.
int32_t byname_file_close(byname_file file, struct byname_error *error);

// Status of the version that is open. Asks nobody.
int32_t byname_file_attributes(byname_file file,
                               struct byname_attributes *attributes,
                               struct byname_error *error);

// Counts since the file was opened.
int32_t byname_file_counters(byname_file file,
                             struct byname_counters *counters,
                             struct byname_error *error);

// Reads from `offset` on. Returns the octets read: fewer than `buffer_bytes` only where the file
// ends.
int64_t byname_read(byname_file file,
                    void *buffer,
                    uint64_t buffer_bytes,
                    uint64_t offset,
                    struct byname_error *error);

// Reads many ranges in one go, in any order, overlapping or not: every unit of the file travels
// once, and all requests are in flight together. Returns the octets of all ranges. After an error
// the content of the buffers is undefined.
int64_t byname_read_ranges(byname_file file,
                           struct byname_range *ranges,
                           uint64_t count,
                           struct byname_error *error);

// Starts byname_read_ranges.
byname_call byname_read_ranges_start(byname_file file,
                                     struct byname_range *ranges,
                                     uint64_t count,
                                     const struct byname_completion *completion,
                                     struct byname_error *error);

// Makes of a session a user at the site above a path, whose key is here. `options` may be NULL.
// Asks nobody. Its calls end when the session is closed.
byname_site byname_site_open(byname_session session,
                             const char *path,
                             const struct byname_site_options *options,
                             struct byname_error *error);

// Closes a site. Calls that have begun come to their end, files that were opened stay open.
int32_t byname_site_close(byname_site site, struct byname_error *error);

// The user's name and then the site's as a URI, each with a NUL. Returns the octets that both
// need; what does not fit is not written. Asks nobody.
int64_t byname_site_names(byname_site site,
                          char *buffer,
                          uint64_t buffer_size,
                          struct byname_error *error);

// Status of a file or directory as the head has it now. A symbolic link is not followed.
int32_t byname_site_stat(byname_site site,
                         const char *path,
                         struct byname_attributes *attributes,
                         struct byname_error *error);

// The same if the user may use it as `wanted` says (BYNAME_MAY_*; 0 needs only what is above it):
// the modes and lists of it and of all directories above it say so. EACCES if not.
int32_t byname_site_access(byname_site site,
                           const char *path,
                           uint32_t wanted,
                           struct byname_attributes *attributes,
                           struct byname_error *error);

// Fills a page with the entries of a directory as the head has them now, ascending by name, behind
// the entry `after`; from the beginning if that is NULL or empty. Returns 1 if there may be more.
int32_t byname_site_entries(byname_site site,
                            const char *path,
                            const char *after,
                            struct byname_page *page,
                            struct byname_error *error);

// Makes a directory. With BYNAME_SITE_PARENTS what is missing above it, too, and one that is there
// already is fine.
int32_t byname_site_mkdir(byname_site site,
                          const char *path,
                          uint32_t mode,
                          uint32_t flags,
                          struct byname_error *error);

// Gives a file or directory another name, in one step. What has that name is replaced, a directory
// only if it is empty; with BYNAME_SITE_EXCLUSIVE nothing is.
int32_t byname_site_rename(byname_site site,
                           const char *from,
                           const char *to,
                           uint32_t flags,
                           struct byname_error *error);

// Removes a file, a symbolic link or an empty directory; with BYNAME_SITE_RECURSIVE a directory
// with all that is in it.
int32_t byname_site_remove(byname_site site,
                           const char *path,
                           uint32_t flags,
                           struct byname_error *error);

// Changes attributes.
int32_t byname_site_change(byname_site site,
                           const char *path,
                           const struct byname_site_changes *changes,
                           struct byname_error *error);

// Says how many replicas a file gets when it is written again, or what is made in a directory.
int32_t byname_site_set_replicas(byname_site site,
                                 const char *path,
                                 uint32_t replicas,
                                 struct byname_error *error);

// Sets an extended attribute.
int32_t byname_site_set_xattr(byname_site site,
                              const char *path,
                              const struct byname_site_xattr *xattr,
                              struct byname_error *error);

// Writes the value of an extended attribute to the room in `xattr`; ENODATA if there is none.
// Returns its octets; if there is less room, nothing is written.
int64_t byname_site_get_xattr(byname_site site,
                              const char *path,
                              const struct byname_site_xattr *xattr,
                              struct byname_error *error);

// Names of all extended attributes, each with a NUL. Returns the octets that they need; what does
// not fit is not written.
int64_t byname_site_list_xattrs(byname_site site,
                                const char *path,
                                char *buffer,
                                uint64_t buffer_size,
                                struct byname_error *error);

// Removes an extended attribute; ENODATA if there is none.
int32_t byname_site_remove_xattr(byname_site site,
                                 const char *path,
                                 const char *name,
                                 struct byname_error *error);

// The room that is left below a path, by the quota of its tree and the disks of its space.
int32_t byname_site_room_below(byname_site site,
                               const char *path,
                               struct byname_site_room *room,
                               struct byname_error *error);

// Makes of a session a door of the site above a path: a program that acts for users whom it has
// authenticated. Its key is here, and the table that says who is which user. Asks nobody. It ends
// when the session is closed.
byname_door byname_door_open(byname_session session,
                             const char *path,
                             const struct byname_door_options *options,
                             struct byname_error *error);

// The user whom the door's table makes of somebody, at the site; it is closed by
// byname_site_close. EACCES if the table makes nobody of him. Asks nobody: whether the door may
// act for the user is told by what is done then.
byname_site byname_door_user(byname_door door,
                             const struct byname_authenticated *who,
                             struct byname_error *error);

// Closes a door. Users that it gave out stay open.
int32_t byname_door_close(byname_door door, struct byname_error *error);

// The access control lists of a file or directory as texts, each with a NUL: its own, then that of
// what is made in it, which is empty if there is none. Returns the octets that both need; what
// does not fit is not written.
int64_t byname_site_get_acl(byname_site site,
                            const char *path,
                            char *buffer,
                            uint64_t buffer_size,
                            struct byname_error *error);

// Changes an access control list. What it was is asked for first: of two who change one at the
// same time the later one may undo what the earlier one did.
int32_t byname_site_change_acl(byname_site site,
                               const char *path,
                               const struct byname_site_acl *acl,
                               struct byname_error *error);

// Opens a session as byname_session_open does. Its sites act with the key of the loan, for the
// user who has lent it, and with none that is here; what is no loan, is over, or is for another
// site than the link's is refused.
byname_session byname_session_open_lent(const struct byname_session_options *options,
                                        uint32_t abi_version,
                                        const char *loan,
                                        struct byname_error *error);

// Makes a key that signs for the user for so many seconds, a week at most, and writes it to a
// buffer of at least BYNAME_LOAN_BYTES as a text with a NUL. Who has the text acts as the user.
// Returns its octets.
int64_t byname_site_lend(byname_site site,
                         uint64_t time_s,
                         char *buffer,
                         uint64_t buffer_size,
                         struct byname_error *error);

// What a loan says, without its secret: user, URI of the site, digest of the key, and the end in
// nanoseconds since the Unix epoch, each with a NUL. Returns the octets that they need; what does
// not fit is not written. Asks nobody.
int64_t byname_loan_texts(const char *loan,
                          char *buffer,
                          uint64_t buffer_size,
                          struct byname_error *error);

// Until when a key of the user's is lent, as the head has it now, in nanoseconds since the Unix
// epoch; 0 if it is not. `key` is its digest; NULL for the one that signs here.
int32_t byname_site_lent_until(byname_site site,
                               const char *key,
                               uint64_t *until_ns,
                               struct byname_error *error);

// Ends a loan of the user's now. `key` is its digest; NULL for the one that signs here. Returns 1,
// or 0 if there is none.
int32_t byname_site_recall(byname_site site, const char *key, struct byname_error *error);

// Opens a file in the version that the head has now. It is closed by byname_file_close.
byname_file byname_site_open_file(byname_site site, const char *path, struct byname_error *error);

// The same if the user may read it: the modes and lists of the file and of all directories above
// it say so, which bind nobody else who opens a file. EACCES if not. No link on the way is
// followed.
byname_file byname_site_open_to_read(byname_site site,
                                     const char *path,
                                     struct byname_error *error);

// Writes the octets of a regular file that is open for reading, all of them, wherever it stands.
// The new version is there whole when as many disks have it as the site asks for, or not at all.
// The descriptor stays the caller's; nobody may write to the file meanwhile. `options` may be
// NULL: mode 644, and what is there is replaced.
int32_t byname_site_put(byname_site site,
                        const char *path,
                        int local_file,
                        const struct byname_put_options *options,
                        struct byname_error *error);

// Makes a file shorter or longer; what is added are zeros. A size other than 0 is a new version,
// for which what stays is read and written anew.
int32_t byname_site_truncate(byname_site site,
                             const char *path,
                             uint64_t size,
                             struct byname_error *error);

// The servers whose disks have the file and answer, each with a NUL. Returns the octets that they
// need; what does not fit is not written. An empty file is on none.
int64_t byname_site_servers(byname_site site,
                            const char *path,
                            char *buffer,
                            uint64_t buffer_size,
                            struct byname_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BYNAME_H */

// Digest of sources and text: 85b734a7f88e2c85
