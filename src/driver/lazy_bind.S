/*
 * Where the stubs of driver/lazy.h meet: keeps the arguments of any function, asks find(n, &code), and goes on to
 * what it answers or returns the code.
 *
 * In: x86-64 r10 = find, r11 = n; aarch64 x16 = find, x17 = n.
 */
#if defined(__x86_64__)

	.text
	.globl	lazy_bind
	.hidden	lazy_bind
	.type	lazy_bind, @function
	.balign	16
lazy_bind:
	.cfi_startproc
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	pushq	%rcx
	pushq	%r8
	pushq	%r9
	.cfi_adjust_cfa_offset 48
	subq	$152, %rsp		/* code at 0, xmm0..7 from 16; a multiple of 16 with the rest */
	.cfi_adjust_cfa_offset 152
	movups	%xmm0, 16(%rsp)
	movups	%xmm1, 32(%rsp)
	movups	%xmm2, 48(%rsp)
	movups	%xmm3, 64(%rsp)
	movups	%xmm4, 80(%rsp)
	movups	%xmm5, 96(%rsp)
	movups	%xmm6, 112(%rsp)
	movups	%xmm7, 128(%rsp)
	movq	%r11, %rdi
	movq	%rsp, %rsi
	call	*%r10
	movq	%rax, %r10
	movq	(%rsp), %rax
	movups	16(%rsp), %xmm0
	movups	32(%rsp), %xmm1
	movups	48(%rsp), %xmm2
	movups	64(%rsp), %xmm3
	movups	80(%rsp), %xmm4
	movups	96(%rsp), %xmm5
	movups	112(%rsp), %xmm6
	movups	128(%rsp), %xmm7
	addq	$152, %rsp
	.cfi_adjust_cfa_offset -152
	popq	%r9
	popq	%r8
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
	.cfi_adjust_cfa_offset -48
	testq	%r10, %r10
	je	1f
	jmp	*%r10
1:	ret
	.cfi_endproc
	.size	lazy_bind, . - lazy_bind

#elif defined(__aarch64__)

	.text
	.globl	lazy_bind
	.hidden	lazy_bind
	.type	lazy_bind, %function
	.balign	16
lazy_bind:
	.cfi_startproc
	stp	x29, x30, [sp, #-224]!
	.cfi_def_cfa_offset 224
	.cfi_offset 29, -224
	.cfi_offset 30, -216
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	stp	x2, x3, [sp, #32]
	stp	x4, x5, [sp, #48]
	stp	x6, x7, [sp, #64]
	stp	q0, q1, [sp, #96]
	stp	q2, q3, [sp, #128]
	stp	q4, q5, [sp, #160]
	stp	q6, q7, [sp, #192]
	mov	x0, x17
	add	x1, sp, #80
	blr	x16
	mov	x16, x0
	ldr	x17, [sp, #80]
	ldp	q0, q1, [sp, #96]
	ldp	q2, q3, [sp, #128]
	ldp	q4, q5, [sp, #160]
	ldp	q6, q7, [sp, #192]
	ldp	x0, x1, [sp, #16]
	ldp	x2, x3, [sp, #32]
	ldp	x4, x5, [sp, #48]
	ldp	x6, x7, [sp, #64]
	ldp	x29, x30, [sp], #224
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	cbz	x16, 1f
	br	x16
1:	mov	x0, x17
	ret
	.cfi_endproc
	.size	lazy_bind, . - lazy_bind

#endif

	.section .note.GNU-stack, "", %progbits
