/*
 * What an entry of a table of real functions holds before the driver is known: a stub that finds the
 * driver, keeps all arguments, and goes on to the real function; like a PLT slot. So every entry can be
 * called at any time, and no hook body needs a guard of its own.
 *
 * LAZY_STUB(prefix, symbol, n) defines prefix_<symbol>, entry number n of its table. The stubs of a
 * prefix meet, through lazy_bind.S, in
 *	void *<prefix>_find(unsigned long n, unsigned long *ret_code)
 * which answers the function to go on to, or NULL and the code to return to the program.
 */
#ifndef CUOTA_DRIVER_LAZY_H
#define CUOTA_DRIVER_LAZY_H

#define LAZY_TEXT(x)  LAZY_TEXT_(x)
#define LAZY_TEXT_(x) #x

/* clang-format off */
#if defined(__x86_64__)
#define LAZY_BODY(prefix, n)                             \
	"endbr64\n"                                      \
	"mov $" LAZY_TEXT(n) ", %r11d\n"                 \
	"lea " #prefix "_find(%rip), %r10\n"             \
	"jmp lazy_bind\n"
#elif defined(__aarch64__)
#define LAZY_BODY(prefix, n)                             \
	"hint #34\n"                                     \
	"mov x17, #" LAZY_TEXT(n) "\n"                   \
	"adrp x16, " #prefix "_find\n"                   \
	"add x16, x16, :lo12:" #prefix "_find\n"         \
	"b lazy_bind\n"
#else
#error "cuota knows x86-64 and aarch64"
#endif

#define LAZY_STUB(prefix, symbol, n)                     \
	__asm__(".pushsection .text\n"                   \
		".hidden lazy_bind\n"                    \
		".balign 16\n"                           \
		".type " #prefix "_" #symbol ", %function\n" \
		#prefix "_" #symbol ":\n"                \
		LAZY_BODY(prefix, n)                     \
		".size " #prefix "_" #symbol ", . - " #prefix "_" #symbol "\n" \
		".popsection\n");
/* clang-format on */

#endif
