// SPDX-License-Identifier: MIT OR Apache-2.0
/* A U-Boot of one file: console, environment, clock, reserved memory and two Ethernet cards, in the test's hand. */
#include "board.h"

#include <stdarg.h>

#undef printf
#undef snprintf
#undef puts

u8 board_ram[RAM_SIZE], board_ack[2048];
char board_console[65536], board_bootdev[64];
u64 board_now, board_key_at;
ulong board_reserved;
struct udevice board_cards[2] = { { "eth0", { 2, 0, 0, 0, 0, 9 }, 0 }, { "eth1", { 2, 0, 0, 0, 0, 10 }, 1 } };
struct udevice *board_card = board_cards;
int board_running, board_inits, board_schedules, board_ack_len;
unsigned int board_sent;
void (*board_peer)(const u8 *frame, int len);

ulong image_load_addr, image_save_addr, image_save_size;
static struct global_data data;
struct global_data *gd = &data;
#ifdef CONFIG_NET_LEGACY
/* What net/net-common.c defines there. */
enum net_loop_state net_state;
struct in_addr net_ip;
char net_boot_file_name[1024];
u32 net_boot_file_size, net_boot_file_expected_size_in_blocks;
uchar *net_rx_packets[PKTBUFSRX];
struct wget_http_info *wget_info;
#endif

static struct { char name[32], value[256]; } env[32];
static struct { u8 bytes[1536]; int len; } ring[64];
static unsigned int head, tail;
static size_t console_len;

/* ---- console ---- */

static void say(const char *text)
{
	size_t n = strlen(text);

	if (console_len + n < sizeof(board_console)) {
		memcpy(board_console + console_len, text, n + 1);
		console_len += n;
	}
}

/* printf with "%pI4". */
static void format_to(char *to, size_t size, const char *format, va_list args)
{
	char one[32], *end = to + size - 1;

	while (*format && to < end) {
		const char *f = format;
		int n = 0;

		if (*f != '%') {
			*to++ = *format++;
			continue;
		}
		if (!strncmp(f, "%pI4", 4)) {
			const u8 *b = va_arg(args, const u8 *);

			n = snprintf(to, end - to + 1, "%d.%d.%d.%d", b[0], b[1], b[2], b[3]);
			format += 4;
		} else {
			f++;
			f += strspn(f, "0123456789.");
			int longs = strspn(f, "l");

			f += longs;
			memcpy(one, format, f + 1 - format);
			one[f + 1 - format] = 0;
			format = f + 1;
			if (*f == 's')
				n = snprintf(to, end - to + 1, one, va_arg(args, const char *));
			else if (longs)
				n = snprintf(to, end - to + 1, one, va_arg(args, long));
			else
				n = snprintf(to, end - to + 1, one, va_arg(args, int));
		}
		to += n < end - to ? n : end - to;
	}
	*to = 0;
}

int board_printf(const char *format, ...)
{
	char line[2048];
	va_list args;

	va_start(args, format);
	format_to(line, sizeof(line), format, args);
	va_end(args);
	say(line);
	return strlen(line);
}

int board_snprintf(char *to, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	format_to(to, size, format, args);
	va_end(args);
	return strlen(to);
}

int board_puts(const char *text)
{
	say(text);
	return 0;
}

int board_putc(int c)
{
	char text[2] = { (char)c, 0 };

	say(text);
	return c;
}

void print_size(u64 size, const char *after)
{
	board_printf("%ld bytes%s", (long)size, after);
}

int ctrlc(void)
{
	return board_key_at && board_now >= board_key_at;
}

void schedule(void)
{
	board_schedules++;
}

/* ---- time: each look takes five microseconds ---- */

unsigned long timer_get_us(void)
{
	return board_now += 5;
}

ulong get_timer(ulong base)
{
	return timer_get_us() / 1000 - base;
}

u64 get_ticks(void)
{
	return board_now * 7;
}

