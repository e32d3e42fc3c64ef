/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What an ELF file says about the libraries it is linked with, without running anything. */
#ifndef SWC_ELF_H
#define SWC_ELF_H

#include <stddef.h>

#define SWC_ELF_MAX_NEEDED 256

/* Texts point into the image; NULL: not there. */
struct swc_elf {
	unsigned int n;
	const char *needed[SWC_ELF_MAX_NEEDED];
	const char *rpath, *runpath;
};

/*
 * Read an image in memory, which need not be trusted: 0; -ENOEXEC: not an ELF file of 64 bits and
 * this byte order, or damaged. A file without a dynamic section needs nothing.
 */
int swc_elf_parse(struct swc_elf *elf, const void *image, size_t bytes);

#endif /* SWC_ELF_H */
