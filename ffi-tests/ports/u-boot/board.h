/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What U-Boot's port uses of U-Boot, declared anew: enough to compile the glue and to drive it. With CONFIG_NET_LEGACY it is
 * the tree of 2026, without it release 2023.01.
 */
#ifndef BOARD_H
#define BOARD_H

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8, uchar;
typedef uint16_t u16, ushort;
typedef uint32_t u32;
typedef uint64_t u64, phys_addr_t, phys_size_t;
typedef unsigned long ulong;
#define U32_MAX 0xffffffffu
#ifndef ENONET
#define ENONET 64
#endif

/* Configuration. */
#define CONFIG_CMD_BOOTP 1
#define CONFIG_CMD_DHCP 1
#define CONFIG_CMD_DNS 1
#define CONFIG_CMD_NFS 1
#define CONFIG_CMD_PING 1
#define CONFIG_CMD_SNTP 1
#define CONFIG_CMD_TFTPBOOT 1
#define CONFIG_CMD_TFTPPUT 1
#define CONFIG_CMD_WGET 1
#define CONFIG_EFI_LOADER 1
#define CONFIG_NETDEVICES 1
#define CONFIG_LMB 1
#define CONFIG_NET_TFTP_VARS 1
#define CONFIG_DM_RTC 1
#define CONFIG_BOOTP_MAX_ROOT_PATH_LEN 64
#define CONFIG_BOOTP_PXE_DHCP_OPTION 1
#define CONFIG_BOOTP_VCI_STRING "U-Boot.board"
#define IS_ENABLED(option) IS_SET(option)
#define IS_SET(x) IS_SET_(COMMA_##x)
#define IS_SET_(x) IS_SET__(x 1, 0)
#define IS_SET__(ignored, value, ...) value
#define COMMA_1 0,
#define CONFIG_IS_ENABLED(option) IS_ENABLED(CONFIG_##option)
#define __maybe_unused __attribute__((__unused__))

#define min(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define clamp(v, least, most) min((__typeof__(v))max(v, least), (__typeof__(v))(most))
#define div_u64(n, d) ((n) / (d))
#define div64_u64(n, d) ((n) / (d))

uint16_t ntohs(uint16_t), htons(uint16_t);
uint32_t ntohl(uint32_t), htonl(uint32_t);

/* Console: %pI4 is an address. */
int board_printf(const char *format, ...);
int board_snprintf(char *to, size_t size, const char *format, ...);
int board_puts(const char *text);
int board_putc(int c);
#define printf board_printf
#define snprintf board_snprintf
#define puts board_puts
#undef putc
#define putc board_putc
void print_size(u64 size, const char *after);
int ctrlc(void);
void schedule(void);

/* Time and chance. */
ulong get_timer(ulong base);
unsigned long timer_get_us(void);
u64 get_ticks(void);
int rand_r(unsigned int *seed);
void *memalign(size_t alignment, size_t size);

/* Environment. */
char *env_get(const char *name);
int env_set(const char *name, const char *value);
int env_set_hex(const char *name, ulong value);
ulong env_get_ulong(const char *name, int base, ulong none);
int env_get_yesno(const char *name);
ulong simple_strtoul(const char *text, char **end, unsigned int base);
ulong dectoul(const char *text, char **end);
enum env_op { env_op_create, env_op_delete, env_op_overwrite };
#define H_PROGRAMMATIC 1
#define U_BOOT_ENV_CALLBACK(name, function) int (*board_on_##name)(const char *, const char *, enum env_op, int) = function

/* Bootstage, EFI, memory. */
enum { BOOTSTAGE_ID_ETH_START, BOOTSTAGE_ID_BOOTP_START, BOOTSTAGE_ID_BOOTP_STOP };
#define bootstage_mark_name(id, name) ((void)(id))
void efi_set_bootdev(const char *device, const char *number, const char *path, void *buffer, size_t size);
void efi_net_set_dhcp_ack(void *packet, int len);
void *map_sysmem(phys_addr_t address, unsigned long len);
extern ulong image_load_addr, image_save_addr, image_save_size;
struct global_data { void *bd; const void *fdt_blob; };
extern struct global_data *gd;
#define DECLARE_GLOBAL_DATA_PTR extern struct global_data *gd

#ifdef CONFIG_NET_LEGACY
#define LMB_NONE 0
#define LMB_NOOVERWRITE 4
struct lmb_region { phys_addr_t base; phys_size_t size; u32 flags; };
struct alist { const struct lmb_region *data; int count; };
struct lmb { struct alist available_mem, used_mem; };
struct lmb *lmb_get(void);
int lmb_read_check(phys_addr_t address, phys_size_t len);
#define alist_for_each(r, list) for (r = (list)->data; r < (list)->data + (list)->count; r++)
#else
struct lmb { int unused; };
void lmb_init_and_reserve(struct lmb *lmb, void *bd, void *fdt);
phys_size_t lmb_get_free_size(struct lmb *lmb, phys_addr_t address);
#endif

