/* Reads a mapped file from its beginning to its end. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	struct stat stat;
	int file = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	unsigned long sum = 0;
	const volatile unsigned char *map;

	if (file < 0 || fstat(file, &stat))
		return 2;
	map = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, file, 0);
	if (map == MAP_FAILED)
		return 2;
	for (long at = 0; at < stat.st_size; at += 4096)
		sum += map[at];
	printf("%lu\n", sum);
	return 0;
}
