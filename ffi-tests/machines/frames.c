/*
 * Field case E05: the frame suite on a machine that traps unaligned accesses, where it has one. ARP, ICMP, UDP, 802.1Q, IP
 * options, fragments in every order, ICMP errors, TCP, and malformed ones beside them, each at every alignment of the
 * received frame and of the buffer to send from. What is sent, what is delivered and what is counted must be the same at each.
 */
#include "frames.h"
#include "runtime.h"

#include <bootlace.h>

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "arp", frames_arp },
	{ "echo", frames_echo },
	{ "udp", frames_udp },
	{ "vlan", frames_vlan },
	{ "options", frames_options },
	{ "fragments", frames_fragments },
	{ "errors", frames_errors },
	{ "malformed", frames_malformed },
	{ "tcp", frames_tcp },
};

int bare_main(void)
{
	uint32_t first = 0, at_all[sizeof parts / sizeof *parts];

#if !defined(__ARM_ARCH_7EM__) || defined(STRICT)
	bare_trap_unaligned();
#endif
	for (unsigned rx = 0; rx < 8; rx++)
		for (unsigned tx = 0; tx < 8; tx++) {
			uint32_t digest;

			frames_up(rx, tx);
			for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
				parts[i].run();
				digest = frames_digest();
				if (!rx && !tx)
					at_all[i] = digest;
				else if (digest != at_all[i]) {
					bare_print(parts[i].name);
					expect(0, "differs at alignment", rx * 10 + tx);
				}
			}
			digest = frames_down();
			if (!rx && !tx)
				first = digest;
			expect(digest == first, "counters differ at alignment", rx * 10 + tx);
			if (frames_failures())
				return 1;
		}
	bare_print("ok ");
	bare_print_number(first);
	bare_print("\n");
	return 0;
}
