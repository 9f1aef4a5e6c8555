/*
 * dlsym and dlvsym. What RTLD_NEXT and RTLD_DEFAULT mean depends on the caller, which the C library reads
 * from the return address: so a look-up that is not ours is passed on by a jump, not by a call.
 *
 * dlsym_answer(handle, name, caller, &answer) and dlvsym_answer(handle, name, version, caller, &answer)
 * return the function to jump to, or NULL when `answer` is what the program gets.
 */
#if defined(__x86_64__)

	.text
	.globl	dlsym
	.type	dlsym, @function
	.balign	16
dlsym:
	.cfi_startproc
	endbr64
	pushq	%rdi
	pushq	%rsi
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 24
	movq	24(%rsp), %rdx
	movq	%rsp, %rcx
	call	dlsym_answer
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
	.size	dlsym, . - dlsym

	.globl	dlvsym
	.type	dlvsym, @function
	.balign	16
dlvsym:
	.cfi_startproc
	endbr64
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	subq	$16, %rsp
	.cfi_adjust_cfa_offset 40
	movq	40(%rsp), %rcx
	movq	%rsp, %r8
	call	dlvsym_answer
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
	.size	dlvsym, . - dlvsym

#elif defined(__aarch64__)

	.text
	.globl	dlsym
	.type	dlsym, %function
	.balign	16
dlsym:
	.cfi_startproc
	hint	#34
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset 29, -48
	.cfi_offset 30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	mov	x2, x30
	add	x3, sp, #32
	bl	dlsym_answer
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldr	x17, [sp, #32]
	ldp	x29, x30, [sp], #48
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	cbz	x16, 1f
	br	x16
1:	mov	x0, x17
	ret
	.cfi_endproc
	.size	dlsym, . - dlsym

	.globl	dlvsym
	.type	dlvsym, %function
	.balign	16
dlvsym:
	.cfi_startproc
	hint	#34
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset 29, -48
	.cfi_offset 30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	mov	x3, x30
	add	x4, sp, #40
	bl	dlvsym_answer
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
	.size	dlvsym, . - dlvsym

#endif

	.section .note.GNU-stack, "", %progbits
