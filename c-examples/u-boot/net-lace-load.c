// SPDX-License-Identifier: MIT OR Apache-2.0
/* Files for U-Boot over Bootlace: tftpboot, tftpput, nfs. What they may write to is settled before the first byte is asked for. */
#include "net-lace.h"

#include <display_options.h>
#include <efi_loader.h>
#include <env.h>
#include <errno.h>
#include <image.h>
#include <lmb.h>
#include <mapmem.h>
#include <time.h>
#include <vsprintf.h>
#include <asm/global_data.h>
#include <linux/math64.h>
#include <net/tftp.h>

DECLARE_GLOBAL_DATA_PTR;

#define HASHES_PER_LINE 65
/* Hashes of a file whose size is known, and bytes of one of a file whose size is not: ten blocks of 1468. */
#define HASHES 50
#define HASH_BYTES 14680
#define NAME_MAX_LEN 450
#define CLOSING_MS 10

/* update_tftp() (common/update.c) sets them for a while. */
ulong tftp_timeout_ms = 5000;
int tftp_timeout_count_max = 10;

void lace_show_progress(void *ctx, lace_op op, uint64_t done, uint64_t total)
{
	struct lace_show *show = ctx;
	u32 want = total ? div64_u64(done * HASHES, total) : div_u64(done, HASH_BYTES);

	show->total = total;
	for (; !show->quiet && show->hashes < want; show->hashes++) {
		if (!total && show->hashes && !(show->hashes % HASHES_PER_LINE))
			puts("\n\t ");
		putc('#');
	}
}

void lace_show_start(struct lace_show *show, const char *how)
{
	show->start = get_timer(0);
	if (!show->quiet)
		printf("%s: *\b", how);
}

static void show_end(struct lace_show *show, u32 size)
{
	ulong ms = get_timer(show->start);

	if (show->quiet)
		return;
	if (show->total) {
		for (; show->hashes < HASHES; show->hashes++)
			putc('#');
		puts("  ");
		print_size(size, "");
	}
	if (ms) {
		puts("\n\t ");
		print_size(div_u64((u64)size * 1000, ms), "/s");
	}
	puts("\ndone\n");
}

/* Bytes from `addr` on that may be written: up to what is reserved, or to the end of the memory `addr` is in. */
static u64 writable(ulong addr)
{
#if !CONFIG_IS_ENABLED(LMB)
	return U32_MAX;
#elif LACE_NEW_TREE
	const struct lmb *lmb = lmb_get();
	const struct lmb_region *r;
	u64 room = 0;

	alist_for_each(r, &lmb->available_mem)
		if (addr >= r->base && addr - r->base < r->size)
			room = r->size - (addr - r->base);
	/* What a file was loaded to before may be loaded to again. */
	alist_for_each(r, &lmb->used_mem) {
		if (r->flags == LMB_NONE || r->base + r->size - 1 < addr)
			continue;
		room = r->base <= addr ? 0 : min(room, (u64)(r->base - addr));
	}
	return room;
#else
	struct lmb lmb;

	lmb_init_and_reserve(&lmb, gd->bd, (void *)gd->fdt_blob);
	return lmb_get_free_size(&lmb, addr);
#endif
}

/* Memory at address 0 is a NULL pointer to the library, but on some boards the beginning of RAM. */
static int64_t write_low(void *ctx, uint64_t offset, const void *data, uint32_t len)
{
	u64 *room = ctx;

	if (offset + len > *room)
		return LACE_EFBIG;
	memcpy(map_sysmem(image_load_addr + offset, len), data, len);
	return len;
}

static int64_t read_low(void *ctx, uint64_t offset, void *buffer, uint32_t len)
{
	u64 left = offset < image_save_size ? image_save_size - offset : 0;

	len = min(left, (u64)len);
	memcpy(buffer, map_sysmem(image_save_addr + offset, len), len);
	return len;
}

