/* Maps a file of 8192 pages as a whole (MAP_POPULATE), touches some of its pages, locks others. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define PAGES 8192UL

int main(int argc, char **argv)
{
	int file = open(argv[1], O_RDONLY);
	unsigned long sum = 0, page;
	volatile unsigned char *map;

	if (argc < 3 || file < 0)
		return 2;
	map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
	if (map == MAP_FAILED)
		return 2;
	/* At once: every page is mapped by now. */
	for (page = PAGES - 256; page < PAGES; page++)
		sum += map[page * PAGE];
	sum += map[77 * PAGE];
	if (!strcmp(argv[2], "lock") && mlock((void *)(map + 16 * PAGE), 32 * PAGE))
		return 2;
	sum += map[20 * PAGE];
	printf("%lu\n", sum);
	if (!strcmp(argv[2], "wait")) {
		puts("ready");
		fflush(stdout);
		pause();
	}
	return 0;
}
