/* What code images ask for, by their own headers. */
#include <elf.h>
#include <string.h>

#include "memory_help.h"
#include "memory/image.h"

START_TEST(globals_of_ptx_are_added_up)
{
	struct image_size size =
		image_measure(".version 7.0\n.target sm_70\n"
			      ".visible .global .align 16 .b8 big[1048576];\n"
			      ".global .u32 one;\n"
			      "\t.global .v4 .f32 four[2][3];\n"
			      ".extern .global .f64 a[10], b[20];\n"
			      ".visible .entry f()\n{\n"
			      "\tld.global.u32 %r1, [%rd1];\n\tst.global.f32 [x], %f;\n"
			      "\tcvta.to.global.u64 %a, %b;\n}\n");

	ck_assert_uint_eq(size.data_bytes, 1048576 + 4 + 4 * 4 * 6 + 8 * 30);
	ck_assert_uint_gt(size.code_bytes, 100);
}
END_TEST

START_TEST(sizes_too_large_to_add_saturate)
{
	struct image_size size = image_measure("// x\n.global .b8 a[18446744073709551615];\n"
					       ".global .b8 b[18446744073709551615];\n");

	ck_assert_uint_eq(size.data_bytes, UINT64_MAX);
	size = image_measure("// x\n.global .f64 a[4294967296][4294967296][4294967296];\n");
	ck_assert_uint_eq(size.data_bytes, UINT64_MAX);
}
END_TEST

static size_t make_elf(unsigned char *image, uint64_t code, uint64_t data)
{
	Elf64_Ehdr header = {
		.e_shoff = sizeof(Elf64_Ehdr), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3};
	Elf64_Shdr sections[3] = {
		{.sh_type = SHT_STRTAB, .sh_size = 99999},
		{.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_size = code},
		{.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_WRITE, .sh_size = data},
	};

	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), sections, sizeof(sections));
	return sizeof(header) + sizeof(sections);
}

START_TEST(loadable_sections_of_an_elf_are_added_up)
{
	unsigned char image[1024] = {0};
	struct image_size size;

	make_elf(image, 4096, 64 * MIB);
	size = image_measure(image);
	ck_assert_uint_eq(size.code_bytes, 4096);
	ck_assert_uint_eq(size.data_bytes, 64 * MIB);
}
END_TEST

START_TEST(of_a_fat_binary_the_largest_image_counts)
{
	struct {
		uint32_t magic;
		uint16_t version, header_bytes;
		uint64_t body_bytes;
	} header = {0xba55ed50u, 1, 16, 0};
	struct {
		uint16_t kind, unknown;
		uint32_t header_bytes;
		uint64_t body_bytes;
		uint32_t rest[12];
	} entry = {2, 0x101, 64, 1024, {0}};
	unsigned char image[16 + 3 * (64 + 1024)] = {0}, *at = image + 16;
	struct {
		uint32_t magic, version;
		const void *data, *name;
	} wrapper = {0x466243b1u, 1, image, NULL};

	for (uint64_t i = 1; i <= 3; i++, at += 64 + 1024) {
		memcpy(at, &entry, 64);
		make_elf(at + 64, 100, (i == 2 ? 300 : i) * MIB);
	}
	header.body_bytes = (uint64_t)(at - image - 16);
	memcpy(image, &header, 16);
	ck_assert_uint_eq(image_measure(image).data_bytes, 300 * MIB);
	ck_assert_uint_eq(image_measure(&wrapper).data_bytes, 300 * MIB);
}
END_TEST

START_TEST(what_is_none_of_these_has_no_size)
{
	static const unsigned char noise[64] = {0x80, 1, 2, 3};

	ck_assert_uint_eq(image_measure(noise).data_bytes, 0);
	ck_assert_uint_eq(image_measure(noise).code_bytes, 0);
	ck_assert_uint_eq(image_measure(NULL).data_bytes, 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("image");

	tcase_add_test(tcase, globals_of_ptx_are_added_up);
	tcase_add_test(tcase, sizes_too_large_to_add_saturate);
	tcase_add_test(tcase, loadable_sections_of_an_elf_are_added_up);
	tcase_add_test(tcase, of_a_fat_binary_the_largest_image_counts);
	tcase_add_test(tcase, what_is_none_of_these_has_no_size);
	return help_run("memory image", tcase);
}