/* The memory at image_load_addr, as a sink that ends where something begins that must stay. */
int lace_place(struct lace_sink *sink, u64 *room, bool own, u64 most)
{
	u8 *to;

	*room = min(own ? most : writable(image_load_addr), most);
	if (!*room) {
		puts("\nerror: trying to overwrite reserved memory...\n");
		return -EACCES;
	}
	if (!own)
		printf("Load address: 0x%lx\n", image_load_addr);
	to = map_sysmem(image_load_addr, *room);
	if (!to)
		return lace_sink_write(sink, sizeof(*sink), write_low, room);
	/* The stack's own memory lies where U-Boot's does, above everything that is loaded. */
	if ((ulong)lace > (ulong)to)
		*room = min(*room, (u64)((ulong)lace - (ulong)to));
	*room = min(*room, (u64)(ULONG_MAX - (ulong)to));
	return lace_sink_memory(sink, sizeof(*sink), to, *room);
}

static void show_way(struct in_addr server, const char *name)
{
	u32 mask = net_netmask.s_addr;

	if (mask && (net_ip.s_addr & mask) != (server.s_addr & mask)) {
		if (net_gateway.s_addr)
			printf("; sending through gateway %pI4", &net_gateway);
		else
			puts("\n## Warning: gatewayip needed but not set");
	}
	printf("\nFilename '%s'.", name);
	if (net_boot_file_expected_size_in_blocks) {
		printf(" Size is 0x%x Bytes = ", net_boot_file_expected_size_in_blocks << 9);
		print_size(net_boot_file_expected_size_in_blocks << 9, "");
	}
	putc('\n');
}

/* Who has the file, and its name: of the command line or `bootfile`, else made of our address as `format` has it. */
static struct in_addr source(const char *variable, const char *format, char *name)
{
	struct in_addr server = lace_env_ip(variable);
	const u8 *b = (const u8 *)&net_ip.s_addr;

	if (!server.s_addr)
		server = net_server_ip;
	if (!net_parse_bootfile(&server, name, NAME_MAX_LEN)) {
		snprintf(name, NAME_MAX_LEN, format, b[0], b[1], b[2], b[3]);
		printf("*** Warning: no boot file name; using '%s'\n", name);
	}
	return server;
}

/* The end of every load: what became of it is told to the user, to EFI and to whoever reserves memory. */
int lace_loaded(const char *what, int64_t result, const struct lace_detail *detail, struct lace_show *show,
		const char *device, const char *name)
{
	if (result == LACE_EFBIG && !show->quiet)
		printf("\n%s error: trying to overwrite reserved memory...\n", what);
	else if (result < 0 && !show->quiet)
		lace_explain(what, result, detail);
	if (result < 0)
		return result;
	net_boot_file_size = result;
	show_end(show, result);
#if LACE_NEW_TREE && CONFIG_IS_ENABLED(LMB)
	if (result && device)
		lmb_read_check(image_load_addr, result);
#endif
	if (device)
		efi_set_bootdev(device, "", name, map_sysmem(image_load_addr, 0), result);
	return 0;
}

/* A number of the environment between two bounds; `none` if it is not set. */
static ulong number(const char *name, ulong none, ulong least, ulong most)
{
	if (!IS_ENABLED(CONFIG_NET_TFTP_VARS) || !env_get(name))
		return none;
	return clamp(env_get_ulong(name, 10, none), least, most);
}

/* Both structs begin alike in what the environment sets; block size and window not set: the best that works. */
#define BY_ENVIRONMENT(x) do { \
	lace_server(&(x)->server, server, env_get_ulong("tftpdstp", 10, 69)); \
	(x)->local_port = env_get_ulong("tftpsrcp", 10, 0); \
	(x)->path = name; \
	(x)->blksize = number("tftpblocksize", 0, 8, 65464); \
	(x)->windowsize = number("tftpwindowsize", 0, 1, 32767); \
	(x)->timeout_ms = number("tftptimeout", clamp(tftp_timeout_ms, 1000UL, 255000UL), 1000, 255000); \
	(x)->retries = number("tftptimeoutcountmax", clamp(tftp_timeout_count_max, 0, 254), 0, 254) + 1; \
	(x)->progress = lace_show_progress; \
	(x)->ctx = &show; \
} while (0)

static struct in_addr tftp_begin(const char *direction, char *name)
{
	struct in_addr server = source("tftpserverip", "%02X%02X%02X%02X.img", name);

