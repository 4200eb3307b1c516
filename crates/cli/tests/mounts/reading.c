// Prints what every reading system call says about a tree, so that two trees can be compared.
// usage: reading DIR
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static uint32_t sum(const unsigned char *bytes, ssize_t count) {
  uint32_t hash = 2166136261u;
  for (ssize_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

static void said(const char *what, long result) {
  printf("  %s %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
}

static void try_flags(const char *path) {
  static const int flags[] = {O_RDONLY, O_RDONLY | O_NOFOLLOW, O_RDONLY | O_DIRECTORY,
      O_RDONLY | O_NONBLOCK, O_RDONLY | O_SYNC, O_RDONLY | O_CLOEXEC, O_PATH,
      O_PATH | O_NOFOLLOW, O_RDONLY | O_NOATIME, O_RDONLY | O_LARGEFILE, O_RDONLY | O_DSYNC,
      O_RDONLY | O_CREAT, O_RDONLY | O_APPEND};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    if ((flags[i] & O_CREAT) && open(path, O_PATH | O_DIRECTORY) >= 0) continue;
    int fd = open(path, flags[i], 0600);
    printf("  open %x ", flags[i]);
    said("", fd < 0 ? -1 : 0);
    if (fd >= 0) close(fd);
  }
}

static void try_offsets(int fd, off_t size) {
  const off_t offsets[] = {0, 1, 4095, 4096, 8191, 8192, size - 1, size, size + 1, size + 100000};
  static unsigned char bytes[70000], others[70000];
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
    if (offsets[i] < 0) continue;
    for (size_t length = 1; length < sizeof bytes; length = length * 7 + 3) {
      ssize_t count = pread(fd, bytes, length, offsets[i]);
      printf("  pread %ld %zu: %zd %08x\n", (long)offsets[i], length, count, sum(bytes, count));
    }
    struct iovec parts[2] = {{bytes, 100}, {others, 5000}};
    ssize_t count = preadv(fd, parts, 2, offsets[i]);
    printf("  preadv %ld: %zd\n", (long)offsets[i], count);
  }
  said("pread -1", pread(fd, bytes, 1, -1));
  said("seek end", lseek(fd, -1, SEEK_END));
  said("read", read(fd, bytes, 10));
  said("seek before", lseek(fd, -1, SEEK_SET));
  said("seek data", lseek(fd, 0, SEEK_DATA));
  said("seek data behind", lseek(fd, size, SEEK_DATA));
  said("seek hole behind", lseek(fd, size, SEEK_HOLE));
}

// Reads past the page cache, where all of it is asked for at multiples of a page.
static void try_direct(const char *path, off_t size) {
  int fd = open(path, O_RDONLY | O_DIRECT);
  said("open O_DIRECT", fd < 0 ? -1 : 0);
  unsigned char *bytes = aligned_alloc(4096, 81920);
  for (off_t offset = 0; fd >= 0 && offset <= size + 4096; offset += 4096) {
    ssize_t count = pread(fd, bytes, 81920, offset);
    printf("  direct %ld: %zd %08x\n", (long)offset, count, sum(bytes, count));
  }
  free(bytes);
  close(fd);
}

// Copies that the kernel makes, to a file system that is neither of those compared.
static void try_copies(int fd, off_t size) {
  static unsigned char bytes[80000];
  int out = memfd_create("copies", 0);
  off_t from = size / 3;
  said("sendfile", sendfile(out, fd, &from, size));
  said("place after it", from);
  from = 0;
  said("copy_file_range", copy_file_range(fd, &from, out, NULL, size, 0));
  int pipes[2];
  loff_t at = size / 2;
  said("pipe", pipe(pipes));
  said("splice", splice(fd, &at, pipes[1], NULL, 4096, 0));
  said("splice away", size > 1 ? splice(pipes[0], NULL, out, NULL, 4096, 0) : 0);
  ssize_t count = pread(out, bytes, sizeof bytes, 0);
  printf("  copies %zd %08x\n", count, sum(bytes, count));
  close(pipes[0]), close(pipes[1]), close(out);
  struct iovec parts[3] = {{bytes, 10}, {bytes + 100, 0}, {bytes + 200, 6000}};
  lseek(fd, 1, SEEK_SET);
  count = readv(fd, parts, 3);
  printf("  readv %zd %08x\n", count, sum(bytes + 200, count > 10 ? count - 10 : 0));
  said("preadv2", preadv2(fd, parts, 3, -1, 0));
  said("place", lseek(fd, 0, SEEK_CUR));
  said("flock", flock(fd, LOCK_SH | LOCK_NB));
  said("flock alone", flock(fd, LOCK_EX | LOCK_NB));
  said("unlock", flock(fd, LOCK_UN));
  said("flags", fcntl(fd, F_GETFL) & O_ACCMODE);
}

static void try_map(int fd, off_t size) {
  if (size == 0) return;
  unsigned char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  printf("  mmap %08x\n", map == MAP_FAILED ? 0 : sum(map, size));
  said("mmap to write", mmap(NULL, size, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
  unsigned char *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  own[0] ^= 1;
  printf("  private %08x\n", sum(own, size));
  said("munmap", munmap(map, size));
  munmap(own, size);
}

static void try_file(const char *path) {
  int fd = open(path, O_RDONLY);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) { said("open", -1); return; }
  try_offsets(fd, info.st_size);
  try_map(fd, info.st_size);
  try_copies(fd, info.st_size);
  try_direct(path, info.st_size);
  struct pollfd ready = {fd, POLLIN, 0};
  printf("  poll %d %x\n", poll(&ready, 1, 0), ready.revents);
  said("fsync", fsync(fd));
  said("fdatasync", fdatasync(fd));
  said("fadvise", posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED));
  said("readahead", readahead(fd, 0, 10000));
  int bytes = -1;
  said("FIONREAD", ioctl(fd, FIONREAD, &bytes));
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  said("lock", fcntl(fd, F_SETLK, &lock));
  lock.l_type = F_WRLCK;
  said("lock to write", fcntl(fd, F_SETLK, &lock));
  said("fdopendir", fdopendir(fd) ? 0 : -1);
  close(fd);
}

static void try_directory(const char *path) {
  DIR *directory = opendir(path);
  long positions[4000];
  char names[4000][256];
  int count = 0;
  struct dirent *entry;
  while (count < 4000) {
    long position = telldir(directory);
    if (!(entry = readdir(directory))) break;
    positions[count] = position;
    snprintf(names[count++], 256, "%.255s", entry->d_name);
  }
  int wrong = 0;
  for (int i = count - 1; i >= 0; i = i * 2 / 3 - (i < 3)) {
    seekdir(directory, positions[i]);
    entry = readdir(directory);
    wrong += !entry || strcmp(entry->d_name, names[i]) != 0;
  }
  rewinddir(directory);
  entry = readdir(directory);
  wrong += !entry || strcmp(entry->d_name, names[0]) != 0;
  printf("  %d entries, %d wrong after seekdir\n", count, wrong);
  said("fsync of a directory", fsync(dirfd(directory)));
  closedir(directory);
}

static void try_missing(const char *path) {
  char missing[4200], longest[4200];
  snprintf(missing, sizeof missing, "%s/there is no such file", path);
  said("open missing", open(missing, O_RDONLY));
  said("open missing again", open(missing, O_RDONLY));
  said("access missing", access(missing, F_OK));
  for (int length = 255; length <= 256; length++) {
    snprintf(longest, sizeof longest, "%s/%0*d", path, length, 0);
    said("a long name", access(longest, F_OK));
  }
  snprintf(missing, sizeof missing, "%s/.", path);
  said("dot", access(missing, R_OK | X_OK));
}

static int size_of_root;

static int visit(const char *path, const struct stat *info, int type, struct FTW *at) {
  (void)at;
  int is_directory = type == FTW_D;
  printf("%s\n", path + size_of_root);
  printf("  %o %ld %d.%09ld\n", info->st_mode, is_directory ? 0 : (long)info->st_size,
      (int)info->st_mtim.tv_sec, info->st_mtim.tv_nsec);
  printf("  owner %d %d\n", info->st_uid, info->st_gid);
  struct statx more;
  said("statx", statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &more));
  printf("  %o %ld.%09u\n", more.stx_mode, (long)more.stx_mtime.tv_sec, more.stx_mtime.tv_nsec);
  said("same inode", more.stx_ino == info->st_ino);
  said("access r", access(path, R_OK));
  said("access x", access(path, X_OK));
  said("faccessat", faccessat(AT_FDCWD, path, R_OK, AT_EACCESS));
  char value[300];
  said("getxattr", getxattr(path, "user.nothing", value, sizeof value));
  said("readlink", readlink(path, value, sizeof value));
  said("a file as a directory", is_directory ? 0 : access(strcat(strcpy(value, path), "/x"), F_OK));
  try_flags(path);
  if (is_directory) try_directory(path), try_missing(path);
  else try_file(path);
  return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static void visit_all(const char *path) {
  struct stat info;
  if (lstat(path, &info) != 0) { said(path, -1); return; }
  struct FTW at = {0, 0};
  visit(path, &info, S_ISDIR(info.st_mode) ? FTW_D : FTW_F, &at);
  if (!S_ISDIR(info.st_mode)) return;
  struct dirent **entries;
  int count = scandir(path, &entries, NULL, by_name);
  for (int i = 0; i < count; i++) {
    char below[4200];
    snprintf(below, sizeof below, "%s/%s", path, entries[i]->d_name);
    printf("kind %d\n", entries[i]->d_type);
    if (strcmp(entries[i]->d_name, ".") && strcmp(entries[i]->d_name, "..")) visit_all(below);
  }
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  size_of_root = strlen(argv[1]);
  visit_all(argv[1]);
  return 0;
}
