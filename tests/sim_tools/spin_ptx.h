/*
 * A kernel with a fixed amount of work, for the real and the simulated GPU: it is called sim_spin and takes nanoseconds. On a
 * card it counts iterations worth about as much (108 ns each on an H200 filled with 1,056 blocks of 256 threads); the
 * simulator occupies the device for exactly that long.
 */
#ifndef CUOTA_TESTS_SPIN_PTX_H
#define CUOTA_TESTS_SPIN_PTX_H

#define SPIN_GRID  1056
#define SPIN_BLOCK 256

static const char spin_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .global .align 4 .u32 sink;\n"
	".visible .entry sim_spin(.param .u64 ns)\n{\n"
	".reg .pred %p<3>;\n.reg .u64 %n, %i, %s;\n.reg .u32 %a;\n"
	"ld.param.u64 %n, [ns];\nmov.u64 %i, 0;\ncvt.u32.u64 %a, %n;\n"
	"LOOP:\n"
	"mad.lo.u32 %a, %a, 1664525, 1013904223;\nmad.lo.u32 %a, %a, 22695477, 1;\n"
	"mad.lo.u32 %a, %a, 1664525, 1013904223;\nmad.lo.u32 %a, %a, 22695477, 1;\n"
	"mad.lo.u32 %a, %a, 1664525, 1013904223;\nmad.lo.u32 %a, %a, 22695477, 1;\n"
	"add.u64 %i, %i, 108;\nsetp.lt.u64 %p1, %i, %n;\n@%p1 bra LOOP;\n"
	"setp.eq.u32 %p2, %a, 12345;\nmov.u64 %s, sink;\n@%p2 st.global.u32 [%s], %a;\nret;\n}\n";

#endif