	printf("Using %s device\nTFTP %s server %pI4; our IP address is %pI4", eth_get_name(), direction, &server, &net_ip);
	show_way(server, name);
	return server;
}

int lace_tftp_load(void)
{
	struct lace_show show = { 0 };
	struct in_addr server;
	struct lace_detail detail;
	struct lace_tftp_get get;
	struct lace_sink sink;
	char name[NAME_MAX_LEN];
	u64 room;
	int rc;

	server = tftp_begin("from", name);
	rc = lace_place(&sink, &room, false, U32_MAX);
	if (rc)
		return rc;
	lace_tftp_get_init(&get, sizeof(get));
	BY_ENVIRONMENT(&get);
	lace_detail_init(&detail, sizeof(detail));
	lace_show_start(&show, "Loading");
	return lace_loaded("TFTP", lace_finish(lace_tftp_get_start(lace, &get, &sink), &detail), &detail, &show, "Net", name);
}

int lace_tftp_save(void)
{
	struct lace_show show = { 0 };
	struct in_addr server;
	struct lace_detail detail;
	struct lace_source from;
	struct lace_tftp_put put;
	char name[NAME_MAX_LEN];
	void *memory;

	server = tftp_begin("to", name);
	printf("Save address: 0x%lx\nSave size:    0x%lx\n", image_save_addr, image_save_size);
	memory = map_sysmem(image_save_addr, image_save_size);
	if (memory)
		lace_source_memory(&from, sizeof(from), memory, image_save_size);
	else
		lace_source_read(&from, sizeof(from), read_low, NULL);
	lace_tftp_put_init(&put, sizeof(put));
	BY_ENVIRONMENT(&put);
	put.len = image_save_size;
	lace_detail_init(&detail, sizeof(detail));
	lace_show_start(&show, "Saving");
	return lace_loaded("TFTP", lace_finish(lace_tftp_put_start(lace, &put, &from), &detail), &detail, &show, NULL, name);
}

/* The folder is what is mounted, as U-Boot has always done: servers export it or a folder above it. */
int lace_nfs_load(void)
{
	struct lace_show show = { 0 };
	struct in_addr server;
	struct lace_detail detail;
	struct lace_nfs_get get;
	struct lace_mount mount;
	struct lace_sink sink;
	struct lace_nfs nfs;
	char name[NAME_MAX_LEN], folder[NAME_MAX_LEN], *file;
	int64_t result;
	ulong closing;
	u64 room;
	int rc;

	server = source("nfsserverip", "/nfsroot/%02X%02X%02X%02X.img", name);
	printf("Using %s device\nFile transfer via NFS from server %pI4; our IP address is %pI4", eth_get_name(), &server,
	       &net_ip);
	show_way(server, name);
	rc = lace_place(&sink, &room, false, U32_MAX);
	if (rc)
		return rc;
	strcpy(folder, name);
	file = strrchr(name, '/');
	if (file)
		folder[file == name ? 1 : file - name] = '\0';
	else
		strcpy(folder, "/");
	lace_nfs_init(&nfs, sizeof(nfs));
	lace_server(&nfs.server, server, 0);
	nfs.path = folder;
	lace_mount_init(&mount, sizeof(mount));
	lace_detail_init(&detail, sizeof(detail));
	lace_show_start(&show, "Loading");
	result = lace_nfs_mount(lace, &nfs, &mount);
	if (result < 0)
		return lace_loaded("*** ERROR: Cannot mount: NFS", result, &detail, &show, NULL, name);
	lace_nfs_get_init(&get, sizeof(get));
	get.mount = &mount;
	get.path = file ? file + 1 : name;
	get.progress = lace_show_progress;
	get.ctx = &show;
	result = lace_finish(lace_nfs_get_start(lace, &get, &sink), &detail);
	lace_nfs_unmount(lace, &nfs);
	rc = lace_loaded("NFS", result, &detail, &show, "Net", name);
	/* Connections end in good order: with the card off, nobody would hear the server's last words. */
	for (closing = get_timer(0); get_timer(closing) < CLOSING_MS;)
		lace_poll(lace, 32);
	return rc;
}
