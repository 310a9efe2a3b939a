/*
 * What barebox has of types and services, as far as the port's glue uses it: our own declarations of the same names and
 * meanings, so that the glue compiles and runs without barebox's tree. barebox.c is what they do; net.h is the network's part.
 */
#ifndef HOST_H
#define HOST_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef uint32_t IPaddr_t;

/* ---- lists ---- */

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD(name) struct list_head name = { &(name), &(name) }
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define list_entry_of(pointer, like, member) container_of(pointer, __typeof__(*(like)), member)
#define list_for_each_entry(at, head, member) \
	for (at = list_entry_of((head)->next, at, member); &at->member != (head); \
	     at = list_entry_of(at->member.next, at, member))
#define list_for_each_entry_safe(at, then, head, member) \
	for (at = list_entry_of((head)->next, at, member), then = list_entry_of(at->member.next, at, member); \
	     &at->member != (head); at = then, then = list_entry_of(then->member.next, then, member))

static inline void list_add_tail(struct list_head *item, struct list_head *head)
{
	item->prev = head->prev;
	item->next = head;
	head->prev->next = item;
	head->prev = item;
}

static inline void list_del(struct list_head *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	item->next = item->prev = NULL;
}

/* ---- language ---- */

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define ARRAY_AND_SIZE(array) (array), sizeof(array)
#define IS_ENABLED(option) (option)
#define CONFIG_NET_ETHADDR_FROM_MACHINE_ID 1
#define EXPORT_SYMBOL(symbol) extern int host_exports_##symbol
#define BAREBOX_MAGICVAR(name, text) extern int host_has_magic_variables
#define postcore_initcall(function) int (*const host_postcore_initcall)(void) = function
#define device_initcall(function) int (*const host_device_initcall)(void) = function
extern int (*const host_postcore_initcall)(void);
extern int (*const host_device_initcall)(void);

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define htons(x) __builtin_bswap16(x)
#define htonl(x) __builtin_bswap32(x)
#else
#define htons(x) ((u16)(x))
#define htonl(x) ((u32)(x))
#endif
#define ntohs(x) htons(x)
#define ntohl(x) htonl(x)

/* Errors as pointers: the last page of the address space is never an object's. */
#define MAX_ERRNO 4095
static inline void *ERR_PTR(long error)
{
	return (void *)error;
}

static inline long PTR_ERR(const void *pointer)
{
	return (long)pointer;
}

static inline bool IS_ERR(const void *pointer)
{
	return (uintptr_t)pointer >= (uintptr_t)-MAX_ERRNO;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

/* ---- memory: counted ---- */

void *host_alloc(size_t size, size_t align);
void host_free(void *block);
char *xasprintf(const char *format, const void *ip);
char *host_strdup(const char *text);

#define xzalloc(size) host_alloc(size, 16)
#define memalign(align, size) host_alloc(size, align)
#define dma_alloc(size) host_alloc(size, 64)
#define dma_free(block) host_free(block)
#define xstrdup(text) host_strdup(text)
#define free(block) host_free(block)

/* ---- clock, pollers, keyboard ---- */

#define MSECOND ((u64)1000000)
#define SECOND (1000 * MSECOND)

u64 get_time_ns(void);
/* A timeout of 100 us or more runs every poller, and so does ctrlc. */
int is_timeout(u64 start, u64 length);
int is_timeout_non_interruptible(u64 start, u64 length);
int ctrlc(void);

struct poller_struct {
	void (*func)(struct poller_struct *poller);
	struct list_head list;
};

int poller_register(struct poller_struct *poller, const char *name);

/* ---- chance, identity, variables, messages ---- */

typedef struct {
	u8 b[16];
} uuid_t;

enum led_trigger { LED_TRIGGER_NET_RX, LED_TRIGGER_NET_TX };

#define setenv(name, text) host_setenv(name, text)
int host_setenv(const char *name, const char *text);
int get_crypto_bytes(void *buffer, int len);
void get_noncrypto_bytes(void *buffer, size_t len);
void clocksource_srand(void);
struct hwrng *hwrng_get_first(void);
const char *barebox_get_hostname(void);
int machine_id_get_app_specific(uuid_t *id, ...);
int globalvar_add_simple_ip(const char *name, IPaddr_t *ip);
int globalvar_add_simple_string(const char *name, char **text);
void led_trigger_network(enum led_trigger trigger);
void host_say(const char *format, ...);

#define pr_err(...) host_say(__VA_ARGS__)
#define dev_warn(device, ...) ((void)(device), host_say(__VA_ARGS__))

#endif
