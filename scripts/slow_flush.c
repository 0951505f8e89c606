/* Delays the flush of a file (fsync, fdatasync), to simulate a slower disk. Loaded by
   scripts/with-slow-flush. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static int slowly(const char *name, int file)
{
    const char *milliseconds = getenv("RANKDUEL_SLOW_FLUSH_MS");
    double seconds = (milliseconds ? strtod(milliseconds, NULL) : 0.0) / 1000.0;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec += 1;
        until.tv_nsec -= 1000000000L;
    }
    /* a signal interrupts a sleep, not a disk */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    int (*flush)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return flush(file);
}

int fsync(int file)
{
    return slowly("fsync", file);
}

int fdatasync(int file)
{
    return slowly("fdatasync", file);
}
