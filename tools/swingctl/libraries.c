// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which libraries a program is linked with, directly or through others: what ldd shows, but ldd runs the
 * program. Libraries are searched where ld.so(8) looks: the run path, LD_LIBRARY_PATH, the cache of ldconfig,
 * and the usual folders. One that is not found is named, and not looked into.
 */
#include "swingctl/libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/elf.h"

#define MAX_LIBRARIES 512
#define MAX_PATH 4096

struct walk {
	bool (*seen)(void *arg, const char *name);
	void *arg;
	char *name[MAX_LIBRARIES];
	unsigned int n;
};

struct file {
	void *image;
	size_t bytes;
};

static int open_file(struct file *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	f->image = MAP_FAILED;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!S_ISREG(st.st_mode) || !st.st_size)
		ret = -ENOEXEC;
	if (!ret) {
		f->bytes = (size_t)st.st_size;
		f->image = mmap(NULL, f->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		if (f->image == MAP_FAILED)
			ret = -errno;
	}
	close(fd);
	return ret;
}

/* ------------------------------------------------------------------ finding a library */

static bool is_there(const char *path)
{
	return !access(path, R_OK);
}

/* Search a list of folders with colons between them; $ORIGIN is the folder of the file that has the list. */
static bool search(char *path, const char *list, const char *origin, const char *name)
{
	while (list && *list) {
		size_t length = strcspn(list, ":");
		const char *rest = list;
		size_t prefix = 0;
		char folder[MAX_PATH] = "";

		if (!strncmp(list, "$ORIGIN", 7) || !strncmp(list, "${ORIGIN}", 9)) {
			prefix = list[1] == '{' ? 9 : 7;
			rest = list + prefix;
			snprintf(folder, sizeof(folder), "%.*s",
				 (int)(strrchr(origin, '/') ? strrchr(origin, '/') - origin : 1),
				 strrchr(origin, '/') ? origin : ".");
		}
		if (length >= prefix &&
		    (size_t)snprintf(path, MAX_PATH, "%s%.*s/%s", folder, (int)(length - prefix),
				     rest, name) < MAX_PATH &&
		    is_there(path))
			return true;
		list += length + (list[length] == ':');
	}
	return false;
}

/* The cache of ldconfig: a header, entries of 24 bytes, and texts at offsets from the start of the file. */
static bool search_cache(char *path, const char *name)
{
	static const char magic[] = "glibc-ld.so.cache1.1";
	struct entry {
		int32_t flags;
		uint32_t key, value, os;
		uint64_t hwcap;
	} e;
	struct file f;
	uint32_t n = 0;
	bool found = false;

	if (open_file(&f, "/etc/ld.so.cache"))
		return false;
	if (f.bytes > 48 && !memcmp(f.image, magic, sizeof(magic) - 1))
		memcpy(&n, (char *)f.image + 20, sizeof(n));
	for (uint32_t i = 0; i < n && !found && 48 + (i + 1ull) * sizeof(e) <= f.bytes; i++) {
		memcpy(&e, (char *)f.image + 48 + i * sizeof(e), sizeof(e));
		if (e.key >= f.bytes || e.value >= f.bytes ||
		    !memchr((char *)f.image + e.key, 0, f.bytes - e.key) ||
		    !memchr((char *)f.image + e.value, 0, f.bytes - e.value) ||
		    strcmp((char *)f.image + e.key, name))
			continue;
		snprintf(path, MAX_PATH, "%s", (char *)f.image + e.value);
		found = is_there(path);
	}
	munmap(f.image, f.bytes);
	return found;
}

static bool find_library(char *path, const struct swc_elf *by, const char *origin, const char *name)
{
	if (strchr(name, '/'))
		return snprintf(path, MAX_PATH, "%s", name) < MAX_PATH && is_there(path);
	return (!by->runpath && search(path, by->rpath, origin, name)) ||
	       search(path, getenv("LD_LIBRARY_PATH"), origin, name) ||
	       search(path, by->runpath, origin, name) || search_cache(path, name) ||
	       search(path, "/lib:/usr/lib:/lib64:/usr/lib64", origin, name);
}

bool libraries_find(const char *name)
{
	const struct swc_elf none = { 0 };
	char path[MAX_PATH];

	return find_library(path, &none, "", name);
}

/* ------------------------------------------------------------------ walking */

static bool is_known(struct walk *w, const char *name)
{
	for (unsigned int i = 0; i < w->n; i++)
		if (!strcmp(w->name[i], name))
			return true;
	return false;
}

/* 1: @seen wants no more. */
static int visit(struct walk *w, const char *path)
{
	char next[MAX_PATH];
	struct swc_elf elf;
	struct file f;
	int ret = open_file(&f, path);

	if (ret)
		return ret;
	ret = swc_elf_parse(&elf, f.image, f.bytes);
	/* Those that the file names itself come first. */
	for (unsigned int i = 0; !ret && i < elf.n; i++)
		if (!is_known(w, elf.needed[i]) && w->seen(w->arg, elf.needed[i]))
			ret = 1;
	for (unsigned int i = 0; !ret && i < elf.n && w->n < MAX_LIBRARIES; i++) {
		if (is_known(w, elf.needed[i]))
			continue;
		w->name[w->n] = strdup(elf.needed[i]);
		if (!w->name[w->n])
			ret = -ENOMEM;
		else
			w->n++;
		if (!ret && find_library(next, &elf, path, elf.needed[i]) && visit(w, next) == 1)
			ret = 1;
	}
	munmap(f.image, f.bytes);
	return ret;
}

int libraries_walk(const char *path, bool (*seen)(void *arg, const char *name), void *arg)
{
	struct walk *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->seen = seen;
	w->arg = arg;
	ret = visit(w, path);
	for (unsigned int i = 0; i < w->n; i++)
		free(w->name[i]);
	free(w);
	return ret > 0 ? 0 : ret;
}