/* RTC. */
struct rtc_time { int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year; };
struct udevice { const char *name; u8 mac[6]; int index; };
enum { UCLASS_RTC };
int uclass_get_device(int uclass, int index, struct udevice **device);
int dm_rtc_set(struct udevice *device, struct rtc_time *time);
void rtc_to_tm(u64 seconds, struct rtc_time *time);
void net_sntp_set_rtc(u32 seconds);

/* net.h */
#define ARP_HLEN 6
#define PKTSIZE 1522
#define PKTSIZE_ALIGN 1536
#define PKTALIGN 64
#define PKTBUFSRX 4
#define VLAN_NONE 4095
#define VLAN_IDMASK 0x0fff
#define SNTP_PACKET_LEN 48
#define NTP_VERSION 4
#define NTP_MODE_CLIENT 3
#define NTP_SERVICE_PORT 123
struct in_addr { u32 s_addr; };
enum proto_t { BOOTP, TFTPGET, DHCP, PING, DNS, NFS, TFTPPUT, UDP, WGET };
enum net_loop_state { NETLOOP_CONTINUE, NETLOOP_RESTART, NETLOOP_SUCCESS, NETLOOP_FAIL };
extern enum net_loop_state net_state;
static inline void net_set_state(enum net_loop_state state) { net_state = state; }
struct udp_ops { int (*prereq)(void *); int (*start)(void *); void *data; };

extern struct in_addr net_ip, net_netmask, net_gateway, net_dns_server, net_server_ip, net_ntp_server;
extern u8 net_ethaddr[6];
extern const u8 net_bcast_ethaddr[6];
extern uchar *net_tx_packet, *net_rx_packets[PKTBUFSRX];
extern int net_restart_wrap, net_ntp_time_offset;
extern ushort net_our_vlan;
extern char net_boot_file_name[1024], net_root_path[64], net_hostname[32], net_nis_domain[32];
extern bool net_boot_file_name_explicit;
extern u32 net_boot_file_size, net_boot_file_expected_size_in_blocks;
extern char *net_dns_resolve, *net_dns_env_var;
extern void (*push_packet)(void *, int);
struct in_addr string_to_ip(const char *text);
void copy_filename(char *to, const char *from, int size);
void ip_to_string(struct in_addr ip, char *text);
ushort string_to_vlan(const char *text);
int net_parse_bootfile(struct in_addr *ip, char *name, int size);
int is_serverip_in_cmd(void);
int net_init(void);
int net_loop(enum proto_t protocol);
int net_start_again(void);
void net_process_received_packet(uchar *packet, int len);
int udp_loop(struct udp_ops *ops);
int sntp_prereq(void *data), sntp_start(void *data);
static inline void eth_set_last_protocol(int protocol) { (void)protocol; }
static inline bool is_zero_ethaddr(const u8 *a) { return !(a[0] | a[1] | a[2] | a[3] | a[4] | a[5]); }

#ifdef CONFIG_NET_LEGACY
extern char *pxelinux_configfile;
enum wget_http_method { WGET_HTTP_METHOD_GET, WGET_HTTP_METHOD_HEAD };
struct wget_http_info {
	enum wget_http_method method;
	u32 status_code;
	ulong file_size, buffer_size;
	bool set_bootdev, check_buffer_size;
	u32 hdr_cont_len;
	char *headers;
	bool silent;
};
extern struct wget_http_info *wget_info;
int wget_do_request(ulong address, char *uri);
bool wget_validate_uri(char *uri);
#endif

/* The Ethernet uclass. */
struct udevice *eth_get_dev(void);
unsigned char *eth_get_ethaddr(void);
const char *eth_get_name(void);
int eth_get_dev_index(void);
int eth_init(void);
void eth_halt(void);
void eth_set_current(void);
void eth_try_another(int first);
int eth_send(void *packet, int len);
int eth_rx(void);

/* ---- the board itself, for the test ---- */

#define RAM_SIZE 0x400000
extern u8 board_ram[RAM_SIZE];
extern char board_console[65536];
extern u64 board_now;       /* microseconds */
extern u64 board_key_at;    /* when Ctrl-C is pressed */
extern ulong board_reserved; /* where reserved memory begins */
extern struct udevice board_cards[2], *board_card;
extern int board_running, board_inits, board_schedules;
extern char board_bootdev[64];
extern u8 board_ack[2048];
extern int board_ack_len;
extern unsigned int board_sent;
/* The far end of the cable: called for each frame sent. */
extern void (*board_peer)(const u8 *frame, int len);
void board_receive(const u8 *frame, int len);
void board_reset(void);

#endif