void *memalign(size_t alignment, size_t size)
{
	return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

/* ---- environment ---- */

char *env_get(const char *name)
{
	for (unsigned int i = 0; i < 32; i++)
		if (!strcmp(env[i].name, name))
			return env[i].value;
	return NULL;
}

int env_set(const char *name, const char *value)
{
	unsigned int i, free_at = 32;

	for (i = 0; i < 32; i++) {
		if (!env[i].name[0] && free_at == 32)
			free_at = i;
		if (!strcmp(env[i].name, name))
			break;
	}
	if (i == 32)
		i = free_at;
	if (i == 32)
		return -ENOMEM;
	if (!value) {
		env[i].name[0] = 0;
		return 0;
	}
	snprintf(env[i].name, sizeof(env[i].name), "%s", name);
	snprintf(env[i].value, sizeof(env[i].value), "%s", value);
	return 0;
}

int env_set_hex(const char *name, ulong value)
{
	char text[20];

	snprintf(text, sizeof(text), "%lx", value);
	return env_set(name, text);
}

ulong env_get_ulong(const char *name, int base, ulong none)
{
	return env_get(name) ? strtoul(env_get(name), NULL, base) : none;
}

int env_get_yesno(const char *name)
{
	const char *value = env_get(name);

	return value ? strchr("1yYtT", *value) != NULL : -1;
}

ulong simple_strtoul(const char *text, char **end, unsigned int base)
{
	return strtoul(text, end, base);
}

ulong dectoul(const char *text, char **end)
{
	return strtoul(text, end, 10);
}

struct in_addr string_to_ip(const char *text)
{
	struct in_addr ip = { 0 };
	unsigned int a, b, c, d;

	if (text && sscanf(text, "%u.%u.%u.%u", &a, &b, &c, &d) == 4 && a < 256 && b < 256 && c < 256 && d < 256)
		ip.s_addr = htonl(a << 24 | b << 16 | c << 8 | d);
	return ip;
}

#ifdef CONFIG_NET_LEGACY
void copy_filename(char *to, const char *from, int size)
{
	snprintf(to, size, "%s", from);
}

void ip_to_string(struct in_addr ip, char *text)
{
	board_snprintf(text, 16, "%pI4", &ip);
}
#endif

/* ---- memory ---- */

void *map_sysmem(phys_addr_t address, unsigned long len)
{
	(void)len;
	return board_ram + address;
}

#ifdef CONFIG_NET_LEGACY
static struct lmb_region ram = { 0, RAM_SIZE, 0 }, used[2];
static struct lmb lmb = { { &ram, 1 }, { used, 2 } };

/* One region that must stay, and one that a file was loaded to. */
struct lmb *lmb_get(void)
{
	used[0] = (struct lmb_region){ 0, 0x1000, LMB_NONE };
	used[1] = (struct lmb_region){ board_reserved, RAM_SIZE - board_reserved, LMB_NOOVERWRITE };
	return &lmb;
}

int lmb_read_check(phys_addr_t address, phys_size_t len)
{
	return address + len > board_reserved ? -EINVAL : 0;
}

void net_sntp_set_rtc(u32 seconds)
{
	board_printf("rtc %d\n", (int)seconds);
}
#else
void lmb_init_and_reserve(struct lmb *lmb, void *bd, void *fdt)
{
	(void)lmb, (void)bd, (void)fdt;
}

phys_size_t lmb_get_free_size(struct lmb *lmb, phys_addr_t address)
{
	(void)lmb;
	return address < board_reserved ? board_reserved - address : 0;
}

int dm_rtc_set(struct udevice *device, struct rtc_time *time)
{
	(void)device;
	board_printf("rtc %d\n", time->tm_sec);
	return 0;
}

void rtc_to_tm(u64 seconds, struct rtc_time *time)
{
	memset(time, 0, sizeof(*time));
	time->tm_sec = (int)seconds;
}

int uclass_get_device(int uclass, int index, struct udevice **device)
{
	(void)uclass, (void)index;
	*device = board_cards;
	return 0;
}
#endif

void efi_set_bootdev(const char *device, const char *number, const char *path, void *buffer, size_t size)
{
	(void)number, (void)buffer;
	snprintf(board_bootdev, sizeof(board_bootdev), "%s %s %zu", device, path, size);
}

void efi_net_set_dhcp_ack(void *packet, int len)
{
	board_ack_len = len < (int)sizeof(board_ack) ? len : (int)sizeof(board_ack);
	memcpy(board_ack, packet, board_ack_len);
}

/* ---- Ethernet ---- */

struct udevice *eth_get_dev(void)
{
	return board_card;
}

unsigned char *eth_get_ethaddr(void)
{
	return board_card->mac;
}

const char *eth_get_name(void)
{
	return board_card->name;
}

int eth_get_dev_index(void)
{
	return board_card->index;
}

int eth_init(void)
{
	board_inits++;
	board_running = 1;
	return 0;
}

void eth_halt(void)
{
	board_running = 0;
	head = tail = 0;
}

void eth_set_current(void)
{
}

/* The next card; the last one is followed by the first, which is said in net_restart_wrap. */
void eth_try_another(int first)
{
	(void)first;
	board_card = board_card == board_cards ? board_cards + 1 : board_cards;
	net_restart_wrap = board_card == board_cards;
}

int eth_send(void *packet, int len)
{
	if (!board_running)
		return -EINVAL;
	board_sent++;
	if (board_peer)
		board_peer(packet, len);
	return 0;
}

void board_receive(const u8 *frame, int len)
{
	if (board_running && head - tail < 64 && len <= 1536) {
		memcpy(ring[head % 64].bytes, frame, len);
		ring[head++ % 64].len = len;
	}
}

/* At most four frames at a time: the ring of net_rx_packets. A look at an empty one takes a tenth of a millisecond. */
int eth_rx(void)
{
	if (tail == head)
		board_now += 100;
	for (int i = 0; i < PKTBUFSRX && tail != head; i++, tail++)
		net_process_received_packet(ring[tail % 64].bytes, ring[tail % 64].len);
	return 0;
}

void board_reset(void)
{
	console_len = 0;
	board_console[0] = board_bootdev[0] = 0;
	memset(board_ram, 0xa5, sizeof(board_ram));
	memset(env, 0, sizeof(env));
	board_key_at = 0;
	board_sent = 0;
	board_inits = 0;
	board_ack_len = 0;
	board_reserved = 0x300000;
	board_card = board_cards;
	image_load_addr = 0x100000;
}
