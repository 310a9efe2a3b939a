// SPDX-License-Identifier: MIT OR Apache-2.0
/* U-Boot's glue, driven as cmd/net.c drives it, over a cable whose other end is a small host in this program. */
#include "board.h"



#undef printf
#undef puts

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not so: %s\n--- console\n%s\n", __FILE__, __LINE__, #what, board_console); \
			exit(1); \
		} \
	} while (0)

/* ---- the host 10.0.0.1: ARP, echo, DHCP, DNS, TFTP both ways, NTP; portmap is silent ---- */

enum { FILE_LEN = 100001 };
static u8 file[FILE_LEN], stored[FILE_LEN];
static u32 file_len, stored_len;
/* What it no longer answers. */
static struct { bool arp, echo, dhcp, dns, request, oack, ntp, pxe; u32 data_after; } deaf;
static struct { u16 port, block, blksize, window; bool put, tsize; char options[256]; } transfer;
static unsigned int requests, errors, blocks, queries;
static u16 tag;
static const u8 our_mac[6] = { 2, 0, 0, 0, 0, 1 };

static u16 sum(const u8 *p, int len, u32 s)
{
	for (; len > 1; p += 2, len -= 2)
		s += p[0] << 8 | p[1];
	if (len)
		s += p[0] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return ~s;
}

