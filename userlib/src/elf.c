// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading the dynamic section of an ELF file. Every offset is checked against the image before it
 * is used; structs are copied out, as nothing in a file is sure to be aligned.
 */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/elf.h"

struct image {
	const char *start;
	size_t bytes;
	Elf64_Ehdr head;
};

static bool take(const struct image *im, uint64_t at, void *to, size_t bytes)
{
	if (at > im->bytes || bytes > im->bytes - at)
		return false;
	memcpy(to, im->start + at, bytes);
	return true;
}

static bool take_segment(const struct image *im, unsigned int i, Elf64_Phdr *p)
{
	return i < im->head.e_phnum && im->head.e_phentsize >= sizeof(*p) &&
	       take(im, im->head.e_phoff + (uint64_t)i * im->head.e_phentsize, p, sizeof(*p));
}

/* Where an address of the program lies in the file. */
static bool find_address(const struct image *im, uint64_t address, uint64_t *at)
{
	Elf64_Phdr p;

	for (unsigned int i = 0; take_segment(im, i, &p); i++) {
		if (p.p_type != PT_LOAD || address < p.p_vaddr || address - p.p_vaddr >= p.p_filesz)
			continue;
		*at = address - p.p_vaddr + p.p_offset;
		return *at < im->bytes;
	}
	return false;
}

/* A text of the string table that ends within the image, or NULL. */
static const char *text_at(const struct image *im, uint64_t table, uint64_t offset)
{
	uint64_t at;

	if (offset > im->bytes || !find_address(im, table + offset, &at))
		return NULL;
	return memchr(im->start + at, 0, im->bytes - at) ? im->start + at : NULL;
}

static bool next_entry(const struct image *im, const Elf64_Phdr *p, uint64_t i, Elf64_Dyn *d)
{
	return (i + 1) * sizeof(*d) <= p->p_filesz &&
	       take(im, p->p_offset + i * sizeof(*d), d, sizeof(*d)) && d->d_tag != DT_NULL;
}

static int read_dynamic(struct swc_elf *elf, const struct image *im, const Elf64_Phdr *p)
{
	uint64_t table = 0;
	Elf64_Dyn d;

	for (uint64_t i = 0; next_entry(im, p, i, &d); i++)
		if (d.d_tag == DT_STRTAB)
			table = d.d_un.d_ptr;
	for (uint64_t i = 0; next_entry(im, p, i, &d); i++) {
		const char *text;

		if (d.d_tag != DT_NEEDED && d.d_tag != DT_RPATH && d.d_tag != DT_RUNPATH)
			continue;
		text = text_at(im, table, d.d_un.d_val);
		if (!text)
			return -ENOEXEC;
		if (d.d_tag == DT_RPATH)
			elf->rpath = text;
		else if (d.d_tag == DT_RUNPATH)
			elf->runpath = text;
		else if (elf->n < SWC_ELF_MAX_NEEDED)
			elf->needed[elf->n++] = text;
	}
	return 0;
}

int swc_elf_parse(struct swc_elf *elf, const void *image, size_t bytes)
{
	const unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
									      : ELFDATA2MSB;
	struct image im = { .start = image, .bytes = bytes };
	Elf64_Phdr p;

	*elf = (struct swc_elf){ 0 };
	if (!take(&im, 0, &im.head, sizeof(im.head)) || memcmp(im.head.e_ident, ELFMAG, SELFMAG) ||
	    im.head.e_ident[EI_CLASS] != ELFCLASS64 || im.head.e_ident[EI_DATA] != order ||
	    im.head.e_phoff > bytes)
		return -ENOEXEC;
	for (unsigned int i = 0; take_segment(&im, i, &p); i++)
		if (p.p_type == PT_DYNAMIC)
			return read_dynamic(elf, &im, &p);
	return 0;
}
