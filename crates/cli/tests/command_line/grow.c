/* Maps and touches a file of 512 pages, makes it twice as long, and does the same with that. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

#define PAGE 4096UL

static int touch(int file, unsigned long pages, unsigned long page)
{
	const volatile unsigned char *map;
	int value;

	map = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, file, 0);
	if (map == MAP_FAILED)
		return -1;
	work();
	value = map[page * PAGE];
	munmap((void *)map, pages * PAGE);
	return value;
}

int main(int argc, char **argv)
{
	int file = argc == 2 ? open(argv[1], O_RDWR) : -1;
	int before, behind;

	if (file < 0 || ftruncate(file, 512 * PAGE))
		return 2;
	before = touch(file, 512, 7);
	/* Who looks at the size from outside does so after the mapping was made. */
	usleep(100000);
	if (pwrite(file, "x", 1, 1024 * PAGE - 1) != 1)
		return 2;
	behind = touch(file, 1024, 1023);
	printf("%d %d\n", before, behind);
	return 0;
}
