// SPDX-License-Identifier: MIT OR Apache-2.0
/* Questions for U-Boot over Bootlace: dhcp and bootp, ping, dns, sntp. Answers go to U-Boot's variables and the environment. */
#include "net-lace.h"

#include <bootstage.h>
#include <console.h>
#include <dm.h>
#include <efi_loader.h>
#include <env.h>
#include <errno.h>
#include <malloc.h>
#include <net/sntp.h>
#include <net/udp.h>
#include <rtc.h>
#include <time.h>
#include <vsprintf.h>
#include <watchdog.h>
#ifdef CONFIG_LIB_UUID
#if LACE_NEW_TREE
#include <u-boot/uuid.h>
#else
#include <uuid.h>
#endif
#endif

#define SNTP_TIMEOUT_MS 10000
#define SNTP_UNIX_EPOCH 2208988800UL /* seconds from 1900, where NTP counts from, to 1970 */

char net_nis_domain[32], net_hostname[32], net_root_path[CONFIG_BOOTP_MAX_ROOT_PATH_LEN];
struct in_addr net_ping_ip, net_ntp_server;
char *net_dns_resolve, *net_dns_env_var;
int net_ntp_time_offset;

static void take_text(char *to, size_t size, const struct lace_lease *lease, u8 code)
{
	int len = lace_lease_option(lease, code, to, size - 1);

	if (len > 0)
		to[min((size_t)len, size - 1)] = '\0';
}

static u32 take_number(const struct lace_lease *lease, u8 code)
{
	u8 b[4];
	u32 value = 0;
	int i, len = lace_lease_option(lease, code, b, sizeof(b));

	for (i = 0; i < len && i < 4; i++)
		value = value << 8 | b[i];
	return value;
}

/* EFI's PXE base code shows its users the server's answer: put together again, as RFC 2131 has it. */
static void tell_efi(const struct lace_lease *lease)
{
#if CONFIG_IS_ENABLED(EFI_LOADER) && CONFIG_IS_ENABLED(NETDEVICES)
	static const u8 cookie[] = { 99, 130, 83, 99 };
	size_t options = min(lease->options_len, 1024u);
	u8 *packet = calloc(1, 241 + options);

	if (!packet)
		return;
	packet[0] = 2; /* BOOTREPLY over Ethernet */
	packet[1] = 1;
	packet[2] = ARP_HLEN;
	memcpy(packet + 16, lease->ip.bytes, 4);
	memcpy(packet + 20, lease->boot_server.ip.bytes, 4);
	memcpy(packet + 28, net_ethaddr, ARP_HLEN);
	snprintf((char *)packet + 44, 64, "%s", lease->boot_server_name);
	snprintf((char *)packet + 108, 128, "%s", lease->boot_file);
	memcpy(packet + 236, cookie, sizeof(cookie));
	memcpy(packet + 240, lease->options, options);
	packet[240 + options] = 255;
	efi_net_set_dhcp_ack(packet, 241 + options);
	free(packet);
#endif
}

/* What a lease says, where `serverip` and `bootfile` are not the user's own (BOOTP_SERVERIP). */
static void take_boot_data(const struct lace_lease *lease)
{
	struct lace_ip ip = lease->boot_server.ip;
	struct in_addr server;

	if (IS_ENABLED(CONFIG_BOOTP_SERVERIP))
		return;
	if (lease->boot_server.name) {
		/* The servers that the lease has just named are asked. */
		lace_sync();
		lace_dns(lace, lease->boot_server.name, &ip);
	}
	server = lace_to(&ip);
	if (server.s_addr && !(IS_ENABLED(CONFIG_BOOTP_PREFER_SERVERIP) && net_server_ip.s_addr))
		net_server_ip = server;
	if (lease->boot_file[0] && !net_boot_file_name_explicit)
		copy_filename(net_boot_file_name, lease->boot_file, sizeof(net_boot_file_name));
	if (net_boot_file_name[0])
		env_set("bootfile", net_boot_file_name);
}

