/* Reads pages of a mapped file at random and prints their sum. With a third argument it then says
 * "ready" and waits for a signal. With LOOKUPS_PAUSE_US in the environment it waits so many
 * microseconds behind each page, with LOOKUPS_WORK_US it computes for so long, and with
 * LOOKUPS_FLAGS it prints what the kernel shows of its mapping, the advice among that. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void print_flags(const char *path)
{
	char line[4096];
	int is_own = 0;
	FILE *smaps = fopen("/proc/self/smaps", "r");

	while (smaps && fgets(line, sizeof line, smaps)) {
		if (strstr(line, path))
			is_own = 1;
		else if (is_own && !strncmp(line, "VmFlags:", 8))
			break;
	}
	puts(line);
}

static long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	struct stat data;
	int file = open(argv[1], O_RDONLY);

	if (argc < 3 || file < 0 || fstat(file, &data) < 0)
		return 2;
	unsigned char *map = mmap(NULL, data.st_size, PROT_READ, MAP_SHARED, file, 0);
	if (map == MAP_FAILED)
		return 2;
	const char *pause_us = getenv("LOOKUPS_PAUSE_US"), *work_us = getenv("LOOKUPS_WORK_US");
	unsigned long pages = data.st_size / 4096, state = 88172645463325252UL, sum = 0;
	for (long i = 0; i < atol(argv[2]); i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		sum += map[state % pages * 4096];
		if (pause_us)
			usleep(atoi(pause_us));
		for (long begin = now_us(); work_us && now_us() - begin < atol(work_us);)
			;
	}
	printf("%lu\n", sum);
	if (getenv("LOOKUPS_FLAGS"))
		print_flags(argv[1]);
	if (argc > 3) {
		puts("ready");
		fflush(stdout);
		pause();
	}
	return 0;
}
