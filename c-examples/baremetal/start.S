/* The first instructions: a stack, an empty .bss, main. Memory management stays off. */
	.section .start, "ax"
	.globl _start
_start:
#ifdef __riscv
	la	sp, board_stack
	la	t0, board_bss_start
	la	t1, board_bss_end
1:	sd	zero, 0(t0)
	addi	t0, t0, 8
	bltu	t0, t1, 1b
	call	main
2:	j	2b
#elif defined(__aarch64__)
	ldr	x0, =board_stack
	mov	sp, x0
	ldr	x0, =board_bss_start
	ldr	x1, =board_bss_end
1:	str	xzr, [x0], #8
	cmp	x0, x1
	b.lo	1b
	bl	main
2:	b	2b
#else
	.arm
	ldr	sp, =board_stack
	ldr	r0, =board_bss_start
	ldr	r1, =board_bss_end
	mov	r2, #0
1:	str	r2, [r0], #4
	cmp	r0, r1
	blo	1b
	bl	main
2:	b	2b
#endif