static void take(const struct lace_lease *lease)
{
	u32 mask = lease->prefix ? ~0u << (32 - lease->prefix) : 0;
	char __maybe_unused config_file[256] = "";

	net_ip = lace_to(&lease->ip);
	net_netmask.s_addr = htonl(mask);
	if (lease->gateway.family)
		net_gateway = lace_to(&lease->gateway);
	if (lease->dns[0].family)
		net_dns_server = lace_to(&lease->dns[0]);
#ifdef CONFIG_BOOTP_DNS2
	if (lease->dns[0].family && lease->dns[1].family)
		net_dns_server2 = lace_to(&lease->dns[1]);
#endif
	if (lease->host_name[0])
		snprintf(net_hostname, sizeof(net_hostname), "%s", lease->host_name);
	if (lease->root_path[0])
		snprintf(net_root_path, sizeof(net_root_path), "%s", lease->root_path);
	take_text(net_nis_domain, sizeof(net_nis_domain), lease, 40);
	net_boot_file_expected_size_in_blocks = take_number(lease, 13);
#if defined(CONFIG_CMD_SNTP) && defined(CONFIG_BOOTP_TIMEOFFSET)
	net_ntp_time_offset = take_number(lease, 2);
#endif
#if defined(CONFIG_CMD_SNTP) && defined(CONFIG_BOOTP_NTPSERVER)
	lace_lease_option(lease, 42, &net_ntp_server, sizeof(net_ntp_server));
#endif
#if LACE_NEW_TREE && defined(CONFIG_BOOTP_PXE_DHCP_OPTION)
	take_text(config_file, sizeof(config_file), lease, 209);
	free(pxelinux_configfile);
	/* pxe looks for the usual files only where there is none. */
	pxelinux_configfile = config_file[0] ? strdup(config_file) : NULL;
#endif
	take_boot_data(lease);
	tell_efi(lease);
}

/* The request, by configuration and environment. */
static void fill_in(struct lace_dhcp *dhcp, u8 *uuid)
{
	static const u8 also[] = { 2, 13, 40, 42, 209, 210 };
	int arch = -1;

	lace_dhcp_init(dhcp, sizeof(*dhcp));
	dhcp->parameters = also;
	dhcp->parameters_len = sizeof(also);
#ifdef CONFIG_BOOTP_SEND_HOSTNAME
	dhcp->host_name = env_get("hostname");
#endif
#ifdef CONFIG_BOOTP_VCI_STRING
	dhcp->vendor_class = CONFIG_BOOTP_VCI_STRING;
#endif
	if (env_get("bootp_vci"))
		dhcp->vendor_class = env_get("bootp_vci");
#ifdef CONFIG_BOOTP_PXE_CLIENTARCH
	arch = CONFIG_BOOTP_PXE_CLIENTARCH;
#endif
	if (env_get("bootp_arch"))
		arch = env_get_ulong("bootp_arch", 16, arch);
	dhcp->has_arch = arch > 0;
	dhcp->arch = arch > 0 ? arch : 0;
	dhcp->has_ndi = 1;
	dhcp->ndi[0] = 1; /* UNDI */
#ifdef CONFIG_LIB_UUID
	if (env_get("pxeuuid")) {
		if (uuid_str_to_bin(env_get("pxeuuid"), uuid, UUID_STR_FORMAT_STD))
			printf("Invalid pxeuuid: %s\n", env_get("pxeuuid"));
		else
			dhcp->uuid = uuid;
	}
#endif
	/* Milliseconds; the library goes on for 90 s by itself. */
	dhcp->timeout_ms = env_get_ulong("bootpretryperiod", 10, 0);
}

int lace_dhcp_ask(void)
{
	struct lace_detail detail;
	struct lace_lease *lease;
	struct lace_dhcp dhcp;
	ulong start = get_timer(0);
	int64_t result;
	u8 uuid[16];

	lease = malloc(sizeof(*lease));
	if (!lease)
		return -ENOMEM;
	bootstage_mark_name(BOOTSTAGE_ID_BOOTP_START, "bootp_start");
	puts("BOOTP broadcast\n");
	net_ip.s_addr = 0;
	result = lace_sync();
	lace_lease_init(lease, sizeof(*lease));
	lace_detail_init(&detail, sizeof(detail));
	fill_in(&dhcp, uuid);
	if (!result)
		result = lace_finish(lace_dhcp_start(lace, lace_nic, &dhcp, lease), &detail);
	/* The address is U-Boot's from now on, and nobody is there to renew it. */
	lace_dhcp_stop(lace, lace_nic);
	if (result == LACE_ETIMEDOUT) {
		puts("\nRetry time exceeded\n");
	} else if (result < 0) {
		lace_explain("DHCP", result, &detail);
	} else {
		take(lease);
		printf("DHCP client bound to address %pI4 (%lu ms)\n", &net_ip, get_timer(start));
		bootstage_mark_name(BOOTSTAGE_ID_BOOTP_STOP, "bootp_stop");
	}
	free(lease);
	return result < 0 ? result : 0;
}

