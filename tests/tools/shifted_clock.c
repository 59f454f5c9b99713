/* Preloaded into redis-server by tests/it/fleet/clock_jumps.rs: shifts the wall clock by the number of seconds in the
   file that CLOCK_SHIFT_FILE names. The file can change at any time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void) {
    const char *name = getenv("CLOCK_SHIFT_FILE");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    char text[32] = {0};
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? atol(text) : 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec real;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &real);
    now->tv_sec = real.tv_sec + shift();
    now->tv_usec = real.tv_nsec / 1000;
    return 0;
}
