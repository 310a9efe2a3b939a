/*
 * A plugin of qemu's (its interface of version 1) that counts instructions: at=ADDRESS prints how many were executed since the
 * last time that address was. Debian has no header for plugins: what is used of the interface is declared here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*cb)(uint64_t, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int add, void *at, uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, void (*cb)(unsigned, void *), int flags, void *user);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

static uint64_t count, mark;

static void marked(unsigned cpu, void *user)
{
	(void)cpu;
	(void)user;
	fprintf(stderr, "count %" PRIu64 "\n", count);
	count = 0;
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		qemu_plugin_register_vcpu_insn_exec_inline(insn, 0, &count, 1);
		if (qemu_plugin_insn_vaddr(insn) == mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, 0, NULL);
	}
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "at=", 3))
			mark = strtoull(argv[i] + 3, NULL, 0) & ~(uint64_t)1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