static void put16(u8 *p, u32 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static void send_ip(u8 protocol, const u8 *payload, int len)
{
	static const u8 head[] = { 0x45, 0, 0, 0, 0, 1, 0, 0, 64, 0, 0, 0, 10, 0, 0, 1, 10, 0, 0, 9 };
	u8 frame[1600], *ip = frame + 14;

	memcpy(frame, board_card->mac, 6);
	memcpy(frame + 6, our_mac, 6);
	put16(frame + 12, 0x800);
	if (tag) {
		put16(frame + 12, 0x8100);
		put16(frame + 14, tag);
		put16(frame + 16, 0x800);
		ip += 4;
	}
	memcpy(ip, head, 20);
	put16(ip + 2, 20 + len);
	ip[9] = protocol;
	put16(ip + 10, sum(ip, 20, 0));
	memcpy(ip + 20, payload, len);
	board_receive(frame, ip + 20 + len - frame);
}

static void send_udp(u16 from, u16 to, const u8 *payload, int len)
{
	u8 udp[1480] = { 0 };

	put16(udp, from);
	put16(udp + 2, to);
	put16(udp + 4, 8 + len);
	memcpy(udp + 8, payload, len);
	send_ip(17, udp, 8 + len);
}

static void send_block(u16 number)
{
	u8 packet[1500] = { 0, 3 };
	u32 at = (u32)(number - 1) * transfer.blksize, n = at < file_len ? file_len - at : 0;

	if (deaf.data_after && at >= deaf.data_after)
		return;
	if (n > transfer.blksize)
		n = transfer.blksize;
	if (at > file_len)
		return;
	put16(packet + 2, number);
	memcpy(packet + 4, file + at, n);
	blocks++;
	send_udp(4000, transfer.port, packet, 4 + n);
}

static void tftp_request(u16 from, const u8 *p, int len)
{
	u8 oack[128] = { 0, 6 };
	const char *at = (const char *)p + 2, *end = (const char *)p + len;
	int n = 2;

	requests++;
	transfer.put = p[1] == 2;
	transfer.port = from;
	transfer.block = 0;
	transfer.blksize = 512;
	transfer.window = 1;
	transfer.options[0] = 0;
	stored_len = 0;
	at += strlen(at) + 1;
	at += strlen(at) + 1;
	while (at < end) {
		const char *value = at + strlen(at) + 1;

		strcat(strcat(strcat(strcat(transfer.options, at), "="), value), " ");
		if (!strcmp(at, "blksize")) {
			transfer.blksize = atoi(value);
			n += 1 + sprintf((char *)oack + n, "blksize");
			n += 1 + sprintf((char *)oack + n, "%d", transfer.blksize);
		} else if (!strcmp(at, "tsize") && !transfer.put) {
			n += 1 + sprintf((char *)oack + n, "tsize");
			n += 1 + sprintf((char *)oack + n, "%u", file_len);
		}
		at = value + strlen(value) + 1;
	}
	if (!strcmp((const char *)p + 2, "gone"))
		send_udp(4000, from, (const u8 *)"\0\5\0\1no such file", 17);
	else if (!deaf.oack)
		send_udp(4000, from, oack, n);
}

static void tftp(const u8 *p, int len)
{
	u16 number = p[2] << 8 | p[3];
	u8 ack[4] = { 0, 4, p[2], p[3] };

	if (p[1] == 5)
		errors++;
	if (p[1] == 4 && !transfer.put)
		send_block(number + 1);
	if (p[1] == 3 && transfer.put) {
		if (deaf.data_after && stored_len >= deaf.data_after)
			return;
		if (number == (u16)(transfer.block + 1)) {
			memcpy(stored + stored_len, p + 4, len - 4);
			stored_len += len - 4;
			transfer.block++;
		}
		send_udp(4000, transfer.port, ack, 4);
	}
}

static void dhcp(const u8 *p)
{
	static const u8 options[] = { 99, 130, 83, 99, 53, 1, 2, 54, 4, 10, 0, 0, 1, 51, 4, 0, 0, 14, 16, 1, 4, 255, 255, 255, 0,
				      3, 4, 10, 0, 0, 1, 6, 4, 10, 0, 0, 1, 17, 5, '/', 'r', 'o', 'o', 't', 12, 2, 'u', 'b',
				      40, 3, 'n', 'i', 's', 13, 2, 0, 8, 209, 3, 'c', 'f', 'g', 255 };
	u8 reply[548] = { 2, 1, 6 };

	memcpy(reply + 4, p + 4, 4);
	memcpy(reply + 16, (const u8[]){ 10, 0, 0, 9, 10, 0, 0, 1 }, 8);
	memcpy(reply + 28, p + 28, 6);
	strcpy((char *)reply + 108, "kernel");
	memcpy(reply + 236, options, sizeof(options));
	reply[242] = p[242] == 1 ? 2 : 5; /* OFFER, ACK */
	if (deaf.pxe)
		reply[236 + sizeof(options) - 6] = 255;
	send_udp(67, 68, reply, sizeof(reply));
}

static void dns(u16 from, const u8 *p, int len)
{
	u8 reply[512];

	queries++;
	memcpy(reply, p, len);
	put16(reply + 2, 0x8180);
	put16(reply + 6, 1);
	/* Without EDNS: the question, and an address for it. */
	put16(reply + 10, 0);
	len = 12 + strlen((const char *)reply + 12) + 5;
	memcpy(reply + len, (const u8[]){ 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, 77 }, 16);
	send_udp(53, from, reply, len + 16);
}

static void udp(const u8 *p, int len)
{
	u16 from = p[0] << 8 | p[1], to = p[2] << 8 | p[3];
	u8 ntp[48] = { 0x24 };

	p += 8;
	len -= 8;
	if (to == 69 && !deaf.request)
		tftp_request(from, p, len);
	else if (to == 4000)
		tftp(p, len);
	else if (to == 67 && !deaf.dhcp)
		dhcp(p);
	else if (to == 53 && !deaf.dns)
		dns(from, p, len);
	else if (to == 123 && !deaf.ntp) {
		memcpy(ntp + 40, (const u8[]){ 0x83, 0xaa, 0x7e, 0x80 + 5 }, 4); /* 1970-01-01 00:00:05 */
		send_udp(123, from, ntp, 48);
	}
}

static void host(const u8 *frame, int len)
{
	const u8 *p = frame + 14;
	u8 reply[1514];

	if (tag) {
		CHECK(frame[12] == 0x81 && frame[15] == tag);
		p += 4;
	}
	len = frame + len - p;
	if (p[-2] == 8 && p[-1] == 6 && p[7] == 1 && p[27] == 1 && p[24] == 10 && !deaf.arp) {
		memcpy(reply, frame, p - frame + 28);
		memcpy(reply, frame + 6, 6);
		memcpy(reply + 6, our_mac, 6);
		u8 *a = reply + (p - frame);

		a[7] = 2;
		memcpy(a + 18, p + 8, 10);
		memcpy(a + 8, our_mac, 6);
		memcpy(a + 14, p + 24, 4);
		board_receive(reply, p - frame + 28);
	} else if (p[-2] == 8 && p[-1] == 0) {
		int total = p[2] << 8 | p[3];

		CHECK(total <= len);
		if (p[9] == 1 && p[20] == 8 && p[19] == 1 && !deaf.echo) {
			memcpy(reply, p + 20, total - 20);
			reply[0] = 0;
			put16(reply + 2, 0);
			put16(reply + 2, sum(reply, total - 20, 0));
			send_ip(1, reply, total - 20);
		} else if (p[9] == 17 && (p[19] == 1 || p[19] == 255)) {
			udp(p + 20, total - 20);
		}
	}
}

/* ---- tests ---- */

static void begin(void)
{
	u32 i;

	board_reset();
	memset(&deaf, 0, sizeof(deaf));
	requests = errors = blocks = queries = 0;
	tag = 0;
	net_our_vlan = 0xffff;
	board_peer = host;
	file_len = FILE_LEN;
	for (i = 0; i < FILE_LEN; i++)
		file[i] = i * 7 + i / 251;
	net_ip = string_to_ip("10.0.0.9");
	net_netmask = string_to_ip("255.255.255.0");
	net_server_ip = net_dns_server = string_to_ip("10.0.0.1");
	net_gateway.s_addr = 0;
	strcpy(net_boot_file_name, "kernel");
	net_boot_file_name_explicit = true;
	net_dns_resolve = "name.lab";
	net_dns_env_var = NULL;
	image_save_addr = 0x100000;
	image_save_size = 5000;
}

static void whole(u32 len)
{
	CHECK(!memcmp(board_ram + 0x100000, file, len));
	CHECK(board_ram[0xfffff] == 0xa5);
}

static int load(enum proto_t protocol)
{
	int rc = net_loop(protocol);

	CHECK(!board_running);
	return rc;
}

static bool ping(void)
{
	net_set_state(NETLOOP_SUCCESS);
	extern struct in_addr net_ping_ip;
	net_ping_ip = string_to_ip("10.0.0.1");
	return load(PING) >= 0;
}

static void tftpboot(void)
{
	static const u32 lengths[] = { 1, 1467, 1468, 1469, FILE_LEN };
	unsigned int i;
	char want[64];

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		begin();
		file_len = lengths[i];
		CHECK(load(TFTPGET) >= 0);
		whole(file_len);
		CHECK(net_boot_file_size == file_len);
		sprintf(want, "%x", file_len);
		CHECK(!strcmp(env_get("filesize"), want) && !strcmp(env_get("fileaddr"), "100000"));
		sprintf(want, "Net kernel %u", file_len);
		CHECK(!strcmp(board_bootdev, want));
		CHECK(strstr(board_console, "TFTP from server 10.0.0.1; our IP address is 10.0.0.9\n"));
		CHECK(strstr(board_console, "Filename 'kernel'.\nLoad address: 0x100000\nLoading: *\b"));
		CHECK(strstr(board_console, "##################################################  "));
		CHECK(strstr(board_console, "\ndone\n"));
	}
	/* An error of the server's. */
	begin();
	strcpy(net_boot_file_name, "gone");
	CHECK(load(TFTPGET) < 0 && requests == 1 && !env_get("filesize"));
	CHECK(strstr(board_console, "TFTP error: 'no such file' (1)"));
	/* A server named on the command line; none at all; no file name. */
	begin();
	net_server_ip.s_addr = 0;
	strcpy(net_boot_file_name, "10.0.0.1:kernel");
	CHECK(load(TFTPGET) >= 0);
	strcpy(net_boot_file_name, "kernel");
	CHECK(load(TFTPGET) < 0 && strstr(board_console, "`serverip' not set"));
	env_set("tftpserverip", "10.0.0.1");
	net_boot_file_name[0] = 0;
	CHECK(load(TFTPGET) >= 0 && strstr(board_console, "no boot file name; using '0A000009.img'"));
	net_ip.s_addr = 0;
	CHECK(load(TFTPGET) < 0 && strstr(board_console, "`ipaddr' not set"));
}