int lace_ping_ask(void)
{
	struct lace_ping ping;
	int64_t result;

	printf("Using %s device\n", eth_get_name());
	lace_ping_init(&ping, sizeof(ping));
	lace_server(&ping.peer, net_ping_ip, 0);
	ping.count = 10;
	ping.until_answer = 1;
	result = lace_ping(lace, &ping, NULL);
	return result > 0 ? 0 : result ? result : -ETIMEDOUT;
}

int lace_dns_ask(void)
{
	struct in_addr addr;
	struct lace_ip ip;
	int64_t result = lace_dns(lace, net_dns_resolve, &ip);
	char text[16];

	if (result == LACE_ETIMEDOUT) {
		puts("Timeout\n");
	} else if (result == LACE_ENOENT) {
		puts("DNS: host not found\n");
	} else if (result < 0 && result != LACE_EINTR) {
		printf("DNS: %s\n", lace_strerror(result));
	} else if (result > 0) {
		addr = lace_to(&ip);
		ip_to_string(addr, text);
		if (net_dns_env_var)
			env_set(net_dns_env_var, text);
		printf("%s\n", text);
	}
	return result < 0 ? result : 0;
}

/* do_sntp() of cmd/net.c comes in by a loop for any UDP protocol; this is the one there is. */
int sntp_prereq(void *data)
{
	if (net_ntp_server.s_addr)
		return 0;
	puts("*** ERROR: NTP server address not given\n");
	return 1;
}

int sntp_start(void *data)
{
	return 0;
}

int udp_loop(struct udp_ops *ops)
{
	if (ops->start != sntp_start || ops->prereq(ops->data))
		return -EINVAL;
	return net_loop(UDP);
}

static void sntp_answer(void *ctx, const struct lace_datagram *datagram)
{
	const u8 *b = datagram->payload;
	u32 *seconds = ctx;

	/* RFC 4330: a server (mode 4), and the time at which it sent this. */
	if (datagram->payload_len >= SNTP_PACKET_LEN && (b[0] & 7) == 4 && !*seconds)
		*seconds = (u32)b[40] << 24 | b[41] << 16 | b[42] << 8 | b[43];
}

static void set_clock(u32 seconds)
{
#if LACE_NEW_TREE
	net_sntp_set_rtc(seconds);
#else
	struct rtc_time tm;

	rtc_to_tm(seconds, &tm);
#ifdef CONFIG_DM_RTC
	struct udevice *dev;
	int rc = uclass_get_device(UCLASS_RTC, 0, &dev);

	if (rc)
		printf("SNTP: cannot find RTC: err=%d\n", rc);
	else
		dm_rtc_set(dev, &tm);
#elif defined(CONFIG_CMD_DATE)
	rtc_set(&tm);
#endif
	printf("Date: %4d-%02d-%02d Time: %2d:%02d:%02d\n", tm.tm_year, tm.tm_mon, tm.tm_mday, tm.tm_hour, tm.tm_min,
	       tm.tm_sec);
#endif
}

int lace_sntp_ask(void)
{
	static const u8 request[SNTP_PACKET_LEN] = { NTP_VERSION << 3 | NTP_MODE_CLIENT };
	struct lace_ip ip = lace_from(net_ntp_server);
	ulong start = get_timer(0), sent = 0;
	u32 seconds = 0;
	lace_udp socket;
	int rc;

	socket = lace_udp_open(lace, sntp_answer, &seconds);
	if (socket < 0)
		return socket;
	rc = lace_udp_connect(lace, socket, &ip, NTP_SERVICE_PORT);
	while (!rc && !seconds) {
		if (get_timer(start) >= sent) {
			rc = lace_udp_send(lace, socket, NULL, 0, request, sizeof(request));
			if (rc == LACE_EAGAIN)
				rc = 0;
			else
				sent += 1000;
		}
		lace_poll(lace, 32);
		schedule();
		if (ctrlc())
			rc = LACE_EINTR;
		else if (get_timer(start) > SNTP_TIMEOUT_MS)
			rc = LACE_ETIMEDOUT;
	}
	lace_udp_close(lace, socket);
	if (rc == LACE_ETIMEDOUT)
		puts("Timeout\n");
	else if (!rc)
		set_clock(seconds - SNTP_UNIX_EPOCH + net_ntp_time_offset);
	return rc;
}
