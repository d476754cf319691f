/* advise_random COMMAND [ARGUMENT...]
 *
 * Runs a command. Each large read-only mapping of a file that it or one of its children makes is
 * advised MADV_RANDOM before the program sees it. Works for static programs too: a seccomp filter
 * stops only at such an mmap, and the stopped thread is made to run one madvise. Measuring only:
 * a program whose tracer dies would see its mmap fail. x86-64.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE_BYTES (16u << 20)
#define ARG_LOW(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#define ARG_HIGH(i) (ARG_LOW(i) + 4)
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define JUMP(test, k, yes, no) BPF_JUMP(BPF_JMP | (test) | BPF_K, (k), (yes), (no))

static void stop_at_large_file_mappings(void)
{
    struct sock_filter filter[] = {
        LOAD(offsetof(struct seccomp_data, nr)),
        JUMP(BPF_JEQ, SYS_mmap, 0, 8),
        LOAD(ARG_LOW(4)), /* no file */
        JUMP(BPF_JEQ, 0xffffffffu, 6, 0),
        LOAD(ARG_LOW(2)),
        JUMP(BPF_JSET, PROT_WRITE | PROT_EXEC, 4, 0),
        LOAD(ARG_HIGH(1)),
        JUMP(BPF_JEQ, 0, 0, 3),
        LOAD(ARG_LOW(1)),
        JUMP(BPF_JGE, LARGE_BYTES, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("advise_random: seccomp");
        _exit(126);
    }
}

/* Lets the thread run to its next stop at a system call; a signal on the way is kept for later. */
static int run_to_system_call(pid_t thread, int *kept_signal)
{
    for (;;) {
        int status;
        if (ptrace(PTRACE_SYSCALL, thread, 0, 0) || waitpid(thread, &status, __WALL) < 0
            || !WIFSTOPPED(status))
            return -1;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80))
            return 0;
        if (status >> 16 == 0)
            *kept_signal = WSTOPSIG(status);
    }
}

/* The thread is stopped at the entry of an mmap. Returns a signal to deliver, or 0. */
static int advise(pid_t thread)
{
    int kept_signal = 0;
    struct user_regs_struct after, call;
    if (run_to_system_call(thread, &kept_signal) || ptrace(PTRACE_GETREGS, thread, 0, &after))
        return 0;
    if (after.rax >= -4095ull)
        return kept_signal;
    call = after;
    call.rip -= 2; /* the length of the syscall instruction */
    call.rax = SYS_madvise;
    call.orig_rax = -1;
    call.rdi = after.rax;
    call.rdx = MADV_RANDOM;
    ptrace(PTRACE_SETREGS, thread, 0, &call);
    if (run_to_system_call(thread, &kept_signal) || run_to_system_call(thread, &kept_signal))
        return 0;
    ptrace(PTRACE_GETREGS, thread, 0, &call);
    if (call.rax != 0)
        fprintf(stderr, "advise_random: madvise: error %d\n", (int)-call.rax);
    after.orig_rax = -1;
    ptrace(PTRACE_SETREGS, thread, 0, &after);
    return kept_signal;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: advise_random COMMAND [ARGUMENT...]\n");
        return 2;
    }
    int status;
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        stop_at_large_file_mappings();
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, WUNTRACED) < 0
        || ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD
                  | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK
                  | PTRACE_O_TRACEVFORK)) {
        perror("advise_random");
        return 126;
    }
    kill(child, SIGCONT);
    for (;;) {
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0)
            return 126;
        if (!WIFSTOPPED(status)) {
            if (thread == child)
                return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            continue;
        }
        int event = status >> 16, signal = 0;
        if (event == PTRACE_EVENT_SECCOMP)
            signal = advise(thread);
        else if (event == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP) {
            ptrace(PTRACE_LISTEN, thread, 0, 0);
            continue;
        } else if (event == 0)
            signal = WSTOPSIG(status);
        ptrace(PTRACE_CONT, thread, 0, signal);
    }
}
