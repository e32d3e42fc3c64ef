// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading ELF files: this program, and damaged copies of it, of which no byte outside may be read
 * (the sanitizers watch). TAP on stdout.
 */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "src/elf.h"
#include "tap.h"

#define ROUNDS 1000

/* As many bytes as were read, so that the sanitizer sees the end. */
static char *read_self(size_t *bytes)
{
	FILE *f = fopen("/proc/self/exe", "re");
	char *image = NULL;
	long size;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) <= 0)
		return NULL;
	rewind(f);
	image = malloc((size_t)size);
	*bytes = fread(image, 1, (size_t)size, f);
	fclose(f);
	return image;
}

static bool needs(const struct swc_elf *elf, const char *name)
{
	for (unsigned int i = 0; i < elf->n; i++)
		if (!strcmp(elf->needed[i], name))
			return true;
	return false;
}

/* Every text that a damaged file yields must end within it. */
static void use(const struct swc_elf *elf)
{
	volatile size_t sum = 0;

	for (unsigned int i = 0; i < elf->n; i++)
		sum += strlen(elf->needed[i]);
	if (elf->rpath)
		sum += strlen(elf->rpath);
	if (elf->runpath)
		sum += strlen(elf->runpath);
}

/* The bytes that the reader looks at: the headers and the dynamic section. */
static size_t pick_byte(const Elf64_Phdr *dynamic)
{
	if (rnd(2))
		return rnd(1024);
	return dynamic->p_offset + rnd((uint32_t)dynamic->p_filesz);
}

static void test_damaged(const char *image, size_t bytes)
{
	const Elf64_Ehdr *head = (const void *)image;
	const Elf64_Phdr *p = (const void *)(image + head->e_phoff);
	unsigned int refused = 0;
	struct swc_elf elf;

	while (p->p_type != PT_DYNAMIC)
		p++;
	for (int i = 0; i < ROUNDS; i++) {
		size_t cut = i % 3 ? bytes : rnd((uint32_t)bytes);
		char *copy = malloc(cut ? cut : 1);

		memcpy(copy, image, cut);
		for (unsigned int k = rnd(8) + 1; k--;) {
			size_t at = pick_byte(p);

			if (at < cut)
				copy[at] = (char)rnd(256);
		}
		if (swc_elf_parse(&elf, copy, cut))
			refused++;
		use(&elf);
		free(copy);
	}
	ok(refused, "damaged files: nothing is read outside, and some are refused");
}

int main(void)
{
	size_t bytes = 0;
	char *image = read_self(&bytes);
	struct swc_elf elf;

	printf("TAP version 13\n");
	seed_rnd();
	if (!image)
		return 1;
	ok(!swc_elf_parse(&elf, image, bytes) && needs(&elf, "libc.so.6"),
	   "this program needs the C library");
	ok(swc_elf_parse(&elf, "#!/bin/sh\n", 10) == -ENOEXEC && !elf.n &&
		   swc_elf_parse(&elf, "", 0) == -ENOEXEC,
	   "a script is no ELF file");
	ok(swc_elf_parse(&elf, image, sizeof(Elf64_Ehdr)) == 0 && !elf.n, "only a header");
	test_damaged(image, bytes);
	free(image);
	return done();
}
