// Tries every system call that changes something on a file, a directory and what is in it, and
// prints the error of each.
// usage: changing DIR     DIR holds `file` and the directory `sub`
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
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
  said("lsetxattr", lsetxattr("file", "user.mine", "1", 1, XATTR_CREATE));
  said("lremovexattr", lremovexattr("file", "user.byname.root"));
  said("setxattr of a directory", setxattr("sub", "user.mine", "1", 1, 0));
  said("openat O_RDWR", openat(AT_FDCWD, "sub/inner", O_RDWR));
  struct open_how how = {.flags = O_WRONLY};
  said("openat2 O_WRONLY", syscall(SYS_openat2, AT_FDCWD, "file", &how, sizeof how));
  how = (struct open_how){.flags = O_RDWR | O_CREAT | O_EXCL, .mode = 0600};
  said("openat2 O_CREAT", syscall(SYS_openat2, AT_FDCWD, "new", &how, sizeof how));
  said("renameat", renameat(AT_FDCWD, "sub", AT_FDCWD, "other"));
  said("linkat", linkat(AT_FDCWD, "file", AT_FDCWD, "sub/other", 0));
  said("symlinkat", symlinkat("file", AT_FDCWD, "sub/other"));
  said("mkfifo", mkfifo("new", 0600));
  said("mknodat", mknodat(AT_FDCWD, "sub/new", S_IFREG | 0600, 0));
  said("mknod socket", mknod("new", S_IFSOCK | 0600, 0));
  said("fchownat", fchownat(AT_FDCWD, "sub", getuid(), getgid(), AT_SYMLINK_NOFOLLOW));
  said("utimensat of a directory", utimensat(AT_FDCWD, "sub", now, AT_SYMLINK_NOFOLLOW));
  said("futimesat", futimesat(AT_FDCWD, "file", NULL));
  said("truncate to nothing", truncate("sub/inner", 0));
  said("faccessat W_OK", faccessat(AT_FDCWD, "file", W_OK, AT_EACCESS));
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
  struct iovec part = {"x", 1};
  said("writev", writev(file, &part, 1));
  said("pwritev", pwritev(file, &part, 1, 0));
  said("sendfile", sendfile(file, open("sub/inner", O_RDONLY), NULL, 1));
  int pipes[2];
  said("splice", pipe(pipes) || write(pipes[1], "x", 1) != 1
      ? 0 : splice(pipes[0], NULL, file, NULL, 1, 0));
  said("punch a hole",
      fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
  said("FICLONE", ioctl(file, FICLONE, open("sub/inner", O_RDONLY)));
  said("copy_file_range", copy_file_range(file, NULL, file, NULL, 1, 0));
  return 0;
}
