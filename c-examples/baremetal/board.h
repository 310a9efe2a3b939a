/* qemu's board `virt` as this firmware needs it: console, clock, the way off, and where the virtio devices are. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __riscv
#define BOARD_NAME "riscv64"
#define VIRTIO_BASE 0x10001000u
#define VIRTIO_STRIDE 0x1000u
#define VIRTIO_SLOTS 8u
#elif defined(__aarch64__)
#define BOARD_NAME "aarch64"
#else
#define BOARD_NAME "armv7"
#endif
#ifndef VIRTIO_BASE
#define VIRTIO_BASE 0x0a000000u
#define VIRTIO_STRIDE 0x200u
#define VIRTIO_SLOTS 32u
#endif

/* From the linker script: where the image ends, and what of the RAM is free for a file. */
extern uint8_t board_load_start[], board_load_end[];

void board_print(const char *text);
void board_print_number(uint64_t number);
uint64_t board_now_us(void);
void board_off(void) __attribute__((noreturn));

#endif
