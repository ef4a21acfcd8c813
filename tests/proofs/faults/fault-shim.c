/*
 * Loaded before libc: fails the Nth call of one kind on files below a folder. Opening `<folder>/.fault/<kind> <nth> <times>
 * <errno> <short>` arms it and starts counting, `<folder>/.fault/off` ends it, `<folder>/.fault/report` writes the counts of
 * calls and of hits to `<folder>/.fault-report`; all three say that there is no such file. A short write takes its bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE, FDATASYNC, FTRUNCATE, RENAME, OPEN, KINDS };
static const char *const names[KINDS] = {"write", "fdatasync", "ftruncate", "rename", "open"};

static int calls[KINDS];
static int hits;
static struct {
  int kind, nth, times, error, taken;
} fault = {-1, 0, 0, 0, 0};

static const char *root(void) {
  const char *path = getenv("TAPETREE_FAULT_FOLDER");
  return path ? path : "/nowhere";
}

static int is_ours(const char *path) {
  size_t length = strlen(root());
  return strncmp(path, root(), length) == 0 && path[length] == '/';
}

static int is_our_descriptor(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_ours(path);
}

/* Counts the call; 1 if it is to fail. */
static int fails(enum kind kind) {
  int number = __atomic_add_fetch(&calls[kind], 1, __ATOMIC_SEQ_CST);
  if (fault.kind != (int)kind || number < fault.nth || number >= fault.nth + fault.times) return 0;
  __atomic_add_fetch(&hits, 1, __ATOMIC_SEQ_CST);
  return 1;
}

static void *next(const char *name) {
  return dlsym(RTLD_NEXT, name);
}

static void report(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/.fault-report", root());
  int (*real_open)(const char *, int, ...) = next("open");
  int fd = real_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  for (int kind = 0; kind < KINDS; kind++) dprintf(fd, "%s %d\n", names[kind], calls[kind]);
  dprintf(fd, "hits %d\n", hits);
  close(fd);
}

/* 1 if the path was a message to this shim. */
static int is_message(const char *path) {
  char prefix[PATH_MAX], name[32];
  int length = snprintf(prefix, sizeof prefix, "%s/.fault/", root());
  if (strncmp(path, prefix, length) != 0) return 0;
  if (strcmp(path + length, "report") == 0) {
    report();
    return 1;
  }
  fault.kind = -1;
  if (strcmp(path + length, "off") == 0) return 1;
  memset(calls, 0, sizeof calls);
  hits = 0;
  if (sscanf(path + length, "%31s %d %d %d %d", name, &fault.nth, &fault.times, &fault.error, &fault.taken) != 5) return 1;
  for (int kind = 0; kind < KINDS; kind++)
    if (strcmp(name, names[kind]) == 0) fault.kind = kind;
  return 1;
}

static int open_with(const char *symbol, const char *path, int flags, mode_t mode) {
  int (*real)(const char *, int, ...) = next(symbol);
  if (is_message(path)) {
    errno = ENOENT;
    return -1;
  }
  if (is_ours(path) && fails(OPEN)) {
    errno = fault.error;
    return -1;
  }
  return real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = va_arg(arguments, int);
  va_end(arguments);
  return open_with("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = va_arg(arguments, int);
  va_end(arguments);
  return open_with("open64", path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = next("write");
  if (!is_our_descriptor(fd) || !fails(WRITE)) return real(fd, bytes, size);
  if (fault.error == 0) return real(fd, bytes, (size_t)fault.taken < size ? (size_t)fault.taken : size);
  errno = fault.error;
  return -1;
}

static int sync_with(const char *symbol, int fd) {
  int (*real)(int) = next(symbol);
  if (!is_our_descriptor(fd) || !fails(FDATASYNC)) return real(fd);
  errno = fault.error;
  return -1;
}

int fdatasync(int fd) {
  return sync_with("fdatasync", fd);
}

/* How folders are synced. */
int fsync(int fd) {
  return sync_with("fsync", fd);
}

static int truncate_with(const char *symbol, int fd, off_t size) {
  int (*real)(int, off_t) = next(symbol);
  if (!is_our_descriptor(fd) || !fails(FTRUNCATE)) return real(fd, size);
  errno = fault.error;
  return -1;
}

int ftruncate(int fd, off_t size) {
  return truncate_with("ftruncate", fd, size);
}

int ftruncate64(int fd, off64_t size) {
  return truncate_with("ftruncate64", fd, size);
}

int rename(const char *from, const char *to) {
  int (*real)(const char *, const char *) = next("rename");
  if (!is_ours(from) || !fails(RENAME)) return real(from, to);
  errno = fault.error;
  return -1;
}
