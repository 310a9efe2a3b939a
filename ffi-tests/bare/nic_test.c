/*
 * Tests of the Linux card by itself, without a stack.
 *
 *   nic_test slirp PCAP         ask libslirp's gateway for its address by ARP, unprivileged
 *   nic_test tap|packet NAME PCAP  the same with the kernel at 10.77.0.1
 *   nic_test ring NAME          wait until 10 frames wait at the TAP, then count what a ring of 4 keeps
 */
#define _DEFAULT_SOURCE
#include "linux_nic.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void ask(struct linux_nic *nic, const uint8_t own[4], const uint8_t peer[4])
{
	uint8_t f[60] = { 0 };
	/* in three pieces, as a stack that gathers would */
	struct iovec pieces[3] = { { f, 14 }, { f + 14, 28 }, { f + 42, 18 } };

	memset(f, 0xff, 6);
	memcpy(f + 6, linux_nic_mac(nic), 6);
	memcpy(f + 12, "\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01", 10);
	memcpy(f + 22, f + 6, 6);
	memcpy(f + 28, own, 4);
	memcpy(f + 38, peer, 4);
	if (linux_nic_send(nic, pieces, 3))
		puts("not sent");
}

static int resolve(struct linux_nic *nic, const uint8_t own[4], const uint8_t peer[4])
{
	uint64_t end = linux_now_us() + 3000000;
	const uint8_t *f;
	size_t len;

	ask(nic, own, peer);
	while (linux_now_us() < end) {
		while (linux_nic_recv(nic, &f, &len) > 0)
			if (len >= 42 && f[12] == 8 && f[13] == 6 && f[21] == 2 && !memcmp(f + 28, peer, 4) &&
			    !memcmp(f, linux_nic_mac(nic), 6)) {
				printf("resolved %02x:%02x\n", f[22], f[23]);
				return 0;
			}
		linux_nic_wait(nic, 100000);
	}
	puts("no answer");
	return 1;
}

int main(int argc, char **argv)
{
	static const uint8_t lab_own[4] = { 10, 77, 0, 2 }, lab_peer[4] = { 10, 77, 0, 1 };
	static const uint8_t slirp_own[4] = { 10, 0, 2, 15 }, slirp_peer[4] = { 10, 0, 2, 2 };
	struct linux_nic_options o = { .kind = LINUX_NIC_TAP };
	const char *kind = argc > 1 ? argv[1] : "";
	struct linux_nic *nic;
	const uint8_t *f;
	size_t len;
	int r = 0, slirp = !strcmp(kind, "slirp");

	if (argc < 3)
		return 2;
	o.name = slirp ? NULL : argv[2];
	o.pcap = slirp ? argv[2] : argc > 3 ? argv[3] : NULL;
	o.ring = !strcmp(kind, "ring") ? 4 : 0;
	o.kind = slirp ? LINUX_NIC_SLIRP : !strcmp(kind, "packet") ? LINUX_NIC_PACKET : LINUX_NIC_TAP;
	nic = linux_nic_open(&o);
	if (!nic)
		return 2;
	if (o.ring) {
		int got = 0;

		puts("ready");
		fflush(stdout);
		/* Sleep without looking: the frames pile up. */
		usleep(1000000);
		while (linux_nic_recv(nic, &f, &len) > 0)
			got++;
		printf("kept %d dropped %lu\n", got, linux_nic_dropped(nic));
	} else {
		r = slirp ? resolve(nic, slirp_own, slirp_peer) : resolve(nic, lab_own, lab_peer);
	}
	linux_nic_close(nic);
	return r;
}
