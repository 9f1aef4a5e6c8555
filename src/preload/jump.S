/*
 * dlsym, dlvsym and dlopen. What they do depends on the caller (RTLD_NEXT, RTLD_DEFAULT, RUNPATH, $ORIGIN),
 * which the C library reads from the return address: so what is not ours is passed on by a jump, not by a
 * call.
 *
 * jump_two: name_answer(a, b, caller, &answer); jump_three: name_answer(a, b, c, caller, &answer). They return
 * the function to jump to, or NULL when `answer` is what the program gets.
 */
#if defined(__x86_64__)

	.macro	jump_two name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	endbr64
	pushq	%rdi
	pushq	%rsi
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 24
	movq	24(%rsp), %rdx
	movq	%rsp, %rcx
	call	\name\()_answer
	movq	(%rsp), %r11
	addq	$8, %rsp
	popq	%rsi
	popq	%rdi
	.cfi_adjust_cfa_offset -24
	testq	%rax, %rax
	je	1f
	jmp	*%rax
1:	movq	%r11, %rax
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.macro	jump_three name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	endbr64
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	subq	$16, %rsp
	.cfi_adjust_cfa_offset 40
	movq	40(%rsp), %rcx
	movq	%rsp, %r8
	call	\name\()_answer
	movq	(%rsp), %r11
	addq	$16, %rsp
	popq	%rdx
	popq	%rsi
	popq	%rdi
	.cfi_adjust_cfa_offset -40
	testq	%rax, %rax
	je	1f
	jmp	*%rax
1:	movq	%r11, %rax
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

#elif defined(__aarch64__)

	.macro	jump_start name
	.globl	\name
	.type	\name, %function
	.balign	16
\name:
	.cfi_startproc
	hint	#34
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset 29, -48
	.cfi_offset 30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	.endm

	.macro	jump_end name
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldp	x2, x17, [sp, #32]
	ldp	x29, x30, [sp], #48
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	cbz	x16, 1f
	br	x16
1:	mov	x0, x17
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.macro	jump_two name
	jump_start \name
	mov	x2, x30
	add	x3, sp, #40
	bl	\name\()_answer
	jump_end \name
	.endm

	.macro	jump_three name
	jump_start \name
	str	x2, [sp, #32]
	mov	x3, x30
	add	x4, sp, #40
	bl	\name\()_answer
	jump_end \name
	.endm

#endif

	.text
	jump_two dlsym
	jump_three dlvsym
	jump_two dlopen

	.section .note.GNU-stack, "", %progbits