static void environment(void)
{
	begin();
	CHECK(load(TFTPGET) >= 0);
	CHECK(strstr(transfer.options, "blksize=1468 ") && strstr(transfer.options, "windowsize=32 "));
	CHECK(strstr(transfer.options, "tsize=0 ") && strstr(transfer.options, "timeout=5 "));
	begin();
	env_set("tftpblocksize", "1024");
	env_set("tftpwindowsize", "1");
	env_set("tftptimeout", "2000");
	CHECK(load(TFTPGET) >= 0);
	CHECK(strstr(transfer.options, "blksize=1024 ") && !strstr(transfer.options, "windowsize"));
	CHECK(strstr(transfer.options, "timeout=2 "));
	/* Our port and the server's. */
	begin();
	env_set("tftpsrcp", "4711");
	CHECK(load(TFTPGET) >= 0 && transfer.port == 4711);
	CHECK(load(TFTPPUT) >= 0 && transfer.port == 4711);
	env_set("tftpdstp", "70");
	env_set("tftptimeout", "1000");
	env_set("tftptimeoutcountmax", "0");
	requests = 0;
	CHECK(load(TFTPGET) < 0 && !requests);
	/* Tagged. */
	begin();
	tag = 7;
	net_our_vlan = string_to_vlan("7");
	CHECK(load(TFTPGET) >= 0);
	whole(FILE_LEN);
	begin();
	CHECK(load(TFTPGET) >= 0);
	/* A gateway, and none where one is needed. */
	begin();
	net_server_ip = string_to_ip("192.168.1.1");
	net_gateway = string_to_ip("10.0.0.1");
	deaf.request = true;
	env_set("tftptimeout", "1000");
	env_set("tftptimeoutcountmax", "1");
	CHECK(load(TFTPGET) < 0 && strstr(board_console, "sending through gateway 10.0.0.1"));
	net_gateway.s_addr = 0;
	CHECK(load(TFTPGET) < 0 && strstr(board_console, "gatewayip needed but not set"));
	CHECK(strstr(board_console, "TFTP error: no route\n"));
}

