/* Preloaded, it counts what changes files below a folder: opening them to write,
 * writing, truncating, renaming, linking, changing modes, making folders and fsync.
 * The operation of a given number fails, or kills the process before it happens. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long count, fails_at, kills_at;

/* Begin to count, below a folder; 0: nothing fails. */
void watch_folder(const char *below, long fail, long kill_before) {
    snprintf(folder, sizeof folder, "%s", below);
    count = 0;
    fails_at = fail;
    kills_at = kill_before;
}

long operations(void) { return count; }

static int fails(void) {
    count++;
    if (count == kills_at) kill(getpid(), SIGKILL);
    if (count != fails_at) return 0;
    errno = count % 2 ? EIO : ENOSPC;
    return 1;
}

static int below(const char *path) {
    char whole[PATH_MAX];
    if (!folder[0] || !path) return 0;
    if (path[0] != '/') {
        char here[PATH_MAX / 2];
        if (!getcwd(here, sizeof here)) return 0;
        snprintf(whole, sizeof whole, "%s/%s", here, path);
        path = whole;
    }
    return strncmp(path, folder, strlen(folder)) == 0;
}

static int open_below(int file) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return below(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRITES (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC)

#define OPENS(name)                                                          \
    int name(const char *path, int flags, ...) {                             \
        va_list rest;                                                        \
        va_start(rest, flags);                                               \
        mode_t mode = va_arg(rest, mode_t);                                  \
        va_end(rest);                                                        \
        if ((flags & WRITES) && below(path) && fails()) return -1;           \
        return REAL(name)(path, flags, mode);                                \
    }
OPENS(open)
OPENS(open64)

int openat(int at, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    if ((flags & WRITES) && below(path) && fails()) return -1;
    return REAL(openat)(at, path, flags, mode);
}

#define ON_FILE(type, name, parameters, arguments)                           \
    type name parameters {                                                   \
        if (open_below(file) && fails()) return -1;                          \
        return REAL(name) arguments;                                         \
    }
ON_FILE(ssize_t, write, (int file, const void *data, size_t n), (file, data, n))
ON_FILE(ssize_t, pwrite, (int file, const void *data, size_t n, off_t at),
        (file, data, n, at))
ON_FILE(ssize_t, pwrite64, (int file, const void *data, size_t n, off64_t at),
        (file, data, n, at))
ON_FILE(ssize_t, writev, (int file, const struct iovec *data, int n), (file, data, n))
ON_FILE(int, fsync, (int file), (file))
ON_FILE(int, fdatasync, (int file), (file))
ON_FILE(int, ftruncate, (int file, off_t size), (file, size))
ON_FILE(int, ftruncate64, (int file, off64_t size), (file, size))
ON_FILE(int, fchmod, (int file, mode_t mode), (file, mode))

#define ON_PATH(name, parameters, arguments)                                 \
    int name parameters {                                                    \
        if (below(path) && fails()) return -1;                               \
        return REAL(name) arguments;                                         \
    }
ON_PATH(rename, (const char *path, const char *to), (path, to))
ON_PATH(link, (const char *path, const char *to), (path, to))
ON_PATH(chmod, (const char *path, mode_t mode), (path, mode))
ON_PATH(chown, (const char *path, uid_t user, gid_t group), (path, user, group))
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode))

int renameat(int from, const char *path, int at, const char *to) {
    if (below(path) && fails()) return -1;
    return REAL(renameat)(from, path, at, to);
}

int linkat(int from, const char *path, int at, const char *to, int flags) {
    if (below(path) && fails()) return -1;
    return REAL(linkat)(from, path, at, to, flags);
}

int mkdirat(int at, const char *path, mode_t mode) {
    if (below(path) && fails()) return -1;
    return REAL(mkdirat)(at, path, mode);
}
