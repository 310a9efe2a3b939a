/*
 * Two files of an NFS export, open at once and read here and there, against what the same files are when they are fetched
 * whole.
 *
 *   nfs_files TAP OWN-IP SERVER-IP EXPORT FILE-A FILE-B tcp|udp
 */
#define _DEFAULT_SOURCE
#include "bootlace_sync.h"
#include "linux_nic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM  (8u << 20)
#define AHEAD 100000u
#define READS 400u

static uint8_t arena[LACE_STACK_SIZE_FULL] LACE_ALIGNED;
static uint8_t ahead[2][AHEAD + 64];
static uint8_t buffer[2][300000];

struct open_file {
	uint8_t *right;
	int64_t size;
	lace_file file;
	int64_t position;
	size_t asked;
};

static uint32_t state = 12345;

static uint32_t chance(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)state * n) >> 32);
}

static int fail(const char *what, int64_t code)
{
	printf("%s: %s (%lld)\n", what, code < 0 ? lace_strerror(code) : "wrong", (long long)code);
	return 1;
}

/* Chooses what comes next and begins to read it. */
static int begin(lace_stack *net, struct open_file *f, uint8_t *to)
{
	static const uint32_t lengths[] = { 1, 512, 4096, 4096, 70000, 300000 };
	int rc;

	if (chance(3)) {
		f->position = chance((uint32_t)f->size + 1000);
		rc = lace_file_seek(net, f->file, (uint64_t)f->position);
		if (rc)
			return fail("seek", rc);
	}
	f->asked = lengths[chance(6)];
	memset(to, 0xa5, f->asked < sizeof buffer[0] ? f->asked + 1 : f->asked);
	rc = lace_file_read_start(net, f->file, to, f->asked);
	return rc ? fail("read", rc) : 0;
}

static int end(lace_stack *net, struct open_file *f, const uint8_t *got)
{
	int64_t n = lace_file_wait(net, f->file), left = f->size - f->position;
	int64_t right = left < 0 ? 0 : left < (int64_t)f->asked ? left : (int64_t)f->asked;

	if (n != right)
		return fail("length", n);
	if (n && memcmp(got, f->right + f->position, (size_t)n))
		return fail("contents", n);
	if ((size_t)n < sizeof buffer[0] && got[n] != 0xa5)
		return fail("guard", n);
	f->position += n;
	if (lace_file_position(net, f->file) != f->position)
		return fail("position", f->position);
	return 0;
}

static int run(lace_stack *net, const struct lace_mount *mount, char **names)
{
	struct open_file files[2] = { { 0 } };
	struct lace_nfs_get get;
	struct lace_sink sink;

	for (int i = 0; i < 2; i++) {
		struct open_file *f = &files[i];

		lace_nfs_get_init(&get, sizeof get);
		get.mount = mount;
		get.path = names[i];
		f->right = malloc(ROOM);
		lace_sink_memory(&sink, sizeof sink, f->right, ROOM);
		f->size = lace_nfs_get(net, &get, &sink);
		if (f->size < 0)
			return fail(names[i], f->size);
		memset(ahead[i], 0x3c, sizeof ahead[i]);
		f->file = lace_nfs_open(net, &get, ahead[i] + 32, AHEAD);
		if (f->file < 0)
			return fail("open", f->file);
		if (lace_file_size(net, f->file) != f->size)
			return fail("size", lace_file_size(net, f->file));
	}
	for (unsigned n = 0; n < READS; n++)
		if (begin(net, &files[0], buffer[0]) || begin(net, &files[1], buffer[1]) || end(net, &files[1], buffer[1]) ||
		    end(net, &files[0], buffer[0]))
			return 1;
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 32; k++)
			if (ahead[i][k] != 0x3c || ahead[i][AHEAD + 32 + k] != 0x3c)
				return fail("neighbours of the memory for reading ahead", 0);
		if (lace_file_close(net, files[i].file))
			return fail("close", 0);
		if (lace_file_read(net, files[i].file, buffer[0], 1) != LACE_EBADF)
			return fail("a closed file", 0);
		free(files[i].right);
	}
	printf("%u reads of two files\n", 2 * READS);
	return 0;
}

int main(int argc, char **argv)
{
	struct linux_nic_options options = { .kind = LINUX_NIC_TAP };
	struct lace_config config;
	struct lace_mount mount;
	struct lace_host host;
	struct linux_nic *card;
	struct lace_nfs nfs;
	struct lace_ip own;
	lace_nic_id nic;
	lace_stack *net;
	int64_t rc;

	if (argc != 8)
		return 2;
	options.name = argv[1];
	card = linux_nic_open(&options);
	if (!card)
		return 1;
	lace_config_full(&config, sizeof config);
	linux_nic_host(card, &host);
	rc = lace_stack_init(arena, sizeof arena, &config, &host, &net);
	if (rc < 0)
		return fail("stack", rc);
	nic = linux_nic_add(card, net, 0);
	if (nic < 0 || lace_ip_parse(argv[2], &own) || lace_addr_add(net, nic, &own, 24))
		return fail("address", nic);
	lace_nfs_init(&nfs, sizeof nfs);
	nfs.server.name = argv[3];
	nfs.path = argv[4];
	nfs.transport = strcmp(argv[7], "tcp") ? LACE_NFS_UDP : LACE_NFS_TCP;
	lace_mount_init(&mount, sizeof mount);
	rc = lace_nfs_mount(net, &nfs, &mount);
	if (rc < 0)
		return fail("mount", rc);
	rc = run(net, &mount, argv + 5);
	if (lace_stack_stop(net) < 0)
		return fail("stop", 0);
	linux_nic_close(card);
	return (int)rc;
}