static void tftpput(void)
{
	static const u32 lengths[] = { 1, 512, 1468, 5001, FILE_LEN };
	unsigned int i;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		begin();
		memcpy(board_ram + 0x100000, file, FILE_LEN);
		image_save_size = lengths[i];
		CHECK(load(TFTPPUT) >= 0);
		CHECK(stored_len == lengths[i] && !memcmp(stored, file, stored_len));
		CHECK(strstr(board_console, "TFTP to server 10.0.0.1") && strstr(board_console, "Saving: *\b#"));
		CHECK(!board_bootdev[0]);
	}
}

static void questions(void)
{
	begin();
	net_ip.s_addr = net_netmask.s_addr = net_server_ip.s_addr = net_dns_server.s_addr = 0;
	net_boot_file_name[0] = 0;
	net_boot_file_name_explicit = false;
	CHECK(load(DHCP) >= 0);
	CHECK(net_ip.s_addr == string_to_ip("10.0.0.9").s_addr && net_netmask.s_addr == string_to_ip("255.255.255.0").s_addr);
	CHECK(net_server_ip.s_addr == string_to_ip("10.0.0.1").s_addr && net_gateway.s_addr == net_server_ip.s_addr);
	CHECK(net_dns_server.s_addr == net_server_ip.s_addr && !strcmp(net_root_path, "/root"));
	CHECK(!strcmp(net_hostname, "ub") && !strcmp(net_nis_domain, "nis") && !strcmp(net_boot_file_name, "kernel"));
	CHECK(!strcmp(env_get("bootfile"), "kernel") && net_boot_file_expected_size_in_blocks == 8);
	CHECK(strstr(board_console, "DHCP client bound to address 10.0.0.9"));
	/* EFI's copy of the answer. */
	CHECK(board_ack_len > 240 && board_ack[0] == 2 && board_ack[19] == 9 && !memcmp(board_ack + 28, board_card->mac, 6));
	CHECK(!strcmp((char *)board_ack + 108, "kernel") && board_ack[board_ack_len - 1] == 255);
	/* It went on by itself. */
	CHECK(requests == 1);
	whole(FILE_LEN);
	CHECK(strstr(board_console, "Size is 0x1000 Bytes"));
#ifdef CONFIG_NET_LEGACY
	CHECK(!strcmp(pxelinux_configfile, "cfg"));
#endif
	begin();
	deaf.pxe = true;
	env_set("autoload", "no");
	CHECK(load(DHCP) == 0 && requests == 0 && net_boot_file_size == 0);
#ifdef CONFIG_NET_LEGACY
	CHECK(!pxelinux_configfile); /* pxe tries the usual names */
#endif
	/* Nobody there: it ends, and the card is off. */
	begin();
	deaf.dhcp = true;
	env_set("bootpretryperiod", "3000");
	CHECK(load(DHCP) < 0 && strstr(board_console, "Retry time exceeded"));

	begin();
	CHECK(ping());
	deaf.echo = true;
	CHECK(!ping());
	begin();
	net_dns_env_var = "found";
	CHECK(load(DNS) == 0 && !strcmp(env_get("found"), "10.0.0.77") && strstr(board_console, "10.0.0.77\n"));
	CHECK(queries > 0);

	begin();
	struct udp_ops ops = { sntp_prereq, sntp_start, NULL };

	net_ntp_server = string_to_ip("10.0.0.1");
	CHECK(udp_loop(&ops) == 0 && strstr(board_console, "rtc 5\n"));
	deaf.ntp = true;
	CHECK(udp_loop(&ops) < 0 && strstr(board_console, "Timeout"));
	net_ntp_server.s_addr = 0;
	CHECK(udp_loop(&ops) < 0);
}

