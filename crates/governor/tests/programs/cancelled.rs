//! Threads that are cancelled while a function that is interposed waits for the kernel.

use std::fs;
use std::process::Command;

use crate::support::bench::Bench;
use crate::support::skip::skip;

/// Cancels a thread in each way to wait, and prints what its cleanup handlers find.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static char *start;
static const size_t bytes = 64 << 20;
static int ends[2], sockets[2], epoll;

static unsigned long looked(int seed) {
    unsigned long sum = 0;
    for (int number = 0; number < 50; number++)
        sum += *(volatile unsigned long *)(start + (number * 163 + seed) % 16000 * 4096);
    return sum;
}

/* Whether the kernel reads single pages of the mapping. */
static int is_random(void) {
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[4096];
    int is_inside = 0, is_random = 0;
    while (fgets(line, sizeof line, file)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            is_inside = from < (unsigned long)start + bytes && (unsigned long)start < to;
        if (is_inside && !strncmp(line, "VmFlags:", 8) && strstr(line, " rr"))
            is_random++;
    }
    fclose(file);
    return is_random;
}

static void writes(void) { while (write(ends[1], start, bytes) > 0); }
static void writes_parts(void) {
    struct iovec part = { start, bytes };
    while (writev(ends[1], &part, 1) > 0);
}
static void sends(void) { while (send(sockets[1], start, bytes, 0) > 0); }
static void writes_little(void) { while (write(ends[1], start, 4096) > 0); }
static void streams(void) { FILE *to = fdopen(ends[1], "w"); while (fwrite(start, 1, bytes, to)); }
static void polls(void) {
    sigset_t none;
    sigemptyset(&none);
    ppoll(0, 0, 0, &none);
}
static void polls_epoll(void) {
    sigset_t none;
    sigemptyset(&none);
    struct epoll_event event;
    epoll_pwait(epoll, &event, 1, -1, &none);
}
static void selects(void) {
    sigset_t none;
    sigemptyset(&none);
    pselect(0, 0, 0, 0, 0, &none);
}
static void suspends(void) {
    sigset_t none;
    sigemptyset(&none);
    sigsuspend(&none);
}
static void starts_programs(void) { system("sleep 60"); }

static const struct { const char *name; void (*wait)(void); } ways[] = {
    { "write", writes }, { "writev", writes_parts }, { "send", sends },
    { "little writes", writes_little }, { "fwrite", streams }, { "ppoll", polls },
    { "epoll_pwait", polls_epoll }, { "pselect", selects }, { "sigsuspend", suspends },
    { "system", starts_programs },
};

static void cleaned(void *what) {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, 0, &mask);
    printf("%s: cleaned up, SIGTRAP is blocked: %d, %lx\n", (const char *)what,
           sigismember(&mask, SIGTRAP), looked(1));
}

static void outer(void *what) { printf("%s: and all\n", (const char *)what); }

static volatile pid_t runner;

/* Waits until the thread has slept for a while, as it does where nothing comes. */
static void await_sleep(void) {
    for (int looks = 0; looks < 10; looks++) {
        char path[64], line[512] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", runner);
        FILE *file = runner ? fopen(path, "r") : 0;
        if (file) {
            fgets(line, sizeof line, file);
            fclose(file);
        }
        if (!strstr(line, ") S "))
            looks = -1;
        usleep(5000);
    }
}

static void *run(void *way) {
    int number = (long)way;
    runner = gettid();
    sigset_t trap;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    pthread_sigmask(SIG_BLOCK, &trap, 0);
    pthread_cleanup_push(outer, (void *)ways[number].name);
    pthread_cleanup_push(cleaned, (void *)ways[number].name);
    ways[number].wait();
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return 0;
}

int main(int argc, char **argv) {
    setvbuf(stdout, 0, _IOLBF, 0);
    /* What system(3) starts is killed, and may leave half of its statistics. */
    unsetenv("LD_PRELOAD");
    start = mmap(0, bytes, PROT_READ, MAP_SHARED, open(argv[1], O_RDONLY), 0);
    epoll = epoll_create1(0);
    printf("%lx\n", looked(0));
    int before = is_random();
    for (long way = 0; way < (long)(sizeof ways / sizeof *ways); way++) {
        pthread_t thread;
        void *result;
        if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
            return 1;
        runner = 0;
        pthread_create(&thread, 0, run, (void *)way);
        await_sleep();
        pthread_cancel(thread);
        pthread_join(thread, &result);
        printf("%s: cancelled: %d, as before: %d\n", ways[way].name,
               result == PTHREAD_CANCELED, is_random() == before);
    }
    printf("%lx\n", looked(2));
    return 0;
}
"#;

/// Compilers make two kinds of cleanup handlers: those that the C library finds, and those that
/// whoever unwinds the stack finds.
pub fn threads(bench: &Bench) {
    let source = bench.directory.join("cancelled.c");
    fs::write(&source, PROGRAM).expect("there is room");
    let data = bench.data();
    for kind in ["-fno-exceptions", "-fexceptions"] {
        let program = bench.directory.join(format!("cancelled{kind}"));
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread", kind, "-o"]).args([&program, &source]);
        match compiler.output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
            Err(_) => return skip("there is no C compiler"),
        }
        let command = || {
            let mut command = Command::new(&program);
            command.arg(&data);
            command
        };
        let both = bench.both(16 << 20, &[&data], command).alike().well().governs(&data);
        let text = both.plain.stdout();
        let count = |line: &str| text.lines().filter(|of| of.ends_with(line)).count();
        assert_eq!((count("cancelled: 1, as before: 1"), count("and all")), (10, 10), "{text}");
    }
}
