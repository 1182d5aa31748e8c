/*
 * A file layer with faults, put under an unmodified program with LD_PRELOAD.
 *
 * It looks only at files of one folder (the store's), and can write every change of them to a
 * journal, fail the n-th call, end the process at the n-th call, and ignore or slow down syncs.
 * A file descriptor is looked up by name at every call instead of being followed through dup,
 * fork and close: slower, and never wrong.
 *
 * Memory maps are not seen: the store maps only its shared index, which is no durable state.
 * Reads are counted and failed only when asked for, and never written to the journal.
 *
 *   TINE_RIG_ROOT         the folder; without it nothing is intercepted
 *   TINE_RIG_JOURNAL      where the journal is written
 *   TINE_RIG_MARKS        a file whose writes enter the journal as marks
 *   TINE_RIG_FAULT        <n>:<eio|full|short|kill>:<once|forever>
 *   TINE_RIG_FULL         a file: as long as it is there, the disk is full
 *   TINE_RIG_READS        1: reads are calls too (for faults)
 *   TINE_RIG_SYNC_IGNORE  `*`, `/` (the folder itself) or the end of a file's name: these syncs
 *                         say that they are done and are not
 *   TINE_RIG_SYNC_FREE    1: syncs enter the journal and are not asked of the system
 *   TINE_RIG_SYNC_DELAY   microseconds that every sync takes longer
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind {
    OPEN = 1, CREATE, WRITE, TRUNCATE, UNLINK, RENAME, SYNC, SYNC_FOLDER, SYNC_PARENT, MARK, ALLOCATE, READ
};

enum place { ELSEWHERE, IN_FOLDER, THE_FOLDER, THE_PARENT, MARKS };

enum fault { NONE, EIO_FAULT, FULL, SHORT, KILL };

static char root[PATH_MAX], parent[PATH_MAX], marks[PATH_MAX];
static size_t root_length;
static int journal = -1;
static long fault_at, fault_forever, sync_free, count_reads, sync_delay;
static enum fault fault_kind;
static const char *sync_ignore, *full_while;
static long calls;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;

#define REAL(type, name, ...) static type (*real_##name)(__VA_ARGS__)
REAL(int, open, const char *, int, ...);
REAL(int, openat, int, const char *, int, ...);
REAL(ssize_t, write, int, const void *, size_t);
REAL(ssize_t, writev, int, const struct iovec *, int);
REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
REAL(ssize_t, pread, int, void *, size_t, off_t);
REAL(int, fsync, int);
REAL(int, fdatasync, int);
REAL(int, ftruncate, int, off_t);
REAL(int, unlinkat, int, const char *, int);
REAL(int, rename, const char *, const char *);
REAL(int, fallocate, int, int, off_t, off_t);
REAL(int, posix_fallocate, int, off_t, off_t);

static void start(void) {
#define FIND(name) *(void **)&real_##name = dlsym(RTLD_NEXT, #name)
    FIND(open); FIND(openat); FIND(write); FIND(writev); FIND(pwrite); FIND(pread);
    FIND(fsync); FIND(fdatasync); FIND(ftruncate); FIND(unlinkat); FIND(rename);
    FIND(fallocate); FIND(posix_fallocate);
    const char *value = getenv("TINE_RIG_ROOT");
    if (!value) return;
    snprintf(root, sizeof root, "%s", value);
    snprintf(parent, sizeof parent, "%s", value);
    char *slash = strrchr(parent, '/');
    if (slash) *slash = 0;
    if ((value = getenv("TINE_RIG_MARKS"))) snprintf(marks, sizeof marks, "%s", value);
    if ((value = getenv("TINE_RIG_JOURNAL")))
        journal = real_open(value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if ((value = getenv("TINE_RIG_FAULT"))) {
        fault_at = atol(value);
        fault_forever = strstr(value, ":forever") != NULL;
        if (strstr(value, ":eio")) fault_kind = EIO_FAULT;
        if (strstr(value, ":full")) fault_kind = FULL;
        if (strstr(value, ":short")) fault_kind = SHORT;
        if (strstr(value, ":kill")) fault_kind = KILL;
    }
    sync_ignore = getenv("TINE_RIG_SYNC_IGNORE");
    full_while = getenv("TINE_RIG_FULL");
    if ((value = getenv("TINE_RIG_SYNC_FREE"))) sync_free = atol(value);
    if ((value = getenv("TINE_RIG_SYNC_DELAY"))) sync_delay = atol(value);
    if ((value = getenv("TINE_RIG_READS"))) count_reads = atol(value);
    root_length = strlen(root);
}

static int ready(void) {
    pthread_once(&started, start);
    return root_length > 0;
}

static int ends(const char *text, const char *end) {
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* Where a path lies; `name` is its part behind the folder. */
static enum place place_of(const char *path, const char **name) {
    if (marks[0] && strcmp(path, marks) == 0) return MARKS;
    if (strcmp(path, parent) == 0) return THE_PARENT;
    if (strncmp(path, root, root_length) != 0) return ELSEWHERE;
    if (path[root_length] == 0) return THE_FOLDER;
    if (path[root_length] != '/') return ELSEWHERE;
    *name = path + root_length + 1;
    /* Shared index and the store's locks are rebuilt at every start: no durable state. A deleted
     * file that is still open cannot come back. */
    if (ends(*name, "-shm") || ends(*name, "writer.queue")) return ELSEWHERE;
    if (ends(*name, "writer.lock") || ends(*name, "users.lock")) return ELSEWHERE;
    if (ends(*name, " (deleted)")) return ELSEWHERE;
    return IN_FOLDER;
}