/* Ctrl-C ends whatever is waited for within a tenth of a second, and the card works afterwards. */
static void key(enum proto_t protocol, const char *phase)
{
	u64 pressed;
	int rc;

	pressed = board_key_at = board_now + 700000;
	rc = load(protocol);
	if (rc != -EINTR || board_now - pressed > 100000) {
		fprintf(stderr, "%s: %d, %d us after the key\n", phase, rc, (int)(board_now - pressed));
		exit(1);
	}
	CHECK(board_schedules > 50 && strstr(board_console, "\nAbort\n") && !env_get("filesize"));
	board_key_at = 0;
	memset(&deaf, 0, sizeof(deaf));
	net_ip = string_to_ip("10.0.0.9");
	net_server_ip = string_to_ip("10.0.0.1");
	CHECK(ping());
	strcpy(net_boot_file_name, "kernel");
	CHECK(load(TFTPGET) >= 0);
	whole(FILE_LEN);
}

static void keys(void)
{
	begin(); deaf.arp = true; net_server_ip = string_to_ip("10.0.0.55"); strcpy(net_boot_file_name, "10.0.0.55:kernel");
	key(TFTPGET, "address of the server");
	begin(); deaf.request = true; key(TFTPGET, "request");
	begin(); deaf.oack = true; key(TFTPGET, "options");
	begin(); deaf.data_after = 1; key(TFTPGET, "first block");
	begin(); deaf.data_after = 50000; key(TFTPGET, "blocks");
	begin(); deaf.request = true; key(TFTPPUT, "request to write");
	begin(); deaf.data_after = 2000; key(TFTPPUT, "blocks written");
	begin(); deaf.dhcp = true; key(DHCP, "DHCP");
	begin(); deaf.dns = true; key(DNS, "DNS");
	begin(); key(NFS, "port mapper");
	begin(); deaf.data_after = 50000; deaf.request = true; env_set("autoload", "yes"); key(DHCP, "autoload");
	/* While all devices are waited for: one try each, then a pause. */
	begin(); env_set("netretry", "yes"); strcpy(net_boot_file_name, "gone"); key(TFTPGET, "pause");
}

