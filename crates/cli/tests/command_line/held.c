/* held FILE MIB: holds MIB of anonymous memory, and reads FILE three times from the beginning. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char buffer[65536];
	size_t held = (size_t)atoi(argv[2]) << 20;
	char *memory = malloc(held);
	int file = open(argv[1], O_RDONLY);
	ssize_t length;

	if (argc != 3 || !memory || file < 0)
		return 1;
	usleep(100000);
	for (int scan = 0; scan < 3; scan++) {
		for (off_t at = 0; (length = pread(file, buffer, sizeof(buffer), at)) > 0; at += length)
			;
		/* Its memory grows between the first two scans. */
		if (scan == 0)
			memset(memory, 1, held);
		usleep(100000);
	}
	printf("%d\n", memory[held - 1]);
	return 0;
}
