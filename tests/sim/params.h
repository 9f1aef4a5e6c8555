/*
 * PARAMS(types...) is a parameter list with names, ARGS(types...) those names in the same order,
 * for one to sixteen types.
 */
#ifndef SIM_PARAMS_H
#define SIM_PARAMS_H

/* clang-format off */
#define PARAMS_1(t) t a1
#define PARAMS_2(t, ...) t a2, PARAMS_1(__VA_ARGS__)
#define PARAMS_3(t, ...) t a3, PARAMS_2(__VA_ARGS__)
#define PARAMS_4(t, ...) t a4, PARAMS_3(__VA_ARGS__)
#define PARAMS_5(t, ...) t a5, PARAMS_4(__VA_ARGS__)
#define PARAMS_6(t, ...) t a6, PARAMS_5(__VA_ARGS__)
#define PARAMS_7(t, ...) t a7, PARAMS_6(__VA_ARGS__)
#define PARAMS_8(t, ...) t a8, PARAMS_7(__VA_ARGS__)
#define PARAMS_9(t, ...) t a9, PARAMS_8(__VA_ARGS__)
#define PARAMS_10(t, ...) t a10, PARAMS_9(__VA_ARGS__)
#define PARAMS_11(t, ...) t a11, PARAMS_10(__VA_ARGS__)
#define PARAMS_12(t, ...) t a12, PARAMS_11(__VA_ARGS__)
#define PARAMS_13(t, ...) t a13, PARAMS_12(__VA_ARGS__)
#define PARAMS_14(t, ...) t a14, PARAMS_13(__VA_ARGS__)
#define PARAMS_15(t, ...) t a15, PARAMS_14(__VA_ARGS__)
#define PARAMS_16(t, ...) t a16, PARAMS_15(__VA_ARGS__)
#define ARGS_1 a1
#define ARGS_2 a2, ARGS_1
#define ARGS_3 a3, ARGS_2
#define ARGS_4 a4, ARGS_3
#define ARGS_5 a5, ARGS_4
#define ARGS_6 a6, ARGS_5
#define ARGS_7 a7, ARGS_6
#define ARGS_8 a8, ARGS_7
#define ARGS_9 a9, ARGS_8
#define ARGS_10 a10, ARGS_9
#define ARGS_11 a11, ARGS_10
#define ARGS_12 a12, ARGS_11
#define ARGS_13 a13, ARGS_12
#define ARGS_14 a14, ARGS_13
#define ARGS_15 a15, ARGS_14
#define ARGS_16 a16, ARGS_15
#define PICK(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15, t16, n, ...) n
#define COUNT(...) PICK(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define JOIN(a, b) JOIN_AGAIN(a, b)
#define JOIN_AGAIN(a, b) a##b
#define PARAMS(...) JOIN(PARAMS_, COUNT(__VA_ARGS__))(__VA_ARGS__)
#define ARGS(...) JOIN(ARGS_, COUNT(__VA_ARGS__))
/* clang-format on */

#endif
