/*
 * NFS: an export is mounted, a file looked up and read by UDP into memory at odd addresses, in READs of one frame and of many
 * fragments, last one first, and with losses; against a server made of arithmetic. Received frames lie at every alignment.
 */
#define HOST_SEED 777
#include "host.h"
#include "nfs_server.h"

#define FILE_SIZE 300007

static uint8_t arena[65536] LACE_ALIGNED;
static uint8_t memory[FILE_SIZE + 16];
static struct peer peer;

static int64_t fetch(struct lace_stack *net, const struct lace_mount *mount, const char *path, unsigned at, uint32_t read_size)
{
	struct lace_nfs_get get;
	struct lace_sink sink;
	int64_t n;
	uint32_t wrong = 0;

	for (unsigned i = 0; i < sizeof memory; i++)
		memory[i] = 0xa5;
	lace_nfs_get_init(&get, sizeof get);
	get.mount = mount;
	get.path = path;
	get.read_size = read_size;
	lace_sink_memory(&sink, sizeof sink, memory + at, FILE_SIZE);
	n = finish(net, lace_nfs_get_start(net, &get, &sink));
	if (n != FILE_SIZE)
		return n;
	for (uint32_t i = 0; i < sizeof memory; i++)
		wrong += memory[i] != (i < at || i >= at + FILE_SIZE ? 0xa5 : peer_byte(i - at));
	expect(wrong == 0, "contents", wrong);
	return n;
}

int bare_main(void)
{
	static const uint32_t sizes[] = { 1024, 1400, 8192, 32768, 0 };
	struct lace_config config;
	struct lace_host host;
	struct lace_nic nic;
	struct lace_nfs nfs;
	struct lace_mount mount;
	struct lace_stack *net = NULL;
	struct lace_ip ip;
	lace_op op;
	int64_t n;
	int eth;

	peer_init(&peer, FILE_SIZE);
	peer.udp = nfs_server;
	lace_config_init(&config, sizeof config);
	config.nfs_jobs = 1;
	config.reassembly_slots = 8;
	lace_host_init(&host, sizeof host);
	host.now_us = now_us;
	host.random = random_bits;
	host.idle = idle;
	n = lace_stack_init(arena, sizeof arena, &config, &host, &net);
	expect(n == 0, "stack", n);
	if (n)
		return 1;
	lace_nic_init(&nic, sizeof nic);
	nic.ctx = &peer;
	nic.send = peer_nic_send;
	nic.recv = peer_nic_recv;
	nic.release = nic_release;
	nic.mac[0] = 0x52;
	nic.mac[5] = 1;
	eth = lace_nic_add(net, &nic);
	lace_ip_v4(&ip, 10, 0, 2, 15);
	n = lace_addr_add(net, eth, &ip, 24);
	expect(eth > 0 && n == 0, "nic", eth);

	lace_nfs_init(&nfs, sizeof nfs);
	lace_mount_init(&mount, sizeof mount);
	nfs.transport = LACE_NFS_UDP;
	lace_ip_v4(&nfs.server.ip, 10, 0, 2, 2);
	nfs.path = "/other";
	n = finish(net, lace_nfs_mount_start(net, &nfs));
	expect(n == LACE_ENOENT, "mount of what is not there", n);
	nfs.path = "/export";
	op = lace_nfs_mount_start(net, &nfs);
	n = lace_op_wait(net, op);
	expect(n == 0, "mount", n);
	n = lace_nfs_mount_result(net, op, &mount);
	expect(n == 0 && mount.nfs_port == 2049, "result of the mount", n);
	lace_op_close(net, op);

	n = finish(net, lace_nfs_getattr_start(net, &mount, "boot/kernel", 1, NULL, NULL));
	expect(n == FILE_SIZE, "attributes", n);
	n = fetch(net, &mount, "boot/none", 1, 0);
	expect(n == LACE_ENOENT, "a file that is not there", n);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		n = fetch(net, &mount, "boot/kernel", 1 + i, sizes[i]);
		expect(n == FILE_SIZE, "file", n);
	}
	expect(peer.fragments > FILE_SIZE / 1480, "fragments", peer.fragments);
	peer.lose = 9;
	n = fetch(net, &mount, "boot/kernel", 7, 8192);
	expect(n == FILE_SIZE && peer.lost > 3, "file with losses", n);
	peer.lose = 0;
	n = finish(net, lace_nfs_unmount_start(net, &nfs));
	expect(n == 0, "unmount", n);
	expect(lace_stack_stop(net) == 0, "stop", 0);
	if (!failures)
		bare_print("ok\n");
	return failures != 0;
}
