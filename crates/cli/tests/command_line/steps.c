/* Does to a mapped file of 8192 pages what a recording has to tell, one thing after the other. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define PAGE 4096UL
#define PAGES 8192UL

static volatile unsigned char *map;
static unsigned long sum;

static void touch(unsigned long page)
{
	sum += map[page * PAGE];
}

static void *in_thread(void *unused)
{
	touch(4000);
	return unused;
}

int main(int argc, char **argv)
{
	static char buffer[2 * PAGE];
	int file = open(argv[1], O_RDONLY), copy, status, ends[2];
	pthread_t thread;

	/* Before anything of the file is read or mapped. */
	if (argc != 2 || file < 0 || posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM))
		return 2;
	readahead(file, 64 * PAGE, 2 * PAGE);
	if (pread(file, buffer, PAGE, 3 * PAGE) != PAGE)
		return 2;
	copy = dup2(file, 100);
	map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, copy, 0);
	if (map == MAP_FAILED)
		return 2;
	work();
	touch(5);
	touch(900);
	touch(901);
	touch(5);
	/* What this would bring is touched below all the same. */
	madvise((void *)(map + 100 * PAGE), 100 * PAGE, MADV_WILLNEED);
	touch(150);
	lseek(file, 7 * PAGE, SEEK_SET);
	if (read(file, buffer, 2 * PAGE) != 2 * PAGE)
		return 2;
	posix_fadvise(file, 0, 64 * PAGE, POSIX_FADV_SEQUENTIAL);
	munmap((void *)map, 16 * PAGE);
	touch(20);
	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	/* The kernel comes to these pages itself. */
	if (pipe(ends) || write(ends[1], (void *)(map + 5000 * PAGE), 3 * PAGE) != 3 * PAGE)
		return 2;
	if (fork() == 0) {
		touch(7000);
		touch(7001);
		_exit(sum & 1);
	}
	wait(&status);
	touch(7100);
	map = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 1024 * PAGE);
	work();
	map[PAGE] = 1;
	touch(2);
	close(file);
	printf("%lu %d\n", sum, status);
	return 0;
}
