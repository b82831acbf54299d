/* A clock for tests, preloaded into the operator. It runs at a multiple of the speed of the real clock, and its wall
 * time can jump while the process runs. It replaces the functions of the C library through which a Rust program reads
 * clocks and waits with a timeout. It must not allocate: allocators read the clock while they start.
 *
 * SIMULATED_CLOCK=SPEED:START:FILE
 *   SPEED  simulated seconds in a real second
 *   START  the real time in nanoseconds at which simulated and real time are equal; all processes of a test share it
 *   FILE   eight bytes: the nanoseconds by which the simulated wall time is ahead, as an int64_t
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static int64_t speed = 1, start, monotonic_start;
static volatile int64_t *ahead;
static volatile int ready;

/* The next function `syscall`, because the first one is defined below. */
static long kernel(long number, long a, long b, long c, long d, long e, long f) {
    static long (*next)(long, ...);
    if (!next) next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return next(number, a, b, c, d, e, f);
}

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

static struct timespec timespec_of(int64_t time) {
    return (struct timespec){.tv_sec = time / SECOND, .tv_nsec = time % SECOND};
}

static int64_t real(clockid_t clock) {
    struct timespec now;
    kernel(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
    return nanoseconds(&now);
}

static void prepare(void) {
    if (ready) return;
    const char *setting = getenv("SIMULATED_CLOCK");
    if (setting) {
        char *rest;
        speed = strtoll(setting, &rest, 10);
        start = strtoll(rest + 1, &rest, 10);
        /* Both clocks of one machine run alike, so all processes agree on this one, too. */
        monotonic_start = start - real(CLOCK_REALTIME) + real(CLOCK_MONOTONIC);
        long file = kernel(SYS_openat, AT_FDCWD, (long)(rest + 1), O_RDONLY | O_CLOEXEC, 0, 0, 0);
        void *shared = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, (int)file, 0);
        ahead = shared == MAP_FAILED ? NULL : shared;
    }
    ready = 1;
}

__attribute__((constructor)) static void loaded(void) { prepare(); }

static int is_wall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

/* The simulated time at a real one. */
static int64_t simulated(clockid_t clock, int64_t time) {
    if (is_wall(clock)) return start + (time - start) * speed + (ahead ? *ahead : 0);
    return monotonic_start + (time - monotonic_start) * speed;
}

/* The real time at a simulated one. */
static int64_t back(clockid_t clock, int64_t time) {
    if (is_wall(clock)) return start + (time - (ahead ? *ahead : 0) - start) / speed;
    return monotonic_start + (time - monotonic_start) / speed;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    prepare();
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        *time = timespec_of(simulated(clock, real(is_wall(clock) ? CLOCK_REALTIME : CLOCK_MONOTONIC)));
        return 0;
    default:
        return (int)kernel(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0);
    }
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *stored) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (stored) *stored = now.tv_sec;
    return now.tv_sec;
}

/* A wait of a millisecond at least, so that no loop spins. */
static int shorter(int milliseconds) {
    if (milliseconds <= 0) return milliseconds;
    int real_wait = (int)((milliseconds + speed - 1) / speed);
    return real_wait > 0 ? real_wait : 1;
}

int epoll_pwait(int epoll, struct epoll_event *events, int count, int timeout, const sigset_t *mask) {
    prepare();
    return (int)kernel(SYS_epoll_pwait, epoll, (long)events, count, shorter(timeout), (long)mask, _NSIG / 8);
}

int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout) {
    return epoll_pwait(epoll, events, count, timeout, NULL);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request, struct timespec *remaining) {
    prepare();
    int64_t time = nanoseconds(request);
    struct timespec real_wait = timespec_of(flags & TIMER_ABSTIME ? back(clock, time) : time / speed);
    long done = kernel(SYS_clock_nanosleep, clock, flags, (long)&real_wait, (long)remaining, 0, 0);
    return done < 0 ? errno : 0;
}

int nanosleep(const struct timespec *request, struct timespec *remaining) {
    int failed = clock_nanosleep(CLOCK_MONOTONIC, 0, request, remaining);
    if (failed) errno = failed;
    return failed ? -1 : 0;
}

/* The standard library of Rust waits for futexes through this function. */
long syscall(long number, ...) {
    prepare();
    va_list list;
    va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    struct timespec real_end;
    int operation = (int)a[1] & FUTEX_CMD_MASK;
    if (number == SYS_futex && a[3] && (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET)) {
        int64_t time = nanoseconds((const struct timespec *)a[3]);
        clockid_t clock = a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
        real_end = timespec_of(operation == FUTEX_WAIT ? time / speed : back(clock, time));
        a[3] = (long)&real_end;
    }
    return kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
