/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that the library reads and writes. plan/ knows what they say; here they are opened, read
 * and written whole.
 *
 * All functions return 0, -ENOMEM, -EINVAL, or the negative errno of the system call that failed.
 * On failure @why gets one line that begins with the path; @why_bytes 0: none.
 */
#ifndef SWC_FILES_H
#define SWC_FILES_H

#include "plan/plan.h"
#include "plan/select/tuning.h"

/* Larger files are refused with -EFBIG, such as devices without an end. */
#define SWC_FILE_MAX_BYTES (1ull << 30)
/* Of those that people write: topologies, times and rates. */
#define SWC_TEXT_FILE_MAX_BYTES (16ull << 20)

/*
 * Read a whole file of at most @most bytes; "-" is standard input. *text has a NUL behind its *bytes bytes, and is the
 * caller's, to be freed with free().
 */
int swc_file_read(const char *path, size_t most, char **text, size_t *bytes, char *why,
		  size_t why_bytes);

/* Write a whole file; NULL is standard output. What was in the file before is lost. */
int swc_file_write(const char *path, const char *text, size_t bytes, char *why, size_t why_bytes);
/* Append to a file, which is made if there is none. */
int swc_file_append(const char *path, const char *text, size_t bytes, char *why, size_t why_bytes);

/* A topology from its text, or from the file that "@FILE" names. Free with swc_topo_free(). */
int swc_file_topo(struct swc_topo *topo, const char *text, char *why, size_t why_bytes);

/* The lines about a topology from a tuning file. Free with swc_tuning_free(). */
int swc_file_tuning(struct swc_tuning *tuning, const char *path, const struct swc_topo *topo,
		    char *why, size_t why_bytes);
/* Add the text of a tuning file to a hash. */
int swc_file_tuning_hash(uint64_t *hash, const char *path, char *why, size_t why_bytes);

/* Can a plan file be read? 0, or a negative errno and a line. Its contents are not looked at. */
int swc_file_plan_readable(const char *path, char *why, size_t why_bytes);
/*
 * One rank's plan from a plan file: see swc_plan_text_parse_rank(). @uneven: the plans must be for shards of
 * different sizes, too; else -EOPNOTSUPP.
 */
int swc_file_plan(const char *path, uint32_t nranks, uint32_t rank, bool uneven, void **plan,
		  size_t *bytes, char *why, size_t why_bytes);

#endif /* SWC_FILES_H */
