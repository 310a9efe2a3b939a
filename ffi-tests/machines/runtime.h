/* What a test program without an operating system stands on: output, exit, and the four mem functions. */
#ifndef BARE_RUNTIME_H
#define BARE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* The program. Its result ends the run: 0 is good. */
int bare_main(void);

/* From now on an access that is not aligned ends the program, on machines that have such a switch. */
void bare_trap_unaligned(void);

void bare_print(const char *text);
void bare_print_number(uint64_t number);

#endif