static enum place place_of_fd(int fd, char *buffer, const char **name) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, buffer, PATH_MAX - 1);
    if (length < 0) return ELSEWHERE;
    buffer[length] = 0;
    return place_of(buffer, name);
}

static enum place place_of_path(int folder, const char *path, char *buffer, const char **name) {
    if (path[0] == '/') {
        snprintf(buffer, PATH_MAX, "%s", path);
    } else {
        char base[PATH_MAX];
        const char *ignored;
        if (folder == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return ELSEWHERE;
        } else {
            place_of_fd(folder, base, &ignored);
        }
        if (snprintf(buffer, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return ELSEWHERE;
    }
    return place_of(buffer, name);
}

/* One entry: kind, failed, length of name, length of data, offset (little endian), name, data. */
static void note(enum kind kind, int failed, const char *name, const void *data, size_t length, int64_t offset) {
    if (journal < 0) return;
    unsigned char head[16];
    uint16_t name_length = (uint16_t)strlen(name);
    uint32_t data_length = (uint32_t)length;
    head[0] = (unsigned char)kind;
    head[1] = (unsigned char)(failed != 0);
    memcpy(head + 2, &name_length, 2);
    memcpy(head + 4, &data_length, 4);
    memcpy(head + 8, &offset, 8);
    struct iovec parts[3] = {{head, sizeof head}, {(void *)name, name_length}, {(void *)data, length}};
    size_t total = sizeof head + name_length + length;
    ssize_t done = syscall(SYS_writev, journal, parts, 3);
    if (done == (ssize_t)total) return;
    abort();
}

/* Counts a call and says what is to become of it. Does not return from KILL. */
static enum fault decide(int is_write) {
    calls++;
    if (is_write && full_while && access(full_while, F_OK) == 0) return FULL;
    if (fault_kind == NONE || calls < fault_at) return NONE;
    if (fault_kind == SHORT) {
        if (calls == fault_at) return is_write ? SHORT : NONE;
        return fault_forever ? FULL : NONE;
    }
    if (calls > fault_at && !fault_forever) return NONE;
    if (fault_kind == KILL) {
        syscall(SYS_kill, getpid(), SIGKILL);
        for (;;) pause();
    }
    return fault_kind;
}

static int refuse(enum fault fault) {
    errno = fault == FULL ? ENOSPC : EIO;
    return -1;
}

#define LOCKED(result_type, ...)                                                                   \
    result_type result;                                                                            \
    pthread_mutex_lock(&turn);                                                                     \
    __VA_ARGS__                                                                                    \
    int kept = errno;                                                                              \
    pthread_mutex_unlock(&turn);                                                                   \
    errno = kept;                                                                                  \
    return result;

static int open_any(int folder, const char *path, int flags, mode_t mode) {
    char buffer[PATH_MAX];
    const char *name = "";
    if (!ready()) return real_openat(folder, path, flags, mode);
    enum place where = place_of_path(folder, path, buffer, &name);
    if (where != IN_FOLDER && where != THE_FOLDER) return real_openat(folder, path, flags, mode);
    LOCKED(int, {
        struct stat before;
        int there = fstatat(folder, path, &before, 0) == 0;
        enum kind kind = (flags & O_CREAT) && !there ? CREATE : OPEN;
        enum fault fault = decide(0);
        result = fault != NONE ? refuse(fault) : real_openat(folder, path, flags, mode);
        int failure = errno;
        note(kind, result < 0, name, "", 0, 0);
        if (result >= 0 && there && (flags & O_TRUNC)) note(TRUNCATE, 0, name, "", 0, 0);
        errno = failure;
    })
}

#define OPEN_LIKE(symbol)                                                                          \
    int symbol(const char *path, int flags, ...) {                                                 \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;                  \
        va_end(rest);                                                                              \
        return open_any(AT_FDCWD, path, flags, mode);                                              \
    }
#define OPENAT_LIKE(symbol)                                                                        \
    int symbol(int folder, const char *path, int flags, ...) {                                     \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;                  \
        va_end(rest);                                                                              \
        return open_any(folder, path, flags, mode);                                                \
    }
OPEN_LIKE(open)
OPEN_LIKE(open64)
OPENAT_LIKE(openat)
OPENAT_LIKE(openat64)
int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* Writes at a place; `at` < 0 is wherever the file is at. */
static ssize_t write_any(int fd, const void *data, size_t length, off_t at) {
    char buffer[PATH_MAX];
    const char *name = "";
    enum place where = ready() ? place_of_fd(fd, buffer, &name) : ELSEWHERE;
    if (where != IN_FOLDER && where != MARKS)
        return at < 0 ? real_write(fd, data, length) : real_pwrite(fd, data, length, at);
    LOCKED(ssize_t, {
        if (where == MARKS) {
            note(MARK, 0, "", data, length, 0);
            result = real_write(fd, data, length);
        } else {
            int64_t offset = at < 0 ? lseek(fd, 0, SEEK_CUR) : at;
            enum fault fault = decide(1);
            size_t wanted = fault == SHORT && length > 1 ? length / 2 : length;
            if (fault == EIO_FAULT || fault == FULL)
                result = refuse(fault);
            else
                result = at < 0 ? real_write(fd, data, wanted) : real_pwrite(fd, data, wanted, at);
            int failure = errno;
            note(WRITE, result < 0, name, data, result < 0 ? 0 : (size_t)result, offset);
            errno = failure;
        }
    })
}

ssize_t write(int fd, const void *data, size_t length) { return write_any(fd, data, length, -1); }
ssize_t pwrite(int fd, const void *data, size_t length, off_t at) { return write_any(fd, data, length, at); }
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) { return write_any(fd, data, length, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    char buffer[PATH_MAX];
    const char *name = "";
    enum place where = ready() ? place_of_fd(fd, buffer, &name) : ELSEWHERE;
    if (where != IN_FOLDER && where != MARKS) return real_writev(fd, parts, count);
    /* One part at a time is a short write, which every caller must expect. */
    for (int part = 0; part < count; part++)
        if (parts[part].iov_len > 0) return write_any(fd, parts[part].iov_base, parts[part].iov_len, -1);
    return 0;
}

static ssize_t read_any(int fd, void *data, size_t length, off_t at) {
    char buffer[PATH_MAX];
    const char *name = "";
    if (!ready() || !count_reads || place_of_fd(fd, buffer, &name) != IN_FOLDER) return real_pread(fd, data, length, at);
    LOCKED(ssize_t, {
        enum fault fault = decide(0);
        result = fault != NONE ? refuse(EIO_FAULT) : real_pread(fd, data, length, at);
        int failure = errno;
        note(READ, result < 0, name, "", 0, at);
        errno = failure;
    })
}
ssize_t pread(int fd, void *data, size_t length, off_t at) { return read_any(fd, data, length, at); }
ssize_t pread64(int fd, void *data, size_t length, off64_t at) { return read_any(fd, data, length, at); }

static int ignored(enum place where, const char *name) {
    if (!sync_ignore) return 0;
    if (strcmp(sync_ignore, "*") == 0) return 1;
    if (strcmp(sync_ignore, "/") == 0) return where == THE_FOLDER;
    return where == IN_FOLDER && ends(name, sync_ignore);
}

static int sync_any(int fd, int (*real)(int)) {
    char buffer[PATH_MAX];
    const char *name = "";
    enum place where = ready() ? place_of_fd(fd, buffer, &name) : ELSEWHERE;
    if (where == ELSEWHERE || where == MARKS) return real(fd);
    if (sync_delay > 0) {
        struct timespec delay = {sync_delay / 1000000, sync_delay % 1000000 * 1000};
        nanosleep(&delay, NULL);
    }
    LOCKED(int, {
        enum kind kind = where == IN_FOLDER ? SYNC : where == THE_FOLDER ? SYNC_FOLDER : SYNC_PARENT;
        enum fault fault = decide(0);
        int lie = ignored(where, name);
        if (fault != NONE) result = refuse(fault);
        else if (lie || sync_free) result = 0;
        else result = real(fd);
        int failure = errno;
        /* A sync that was ignored is noted as one that failed: it made nothing durable. */
        note(kind, result < 0 || lie, name, "", 0, 0);
        errno = failure;
    })
}
int fsync(int fd) { ready(); return sync_any(fd, real_fsync); }
int fdatasync(int fd) { ready(); return sync_any(fd, real_fdatasync); }

static int truncate_any(int fd, off_t length) {
    char buffer[PATH_MAX];
    const char *name = "";
    if (!ready() || place_of_fd(fd, buffer, &name) != IN_FOLDER) return real_ftruncate(fd, length);
    LOCKED(int, {
        enum fault fault = decide(0);
        result = fault != NONE ? refuse(fault) : real_ftruncate(fd, length);
        int failure = errno;
        note(TRUNCATE, result < 0, name, "", 0, length);
        errno = failure;
    })
}
int ftruncate(int fd, off_t length) { return truncate_any(fd, length); }
int ftruncate64(int fd, off64_t length) { return truncate_any(fd, length); }

static int unlink_any(int folder, const char *path, int flags) {
    char buffer[PATH_MAX];
    const char *name = "";
    if (!ready() || place_of_path(folder, path, buffer, &name) != IN_FOLDER) return real_unlinkat(folder, path, flags);
    LOCKED(int, {
        enum fault fault = decide(0);
        result = fault != NONE ? refuse(fault) : real_unlinkat(folder, path, flags);
        int failure = errno;
        note(UNLINK, result < 0, name, "", 0, 0);
        errno = failure;
    })
}
int unlink(const char *path) { return unlink_any(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return unlink_any(folder, path, flags); }

int rename(const char *from, const char *to) {
    char from_buffer[PATH_MAX], to_buffer[PATH_MAX];
    const char *from_name = "", *to_name = "";
    if (!ready() || place_of_path(AT_FDCWD, from, from_buffer, &from_name) != IN_FOLDER
        || place_of_path(AT_FDCWD, to, to_buffer, &to_name) != IN_FOLDER)
        return real_rename(from, to);
    LOCKED(int, {
        enum fault fault = decide(0);
        result = fault != NONE ? refuse(fault) : real_rename(from, to);
        int failure = errno;
        note(RENAME, result < 0, from_name, to_name, strlen(to_name), 0);
        errno = failure;
    })
}

/* Growing a file ahead of time. The journal knows it as an empty write at the new end. */
static int allocate_any(int fd, int mode, off_t at, off_t length, int posix) {
    char buffer[PATH_MAX];
    const char *name = "";
    if (!ready() || place_of_fd(fd, buffer, &name) != IN_FOLDER)
        return posix ? real_posix_fallocate(fd, at, length) : real_fallocate(fd, mode, at, length);
    LOCKED(int, {
        enum fault fault = decide(0);
        if (fault != NONE) result = posix ? (fault == FULL ? ENOSPC : EIO) : refuse(fault);
        else result = posix ? real_posix_fallocate(fd, at, length) : real_fallocate(fd, mode, at, length);
        int failure = errno;
        note(ALLOCATE, result != 0, name, "", 0, at + length);
        errno = failure;
    })
}
int fallocate(int fd, int mode, off_t at, off_t length) { return allocate_any(fd, mode, at, length, 0); }
int fallocate64(int fd, int mode, off64_t at, off64_t length) { return allocate_any(fd, mode, at, length, 0); }
int posix_fallocate(int fd, off_t at, off_t length) { return allocate_any(fd, 0, at, length, 1); }
int posix_fallocate64(int fd, off64_t at, off64_t length) { return allocate_any(fd, 0, at, length, 1); }
