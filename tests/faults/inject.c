/* Faults at a chosen file-system call below a chosen folder; preloaded into the program under test.

   arm(folder, n, fault, log): from now on every call that touches the folder is counted, and the n-th meets the fault:
     > 0    the call fails with this errno, and does nothing (close closes all the same)
     < 0    the process gets this signal just before the call; SIGKILL half-way through a write tears it
     0      nothing happens
   Calls are written to the descriptor `log`, one line each: number, name, path, and the new path of a rename or link. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static int armed, target, fault, record = -1, count;

void arm(const char *where, int n, int what, int to) {
    snprintf(folder, sizeof folder, "%s", where);
    target = n, fault = what, record = to, count = 0, armed = 1;
}

static void resolve(int at, const char *path, char *out) {
    char link[64], base[PATH_MAX] = "";
    if (path && path[0] == '/') { snprintf(out, PATH_MAX, "%s", path); return; }
    if (at == AT_FDCWD) { if (!getcwd(base, sizeof base)) base[0] = 0; }
    else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t n = readlink(link, base, sizeof base - 1);
        base[n > 0 ? n : 0] = 0;
    }
    snprintf(out, PATH_MAX, path && *path ? "%.2000s/%.2000s" : "%.2000s", base, path ? path : "");
}

static int below(const char *path) {
    size_t n = strlen(folder);
    return n && !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

/* 1 if the call must fail, with errno set; 2 if a write is to be torn. */
static int met(const char *name, int at, const char *path, int at2, const char *path2) {
    char one[PATH_MAX], two[PATH_MAX] = "", line[2 * PATH_MAX];
    int before = errno;
    if (!armed) return 0;
    resolve(at, path, one);
    if (path2) resolve(at2, path2, two);
    if (!below(one) && !(path2 && below(two))) { errno = before; return 0; }
    int mine = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (record >= 0) {
        int n = snprintf(line, sizeof line, "%d\t%s\t%s\t%s\n", mine, name, one, two);
        syscall(SYS_write, record, line, n);
    }
    errno = before;
    if (mine != target || !fault) return 0;
    if (fault > 0) { errno = fault; return 1; }
    if (fault == -SIGKILL && strstr(name, "write")) return 2;
    kill(getpid(), -fault);
    return 0;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more); \
        if (met(flags & O_CREAT ? "create" : "open", AT_FDCWD, path, 0, 0)) return -1; \
        return real(path, flags, mode); }
#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        REAL(name); va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more); \
        if (met(flags & O_CREAT ? "create" : "open", at, path, 0, 0)) return -1; \
        return real(at, path, flags, mode); }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    int now = met("write", fd, 0, 0, 0);
    if (now == 2) { real(fd, data, size / 2); kill(getpid(), SIGKILL); }
    return now ? -1 : real(fd, data, size);
}
#define PWRITE(name, offset_t) \
    ssize_t name(int fd, const void *data, size_t size, offset_t at) { \
        REAL(name); int now = met("write", fd, 0, 0, 0); \
        if (now == 2) { real(fd, data, size / 2, at); kill(getpid(), SIGKILL); } \
        return now ? -1 : real(fd, data, size, at); }
PWRITE(pwrite, off_t) PWRITE(pwrite64, off64_t)

#define DESCRIPTOR(result, name, parameters, ...) \
    result name parameters { REAL(name); return met(#name, fd, 0, 0, 0) ? -1 : real(__VA_ARGS__); }
DESCRIPTOR(ssize_t, writev, (int fd, const struct iovec *v, int n), fd, v, n)
DESCRIPTOR(ssize_t, read, (int fd, void *data, size_t size), fd, data, size)
DESCRIPTOR(ssize_t, pread, (int fd, void *data, size_t size, off_t at), fd, data, size, at)
DESCRIPTOR(ssize_t, pread64, (int fd, void *data, size_t size, off64_t at), fd, data, size, at)
DESCRIPTOR(int, fsync, (int fd), fd)
DESCRIPTOR(int, fdatasync, (int fd), fd)
DESCRIPTOR(int, ftruncate, (int fd, off_t size), fd, size)
DESCRIPTOR(int, ftruncate64, (int fd, off64_t size), fd, size)
DESCRIPTOR(int, fchmod, (int fd, mode_t mode), fd, mode)
DESCRIPTOR(int, flock, (int fd, int how), fd, how)


int close(int fd) {
    REAL(close);
    int now = met("close", fd, 0, 0, 0), told = errno, done = real(fd);
    if (now) errno = told;
    return now ? -1 : done;
}

#define PATH1(result, name, parameters, failed, ...) \
    result name parameters { REAL(name); return met(#name, AT_FDCWD, path, 0, 0) ? failed : real(__VA_ARGS__); }
PATH1(int, mkdir, (const char *path, mode_t mode), -1, path, mode)
PATH1(int, rmdir, (const char *path), -1, path)
PATH1(int, unlink, (const char *path), -1, path)
PATH1(int, chmod, (const char *path, mode_t mode), -1, path, mode)
PATH1(int, stat, (const char *path, struct stat *to), -1, path, to)
PATH1(int, lstat, (const char *path, struct stat *to), -1, path, to)
PATH1(int, stat64, (const char *path, struct stat64 *to), -1, path, to)
PATH1(int, lstat64, (const char *path, struct stat64 *to), -1, path, to)
PATH1(DIR *, opendir, (const char *path), 0, path)

#define PATHAT(result, name, parameters, ...) \
    result name parameters { REAL(name); return met(#name, at, path, 0, 0) ? -1 : real(__VA_ARGS__); }
PATHAT(int, mkdirat, (int at, const char *path, mode_t mode), at, path, mode)
PATHAT(int, unlinkat, (int at, const char *path, int flags), at, path, flags)
PATHAT(int, fchmodat, (int at, const char *path, mode_t mode, int flags), at, path, mode, flags)
PATHAT(int, fstatat, (int at, const char *path, struct stat *to, int flags), at, path, to, flags)
PATHAT(int, fstatat64, (int at, const char *path, struct stat64 *to, int flags), at, path, to, flags)

#define PATH2(name) \
    int name(const char *from, const char *to) { \
        REAL(name); return met(#name, AT_FDCWD, from, AT_FDCWD, to) ? -1 : real(from, to); }
PATH2(rename) PATH2(link) PATH2(symlink)
int renameat(int at, const char *from, int at2, const char *to) {
    REAL(renameat);
    return met("rename", at, from, at2, to) ? -1 : real(at, from, at2, to);
}
int renameat2(int at, const char *from, int at2, const char *to, unsigned flags) {
    REAL(renameat2);
    return met("rename", at, from, at2, to) ? -1 : real(at, from, at2, to, flags);
}
int linkat(int at, const char *from, int at2, const char *to, int flags) {
    REAL(linkat);
    return met("link", at, from, at2, to) ? -1 : real(at, from, at2, to, flags);
}
