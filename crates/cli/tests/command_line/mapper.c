/*
 * Maps a file in functions whose names and lines a test knows, by itself, in a library, or in the
 * child of a fork, and touches some pages of it. With -DLIBRARY it is that library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096UL
#define PAGES 8192UL

#define KEPT __attribute__((noinline, noclone))

#ifdef LIBRARY
KEPT void *map_in_library(int file)
{
	void *map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, file, 0); /* in the library */

	if (map == MAP_FAILED)
		abort();
	return map;
}
#else
static unsigned long sum;
static int the_file;

KEPT static void *map_it(int file)
{
	void *map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, file, 0); /* by itself */

	if (map == MAP_FAILED)
		abort();
	return map;
}

KEPT static void *open_data(const char *path)
{
	void *map;

	the_file = open(path, O_RDONLY);
	map = map_it(the_file); /* the caller */
	sum += 1;
	return map;
}

KEPT static void touch(volatile unsigned char *map, unsigned long first)
{
	for (unsigned long at = 0; at < 40; at++)
		sum += map[(first + at * 7919) % PAGES * PAGE];
}

static void in_handler(int signal)
{
	touch(map_it(the_file), 3);
	sum += signal;
}

KEPT static void on_other_stack(void)
{
	static char memory[65536];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction action = { .sa_handler = in_handler, .sa_flags = SA_ONSTACK };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	void *map;

	if (strcmp(how, "library") == 0) {
		void *library = dlopen(argv[3], RTLD_NOW);
		void *(*function)(int) = library ? (void *(*)(int))dlsym(library, "map_in_library") : NULL;

		if (!function)
			return 1;
		map = function(open(argv[1], O_RDONLY)); /* from main */
		touch(map, 0);
	} else if (strcmp(how, "fork") == 0) {
		int status;

		the_file = open(argv[1], O_RDONLY);
		if (fork() == 0) {
			touch(map_it(the_file), 0);
			exit(0);
		}
		wait(&status);
	} else if (strcmp(how, "inherited") == 0) {
		int status;

		map = open_data(argv[1]);
		if (fork() == 0) {
			touch(map, 0);
			exit(0);
		}
		wait(&status);
	} else if (strcmp(how, "vfork") == 0) {
		int status;

		map = open_data(argv[1]);
		if (vfork() == 0) {
			map_it(the_file);
			_exit(0);
		}
		wait(&status);
		touch(map, 0);
	} else if (strcmp(how, "signal") == 0) {
		the_file = open(argv[1], O_RDONLY);
		on_other_stack();
	} else {
		touch(open_data(argv[1]), 0);
	}
	printf("%lu\n", sum);
	return 0;
}
#endif
