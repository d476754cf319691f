/* Reads pages of a mapped file at random and prints their sum. With a third argument it then says
 * "ready" and waits for a signal. With LOOKUPS_PAUSE_US in the environment it waits so many
 * microseconds behind each page. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct stat data;
	int file = open(argv[1], O_RDONLY);

	if (argc < 3 || file < 0 || fstat(file, &data) < 0)
		return 2;
	unsigned char *map = mmap(NULL, data.st_size, PROT_READ, MAP_SHARED, file, 0);
	if (map == MAP_FAILED)
		return 2;
	const char *pause_us = getenv("LOOKUPS_PAUSE_US");
	unsigned long pages = data.st_size / 4096, state = 88172645463325252UL, sum = 0;
	for (long i = 0; i < atol(argv[2]); i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		sum += map[state % pages * 4096];
		if (pause_us)
			usleep(atoi(pause_us));
	}
	printf("%lu\n", sum);
	if (argc > 3) {
		puts("ready");
		fflush(stdout);
		pause();
	}
	return 0;
}
