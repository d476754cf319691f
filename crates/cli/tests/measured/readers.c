/* Reads pages of a mapped file at random: by four threads, by a process and its child, or from a
 * private mapping that it also writes to. Prints sums of what it has read. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, PAGES_EACH = 1500 };

static unsigned char *map;
static unsigned long pages;
static int is_private;

static unsigned long read_pages(unsigned long seed)
{
	unsigned long state = seed * 7919 + 88172645463325252UL, sum = 0;

	for (int i = 0; i < PAGES_EACH; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		unsigned char *page = map + state % pages * 4096;
		sum += *page;
		if (is_private && i % 3 == 0)
			*page = 1;
	}
	return sum;
}

static void *thread(void *seed)
{
	return (void *)read_pages((unsigned long)seed);
}

int main(int argc, char **argv)
{
	struct stat data;
	int file;

	if (argc < 3 || (file = open(argv[2], O_RDONLY)) < 0 || fstat(file, &data) < 0)
		return 2;
	pages = data.st_size / 4096;
	is_private = !strcmp(argv[1], "private");
	map = mmap(NULL, data.st_size, PROT_READ | (is_private ? PROT_WRITE : 0),
		   is_private ? MAP_PRIVATE : MAP_SHARED, file, 0);
	if (map == MAP_FAILED)
		return 2;
	if (!strcmp(argv[1], "threads")) {
		pthread_t threads[THREADS];
		for (unsigned long i = 0; i < THREADS; i++)
			if (pthread_create(&threads[i], NULL, thread, (void *)(i + 1)))
				return 2;
		for (int i = 0; i < THREADS; i++) {
			void *sum;
			pthread_join(threads[i], &sum);
			printf("%lu\n", (unsigned long)sum);
		}
		return 0;
	}
	printf("%lu\n", read_pages(1));
	if (!strcmp(argv[1], "fork")) {
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			printf("%lu\n", read_pages(2));
			return 0;
		}
		waitpid(child, NULL, 0);
	}
	return 0;
}
