// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files; see files.h. Nothing here keeps state.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/format/plan_text.h"
#include "plan/hash.h"
#include "plan/text.h"
#include "src/files.h"

/* ---- bytes ---- */

/* Of a path, for messages. */
static const char *name(const char *path)
{
	return *path ? path : "''";
}

static int fail(int error, const char *path, char *why, size_t why_bytes)
{
	swc_text_refuse(why, why_bytes, "%s: %s", name(path), strerror(-error));
	return error;
}

static int read_all(FILE *f, size_t most, char **text, size_t *bytes)
{
	size_t room = 4096, used = 0;
	char *p = malloc(room);

	while (p) {
		char *more;

		used += fread(p + used, 1, room - 1 - used, f);
		if (ferror(f) || used > most) {
			int error = ferror(f) ? -errno : -EFBIG;

			free(p);
			return error;
		}
		if (used < room - 1) {
			p[used] = 0;
			*text = p;
			*bytes = used;
			return 0;
		}
		/* One more than may be is enough to see that it is too much. */
		room = 2 * room < most + 2 ? 2 * room : most + 2;
		more = realloc(p, room);
		if (!more)
			free(p);
		p = more;
	}
	return -ENOMEM;
}

int swc_file_read(const char *path, size_t most, char **text, size_t *bytes, char *why,
		  size_t why_bytes)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	int ret = f ? read_all(f, most, text, bytes) : -errno;

	if (f && f != stdin)
		fclose(f);
	if (ret == -EFBIG)
		swc_text_refuse(why, why_bytes, "%s: %s: more than %zu MiB", name(path),
				strerror(EFBIG), most >> 20);
	else if (ret)
		fail(ret, path, why, why_bytes);
	return ret;
}

static int write_all(const char *path, const char *mode, const char *text, size_t bytes, char *why,
		     size_t why_bytes)
{
	FILE *f = path ? fopen(path, mode) : stdout;
	int ret = 0;

	if (!f)
		return fail(-errno, path, why, why_bytes);
	if (fwrite(text, 1, bytes, f) != bytes || fflush(f))
		ret = -errno;
	if (path && fclose(f) && !ret)
		ret = -errno;
	return ret ? fail(ret, path ? path : "standard output", why, why_bytes) : 0;
}

int swc_file_write(const char *path, const char *text, size_t bytes, char *why, size_t why_bytes)
{
	return write_all(path, "we", text, bytes, why, why_bytes);
}

int swc_file_append(const char *path, const char *text, size_t bytes, char *why, size_t why_bytes)
{
	return write_all(path, "ae", text, bytes, why, why_bytes);
}

/* ---- what they say ---- */

/* Put the path in front of what a parser says. */
static int say_where(int ret, const char *path, const char *text, char *why, size_t why_bytes)
{
	if (ret)
		swc_text_refuse(why, why_bytes, "%s: %s", path,
				ret == -ENOMEM ? strerror(ENOMEM) : text);
	return ret;
}

/* Read a file of a known kind, and say what that is if it cannot be read. */
static int read_kind(const char *path, const char *kind, size_t most, char **text, size_t *bytes,
		     char *why, size_t why_bytes)
{
	int ret = swc_file_read(path, most, text, bytes, why, why_bytes);

	if (ret)
		swc_text_refuse(why, why_bytes, "%s: %s: expected %s", name(path), strerror(-ret),
				kind);
	return ret;
}

/* A text without NULs. */
static int read_text(const char *path, const char *kind, char **text, char *why, size_t why_bytes)
{
	size_t bytes;
	int ret = read_kind(path, kind, SWC_TEXT_FILE_MAX_BYTES, text, &bytes, why, why_bytes);

	if (ret || strlen(*text) == bytes)
		return ret;
	free(*text);
	return swc_text_refuse(why, why_bytes, "%s: holds a zero byte and so no text", path);
}

int swc_file_topo(struct swc_topo *topo, const char *text, char *why, size_t why_bytes)
{
	char line[200] = "", *content;
	int ret;

	if (*text != '@')
		return swc_topo_parse(topo, text, why, why_bytes);
	memset(topo, 0, sizeof(*topo));
	ret = read_text(text + 1, "a file with a topology, see swingcoll-topology(7)", &content,
			why, why_bytes);
	if (ret)
		return ret;
	ret = swc_topo_parse_file(topo, content, line, sizeof(line));
	free(content);
	return say_where(ret, text + 1, line, why, why_bytes);
}

#define TUNING_KIND "a file that swingperf --tune has written"

int swc_file_tuning_hash(uint64_t *hash, const char *path, char *why, size_t why_bytes)
{
	char *content;
	int ret = read_text(path, TUNING_KIND, &content, why, why_bytes);

	if (ret)
		return ret;
	*hash = swc_hash_text(*hash, content);
	free(content);
	return 0;
}

int swc_file_tuning(struct swc_tuning *tuning, const char *path, const struct swc_topo *topo,
		    char *why, size_t why_bytes)
{
	char line[200] = "", *content;
	int ret = read_text(path, TUNING_KIND, &content, why, why_bytes);

	*tuning = (struct swc_tuning){ 0 };
	if (ret)
		return ret;
	ret = swc_tuning_parse(tuning, content, topo, line, sizeof(line));
	free(content);
	return say_where(ret, path, line, why, why_bytes);
}

#define PLAN_KIND "a plan file, as swingplan export writes it"

int swc_file_plan_readable(const char *path, char *why, size_t why_bytes)
{
	char *content;
	size_t size;
	int ret = read_kind(path, PLAN_KIND, SWC_FILE_MAX_BYTES, &content, &size, why, why_bytes);

	if (!ret)
		free(content);
	return ret;
}

/* 0, -EOPNOTSUPP and a line, or another error. */
static int check_places(const char *text, size_t text_bytes, char *why, size_t why_bytes)
{
	struct swc_plan_set set;
	int ret = swc_plan_text_parse(text, text_bytes, &set, why, why_bytes);

	if (ret)
		return ret;
	ret = swc_plan_keeps_places((const void *const *)set.plan, set.bytes, set.nranks, why,
				    why_bytes);
	swc_plan_set_free(&set);
	return ret == -EINVAL ? -EOPNOTSUPP : ret;
}

int swc_file_plan(const char *path, uint32_t nranks, uint32_t rank, bool uneven, void **plan,
		  size_t *bytes, char *why, size_t why_bytes)
{
	char line[250] = "", *content;
	size_t size;
	int ret = read_kind(path, PLAN_KIND, SWC_FILE_MAX_BYTES, &content, &size, why, why_bytes);

	if (ret)
		return ret;
	ret = swc_plan_text_parse_rank(content, size, nranks, rank, plan, bytes, line,
				       sizeof(line));
	if (!ret && uneven) {
		ret = check_places(content, size, line, sizeof(line));
		if (ret) {
			free(*plan);
			*plan = NULL;
		}
	}
	free(content);
	return say_where(ret, path, line, why, why_bytes);
}
