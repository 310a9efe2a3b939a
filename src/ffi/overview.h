/*
 * Bootlace: a network stack for code that runs before, or without, an operating system.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Made from src/ffi by `make header`: change it there.
 */
#ifndef BOOTLACE_H
#define BOOTLACE_H

#include "bootlace_port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------
 * Overview
 *
 * Give the library a block of memory, a clock and a network card; it gives back files:
 *
 *     static uint8_t arena[LACE_STACK_SIZE_TFTP] LACE_ALIGNED;
 *     struct lace_config cfg;
 *     struct lace_host host;
 *     struct lace_nic nic;
 *     lace_stack *net;
 *
 *     lace_config_init(&cfg, sizeof cfg);
 *     lace_host_init(&host, sizeof host);
 *     host.now_us = board_now_us;
 *     host.random = board_random;
 *     host.poll = board_poll;
 *     rc = lace_stack_init(arena, sizeof arena, &cfg, &host, &net);
 *
 *     lace_nic_init(&nic, sizeof nic);
 *     nic.ctx = mac;
 *     nic.send = mac_send;
 *     nic.recv = mac_recv;
 *     nic.release = mac_release;
 *     memcpy(nic.mac, mac->addr, 6);
 *     eth0 = lace_nic_add(net, &nic);
 *
 * Words with a fixed meaning, said of every pointer that crosses this interface:
 *
 *   borrowed for the call   the callee uses it until it returns, and keeps nothing of it
 *   lent until release      whoever got it uses it until it calls the function that gives it back
 *   owned                   whoever got it has it until it is said otherwise
 *
 * Rules that hold everywhere:
 *
 *   - A struct that begins with `size` is set up by its `lace_..._init(&x, sizeof x)` before anything else; a field that
 *     is then left alone has its default. Structs grow only at their end. A descriptor is copied by the call that it is given
 *     to; strings, memory and contexts that it names must live until the operation that was started ends, unless
 *     its text says otherwise.
 *   - A handle is a positive number. One that is stale, or names something of another kind, is LACE_EBADF.
 *   - NULL where a pointer is needed is LACE_EFAULT.
 *   - Callbacks take their context first. Each says whether it is mandatory, what it is (leaf or upcall, see "Host"), how long
 *     what it is given lives, and what its return means.
 */

/* A stack: see "Stack". */
typedef struct lace_stack lace_stack;

/*
 * Sizes of a block of memory that are enough for lace_config_init and lace_config_full, in bytes, for a pointer of 8 bytes
 * and a smaller one. lace_stack_size says exactly how many a configuration takes.
 */
#define LACE_STACK_SIZE_TFTP (sizeof(void *) > 4 ? 8960u : 8192u)
#define LACE_STACK_SIZE_FULL (sizeof(void *) > 4 ? 203776u : 199168u)
