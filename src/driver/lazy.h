/*
 * What an entry of a table of real functions points to before the driver is known: a stub that finds the
 * driver, keeps all arguments, and goes on to the real function; like a PLT slot. So every entry can be
 * called at any time, and no hook body needs a guard of its own.
 *
 * LAZY_STUB(prefix, symbol, n) defines prefix_<symbol>, entry number n of its table.
 * LAZY_BIND(prefix, find) defines where its stubs meet. `find` is
 *	void *find(unsigned long n, unsigned long *ret_code)
 * and answers the function to go on to, or NULL and the code to return to the program.
 */
#ifndef CUOTA_DRIVER_LAZY_H
#define CUOTA_DRIVER_LAZY_H

#define LAZY_TEXT(x)  LAZY_TEXT_(x)
#define LAZY_TEXT_(x) #x

#define LAZY_START(name)                                                                                     \
	".pushsection .text\n"                                                                               \
	".balign 16\n"                                                                                       \
	".type " name ", %function\n"                                                                        \
	name ":\n"

#define LAZY_END(name)                                                                                       \
	".size " name ", . - " name "\n"                                                                     \
	".popsection\n"

#if defined(__x86_64__)

#define LAZY_STUB(prefix, symbol, n)                                                                         \
	__asm__(LAZY_START(#prefix "_" #symbol)                                                              \
		"endbr64\n"                                                                                  \
		"mov $" LAZY_TEXT(n) ", %r11d\n"                                                             \
		"jmp " #prefix "_bind\n" LAZY_END(#prefix "_" #symbol));

/* Seven pushes after the return address leave rsp a multiple of 16 again. */
#define LAZY_BIND(prefix, find)                                                                              \
	__asm__(LAZY_START(#prefix "_bind")                                                                  \
		".cfi_startproc\n"                                                                           \
		"push %rdi\n push %rsi\n push %rdx\n push %rcx\n push %r8\n push %r9\n push %r11\n"          \
		".cfi_adjust_cfa_offset 56\n"                                                                \
		"sub $144, %rsp\n"                                                                           \
		".cfi_adjust_cfa_offset 144\n"                                                               \
		"movups %xmm0, 16(%rsp)\n movups %xmm1, 32(%rsp)\n"                                          \
		"movups %xmm2, 48(%rsp)\n movups %xmm3, 64(%rsp)\n"                                          \
		"movups %xmm4, 80(%rsp)\n movups %xmm5, 96(%rsp)\n"                                          \
		"movups %xmm6, 112(%rsp)\n movups %xmm7, 128(%rsp)\n"                                        \
		"mov %r11, %rdi\n"                                                                           \
		"mov %rsp, %rsi\n"                                                                           \
		"call " #find "\n"                                                                           \
		"mov %rax, %r10\n"                                                                           \
		"mov (%rsp), %rax\n"                                                                         \
		"movups 16(%rsp), %xmm0\n movups 32(%rsp), %xmm1\n"                                          \
		"movups 48(%rsp), %xmm2\n movups 64(%rsp), %xmm3\n"                                          \
		"movups 80(%rsp), %xmm4\n movups 96(%rsp), %xmm5\n"                                          \
		"movups 112(%rsp), %xmm6\n movups 128(%rsp), %xmm7\n"                                        \
		"add $144, %rsp\n"                                                                           \
		".cfi_adjust_cfa_offset -144\n"                                                              \
		"pop %r11\n pop %r9\n pop %r8\n pop %rcx\n pop %rdx\n pop %rsi\n pop %rdi\n"                 \
		".cfi_adjust_cfa_offset -56\n"                                                               \
		"test %r10, %r10\n"                                                                          \
		"je 1f\n"                                                                                    \
		"jmp *%r10\n"                                                                                \
		"1: ret\n"                                                                                   \
		".cfi_endproc\n" LAZY_END(#prefix "_bind"));

#elif defined(__aarch64__)

#define LAZY_STUB(prefix, symbol, n)                                                                         \
	__asm__(LAZY_START(#prefix "_" #symbol)                                                              \
		"hint #34\n"                                                                                 \
		"mov x17, #" LAZY_TEXT(n) "\n"                                                               \
		"b " #prefix "_bind\n" LAZY_END(#prefix "_" #symbol));

#define LAZY_BIND(prefix, find)                                                                              \
	__asm__(LAZY_START(#prefix "_bind")                                                                  \
		".cfi_startproc\n"                                                                           \
		"stp x29, x30, [sp, #-224]!\n"                                                               \
		".cfi_def_cfa_offset 224\n"                                                                  \
		".cfi_offset 29, -224\n"                                                                     \
		".cfi_offset 30, -216\n"                                                                     \
		"stp x0, x1, [sp, #16]\n stp x2, x3, [sp, #32]\n"                                            \
		"stp x4, x5, [sp, #48]\n stp x6, x7, [sp, #64]\n"                                            \
		"stp q0, q1, [sp, #96]\n stp q2, q3, [sp, #128]\n"                                           \
		"stp q4, q5, [sp, #160]\n stp q6, q7, [sp, #192]\n"                                          \
		"mov x0, x17\n"                                                                              \
		"add x1, sp, #80\n"                                                                          \
		"bl " #find "\n"                                                                             \
		"mov x16, x0\n"                                                                              \
		"ldr x17, [sp, #80]\n"                                                                       \
		"ldp q0, q1, [sp, #96]\n ldp q2, q3, [sp, #128]\n"                                           \
		"ldp q4, q5, [sp, #160]\n ldp q6, q7, [sp, #192]\n"                                          \
		"ldp x0, x1, [sp, #16]\n ldp x2, x3, [sp, #32]\n"                                            \
		"ldp x4, x5, [sp, #48]\n ldp x6, x7, [sp, #64]\n"                                            \
		"ldp x29, x30, [sp], #224\n"                                                                 \
		".cfi_restore 29\n"                                                                          \
		".cfi_restore 30\n"                                                                          \
		".cfi_def_cfa_offset 0\n"                                                                    \
		"cbz x16, 1f\n"                                                                              \
		"br x16\n"                                                                                   \
		"1: mov x0, x17\n"                                                                           \
		"ret\n"                                                                                      \
		".cfi_endproc\n" LAZY_END(#prefix "_bind"));

#else
#error "cuota knows x86-64 and aarch64"
#endif

#endif
