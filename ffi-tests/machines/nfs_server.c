#include "nfs_server.h"

enum { MOUNT_PORT = 635, NFS_PORT = 2049, ROOT = 1, BOOT = 2, KERNEL = 3 };

static uint8_t reply[400];
static uint8_t *end;
static const uint8_t *next, *stop;

static void word(uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		*end++ = (uint8_t)(value >> shift);
}

static void words(uint32_t value, unsigned n)
{
	while (n--)
		word(value);
}

/* The next word of the call; 0 behind its end. */
static uint32_t take(void)
{
	uint32_t value = 0;

	if (stop - next < 4)
		return 0;
	for (unsigned i = 0; i < 4; i++)
		value = value << 8 | *next++;
	return value;
}

/* An opaque or a string: its bytes, its length in `*n`. */
static const uint8_t *opaque(uint32_t *n)
{
	const uint8_t *at;

	*n = take();
	at = next;
	if (*n > (uint32_t)(stop - next))
		*n = 0;
	next += (*n + 3) & ~3u;
	return at;
}

static int is(const char *text)
{
	uint32_t n, i;
	const uint8_t *at = opaque(&n);

	for (i = 0; i < n; i++)
		if (text[i] != (char)at[i])
			return 0;
	return !text[i];
}

/* A file handle is 12 bytes, the last of which says what it names. */
static unsigned handle(void)
{
	uint32_t n;
	const uint8_t *at = opaque(&n);

	return n == 12 ? at[11] : 0;
}

static void give_handle(unsigned what)
{
	word(12);
	word(0x12345678);
	word(0x9abcdef0);
	word(what);
}

static void attributes(const struct peer *p, unsigned what)
{
	word(what == KERNEL ? 1 : 2);
	word(what == KERNEL ? 0644 : 0755);
	words(1, 1);
	words(0, 2);
	word(0);
	word(what == KERNEL ? p->file_size : 4096);
	word(0);
	word(4096);
	words(0, 2);
	words(0, 1);
	word(7);
	word(0);
	word(what);
	words(1000, 6);
}

static void post_attributes(const struct peer *p, unsigned what)
{
	word(1);
	attributes(p, what);
}

void nfs_server(struct peer *p, unsigned from_port, unsigned to_port, const uint8_t *message, size_t length)
{
	uint32_t xid, program, procedure, n, from = 0, count = 0;
	unsigned what;

	next = message;
	stop = message + length;
	end = reply;
	xid = take();
	if (take() != 0 || take() != 2)
		return;
	program = take();
	take();
	procedure = take();
	take();
	opaque(&n); /* credentials */
	take();
	opaque(&n); /* verifier */
	word(xid);
	words(1, 1);
	words(0, 4); /* accepted, no verifier, success */
	if (program == 100000 && to_port == 111 && procedure == 3) {
		program = take();
		take();
		word(take() != 17 ? 0 : program == 100005 ? MOUNT_PORT : program == 100003 ? NFS_PORT : 0);
	} else if (program == 100005 && to_port == MOUNT_PORT && procedure == 1) {
		if (is("/export")) {
			word(0);
			give_handle(ROOT);
			word(1);
			word(1); /* AUTH_SYS */
		} else {
			word(2);
		}
	} else if (program == 100005 && to_port == MOUNT_PORT && (procedure == 0 || procedure == 3)) {
		;
	} else if (program != 100003 || to_port != NFS_PORT) {
		end[-1] = 1; /* no such program */
	} else if (procedure == 0) {
		;
	} else if (procedure == 1 && (what = handle())) {
		word(0);
		attributes(p, what);
	} else if (procedure == 3) {
		what = handle();
		what = what == ROOT && is("boot") ? BOOT : what == BOOT && is("kernel") ? KERNEL : 0;
		word(what ? 0 : 2);
		if (what) {
			give_handle(what);
			post_attributes(p, what);
		}
		word(0);
	} else if (procedure == 6 && handle() == KERNEL) {
		take();
		from = take();
		count = take();
		count = from >= p->file_size ? 0 : p->file_size - from < count ? p->file_size - from : count;
		word(0);
		post_attributes(p, KERNEL);
		word(count);
		word(from + count >= p->file_size);
		word(count);
	} else if (procedure == 19 && handle()) {
		word(0);
		word(0);
		words(32768, 2);
		words(4096, 1);
		words(32768, 2);
		words(4096, 1);
		words(4096, 1);
		words(0xffffffff, 2);
		words(1, 2);
		word(27);
	} else {
		end[-1] = 3; /* no such procedure */
	}
	peer_answer(p, to_port, from_port, reply, (size_t)(end - reply), from, (count + 3) & ~3u);
}
