/* A program that changes files below a folder by every call that the watch has to see, each on a name of its own: the
 * name is the call's. For the test of the watch itself.
 *
 *   file_changer FOLDER      exit code 0, or 1 if a call did not succeed */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed;

static void expect(int result, const char* call) {
  if (result == 0) return;
  perror(call);
  failed = 1;
}

static int make(const char* name) {
  const int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd < 0) expect(-1, name);
  return fd;
}

int main(int count, char** words) {
  if (count != 2 || chdir(words[1]) != 0) return 64;
  const int here = AT_FDCWD;
  close(make("file"));
  expect(mkdir("mkdir", 0700), "mkdir");
  expect(mkdirat(here, "mkdirat", 0700), "mkdirat");
  expect(link("file", "link"), "link");
  expect(linkat(here, "file", here, "linkat", 0), "linkat");
  expect(symlink("file", "symlink"), "symlink");
  expect(symlinkat("file", here, "symlinkat"), "symlinkat");
  expect(mkfifo("mkfifo", 0600), "mkfifo");

  close(make("chmod"));
  expect(chmod("chmod", 0640), "chmod");
  close(make("fchmodat"));
  expect(fchmodat(here, "fchmodat", 0640, 0), "fchmodat");
  close(make("truncate"));
  expect(truncate("truncate", 5), "truncate");
  close(make("utimensat"));
  expect(utimensat(here, "utimensat", NULL, 0), "utimensat");
  int fd = make("fchmod");
  expect(fchmod(fd, 0640), "fchmod");
  close(fd);
  fd = make("ftruncate");
  expect(ftruncate(fd, 5), "ftruncate");
  close(fd);
  fd = make("futimens");
  expect(futimens(fd, NULL), "futimens");
  close(fd);

  expect(rename("link", "rename"), "rename");
  expect(renameat(here, "linkat", here, "renameat"), "renameat");
  expect(renameat2(here, "file", here, "renameat2", 0), "renameat2");
  close(make("unlink"));
  expect(unlink("unlink"), "unlink");
  close(make("unlinkat"));
  expect(unlinkat(here, "unlinkat", 0), "unlinkat");
  expect(rmdir("mkdir"), "rmdir");
  return failed;
}
