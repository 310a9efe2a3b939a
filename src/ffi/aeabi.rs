//! The ARM run-time ABI's own names for copying and clearing, over the four functions that the host supplies anyway
//! (RTABI 4.3.4). Without them the compiler's copies would come along, and a board would carry two of each.

core::arch::global_asm!(
    ".macro lace_mem name, target, first, second, third",
    ".section .text.\\name, \"ax\", %progbits",
    ".global \\name, \\name\\()4, \\name\\()8",
    ".balign 4",
    ".type \\name, %function",
    ".type \\name\\()4, %function",
    ".type \\name\\()8, %function",
    "\\name:",
    "\\name\\()4:",
    "\\name\\()8:",
    "push {{r4, lr}}",
    "\\first",
    "\\second",
    "\\third",
    "bl \\target",
    "pop {{r4, pc}}",
    ".endm",
    "lace_mem __aeabi_memcpy, memcpy",
    "lace_mem __aeabi_memmove, memmove",
    "lace_mem __aeabi_memset, memset, \"mov r3, r1\", \"mov r1, r2\", \"mov r2, r3\"",
    "lace_mem __aeabi_memclr, memset, \"mov r2, r1\", \"movs r1, #0\"",
    ".purgem lace_mem",
    ".text",
);
