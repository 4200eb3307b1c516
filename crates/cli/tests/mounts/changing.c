// Tries every system call that changes something on a file, a directory and what is in it, and
// prints the error of each.
// usage: changing DIR     DIR holds `file` and the directory `sub`
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

static void said(const char *what, long result) {
  printf("%s %s\n", what, result < 0 ? strerrorname_np(errno) : "worked");
}

int main(int argc, char **argv) {
  if (argc != 2 || chdir(argv[1]) != 0) return 2;
  struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  int flags = 0, file = open("file", O_RDONLY);
  said("open O_WRONLY", open("file", O_WRONLY));
  said("open O_RDWR", open("file", O_RDWR));
  said("open O_TRUNC", open("file", O_RDONLY | O_TRUNC));
  said("open O_APPEND", open("file", O_WRONLY | O_APPEND));
  said("open O_CREAT", open("new", O_WRONLY | O_CREAT, 0600));
  said("open O_CREAT O_RDONLY", open("new", O_RDONLY | O_CREAT, 0600));
  said("open O_TMPFILE", open(".", O_WRONLY | O_TMPFILE, 0600));
  said("creat", creat("new", 0600));
  said("truncate", truncate("file", 1));
  said("mkdir", mkdir("new", 0700));
  said("mkdirat", mkdirat(AT_FDCWD, "sub/new", 0700));
  said("rmdir", rmdir("sub/empty"));
  said("unlink", unlink("file"));
  said("unlinkat", unlinkat(AT_FDCWD, "sub/empty", AT_REMOVEDIR));
  said("rename", rename("file", "other"));
  said("rename over", rename("file", "sub/inner"));
  said("renameat2 noreplace", renameat2(AT_FDCWD, "file", AT_FDCWD, "other", RENAME_NOREPLACE));
  said("renameat2 exchange", renameat2(AT_FDCWD, "file", AT_FDCWD, "sub/inner", RENAME_EXCHANGE));
  said("link", link("file", "other"));
  said("symlink", symlink("file", "other"));
  said("mknod fifo", mknod("new", S_IFIFO | 0600, 0));
  said("mknod file", mknod("new", S_IFREG | 0600, 0));
  said("chmod", chmod("file", 0600));
  said("fchmod", fchmod(file, 0600));
  said("fchmodat", fchmodat(AT_FDCWD, "sub", 0700, 0));
  said("chown", chown("file", getuid(), getgid()));
  said("lchown", lchown("file", getuid(), getgid()));
  said("fchown", fchown(file, getuid(), getgid()));
  said("utime", utime("file", NULL));
  said("utimes", utimes("file", NULL));
  said("utimensat", utimensat(AT_FDCWD, "file", now, 0));
  said("futimens", futimens(file, now));
  said("setxattr", setxattr("file", "user.mine", "1", 1, 0));
  said("fsetxattr", fsetxattr(file, "user.mine", "1", 1, 0));
  said("setxattr of ours", setxattr("file", "user.byname.version", "1", 1, XATTR_REPLACE));
  said("removexattr", removexattr("file", "user.byname.version"));
  said("fremovexattr", fremovexattr(file, "user.byname.version"));
  said("FS_IOC_SETFLAGS", ioctl(file, FS_IOC_SETFLAGS, &flags));
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
  said("bind", bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address));
  said("access W_OK", access("file", W_OK));
  said("access W_OK of a directory", access("sub", W_OK));
  // On a descriptor that is open for reading the error is the descriptor's.
  said("write", write(file, "x", 1));
  said("pwrite", pwrite(file, "x", 1, 0));
  said("ftruncate", ftruncate(file, 1));
  said("fallocate", fallocate(file, 0, 0, 10));
  said("copy_file_range", copy_file_range(file, NULL, file, NULL, 1, 0));
  return 0;
}