/* Nothing is stored of what does not fit, nothing asked for that has no place. */
static void refused(void)
{
	u32 i;

	begin();
	file_len = 50000;
	board_reserved = 0x100000 + 49999;
	CHECK(load(TFTPGET) < 0 && requests > 0 && errors > 0);
	CHECK(strstr(board_console, "trying to overwrite reserved memory") && !env_get("filesize"));
	for (i = 0; i < RAM_SIZE; i++)
		CHECK(board_ram[i] == 0xa5);
	board_reserved++;
	CHECK(load(TFTPGET) >= 0);
	whole(file_len);
	CHECK(board_ram[0x100000 + file_len] == 0xa5);
	/* In the reserved part, and beyond memory. */
	begin();
	image_load_addr = board_reserved;
	CHECK(load(TFTPGET) < 0 && requests == 0 && strstr(board_console, "reserved memory"));
	image_load_addr = RAM_SIZE;
	CHECK(load(TFTPGET) < 0 && requests == 0);
	image_load_addr = board_reserved + 1;
	CHECK(load(NFS) < 0 && board_sent == 0);
	image_load_addr = 0x100000;
	CHECK(ping());
}

/* `netretry`: what failed is tried again, on the next card. */
static void retries(void)
{
	begin();
	strcpy(net_boot_file_name, "gone");
	CHECK(load(TFTPGET) < 0 && requests == 1 && board_card == board_cards);
	env_set("netretry", "once");
	CHECK(load(TFTPGET) < 0 && requests == 3 && board_card == board_cards + 1);
	begin();
	strcpy(net_boot_file_name, "gone");
	env_set("netretry", "2");
	CHECK(load(TFTPGET) < 0 && requests == 3);
	/* The other card, from now on. */
	begin();
	board_card = board_cards + 1;
	CHECK(load(TFTPGET) >= 0);
	whole(FILE_LEN);
	begin();
	CHECK(load(TFTPGET) >= 0);
}

static unsigned int pushed;

static void on_push(void *packet, int len)
{
	CHECK(packet && len == 60);
	pushed++;
}

/* EFI takes all frames while it has its hook in. */
static void efi(void)
{
	static const u8 frame[60] = { 2, 0, 0, 0, 0, 9 };

	begin();
	CHECK(net_init() == 0);
	board_running = 1;
	push_packet = on_push;
	board_receive(frame, sizeof(frame));
	eth_rx();
	CHECK(pushed == 1);
	push_packet = NULL;
	board_receive(frame, sizeof(frame));
	eth_rx();
	CHECK(pushed == 1);
	CHECK(ping());
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } tests[] = {
		{ "tftpboot", tftpboot }, { "environment", environment }, { "tftpput", tftpput }, { "questions", questions },
		{ "keys", keys }, { "refused", refused }, { "retries", retries }, { "efi", efi },
	};

	for (unsigned int i = 0; argc == 2 && i < sizeof(tests) / sizeof(*tests); i++)
		if (!strcmp(tests[i].name, argv[1])) {
			tests[i].run();
			return 0;
		}
	fprintf(stderr, "usage: %s TEST\n", argv[0]);
	return 2;
}
