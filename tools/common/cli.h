/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Command lines of the tools. A program has a table of options, from which the help text is made, and calls
 * cli_next() until it returns CLI_END, then cli_operand() for what is not an option, then cli_end().
 *
 * A value that is not accepted ends the program with exit status 2 and one line on standard error, which
 * names the option, the value and what is accepted. -h and --help, and -V and --version if there is a
 * version, are handled here.
 */
#ifndef TOOLS_CLI_H
#define TOOLS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/number.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CLI_END (-1)
#define CLI_MAX_OPTIONS 64

struct cli_option {
	int id;		  /* what cli_next() returns; from 0 to CLI_MAX_OPTIONS - 1 */
	char letter;	  /* short form, or 0 */
	const char *name; /* long form, without its dashes */
	const char *arg;  /* its value in the help text, or NULL if it has none */
	const char *text; /* the rest of the help; lines are broken when it is printed */
};

struct cli {
	/* Set by the caller: */
	const char *prog;		  /* in front of messages, such as "swingplan show" */
	const char *usage;		  /* the help text up to the options, without "Usage: " */
	const char *notes;		  /* the help text after them, or NULL */
	const char *version;		  /* or NULL */
	const struct cli_option *options; /* ends with an entry that has no name */
	uint64_t needs;			  /* options that must be given, as bits 1 << id */
	int argc;
	char **argv;

	uint64_t given; /* options so far, as bits 1 << id */

	/* The option or operand at hand: */
	const char *what; /* as in messages: --size, or FILE for an operand */
	char *value;	  /* NULL if the option has none */

	/* Private: */
	bool begun;
	char word[32];
};

int cli_next(struct cli *cli);

/*
 * The exit status of a program that has done all: @status, or 2 after a message if what it has printed
 * could not be written.
 */
int cli_finish(const char *prog, int status);

/* The next operand; ends the program if there is none. name: what it is, such as FILE. */
char *cli_operand(struct cli *cli, const char *name);
bool cli_has_operand(const struct cli *cli);

/* Nothing may be left over, and no needed option may be missing. */
void cli_end(struct cli *cli);

/* The value at hand, checked. */
long long cli_number(const struct cli *cli, long long min, long long max);
double cli_real(const struct cli *cli, double min, double max);
uint64_t cli_size(const struct cli *cli, uint64_t min, uint64_t max);
/* Sizes from 1 byte to 1 TiB with commas between them. Return how many there are, at least one. */
size_t cli_sizes(struct cli *cli, size_t *sizes, size_t max);
/* @parse returns a negative number for a name that it does not know; @names are those it knows. */
int cli_name(const struct cli *cli, int (*parse)(const char *), const char *names);
/* The index of the value among @names, which end with NULL. */
int cli_choice(const struct cli *cli, const char *const *names);

/* Is this variable of the environment set? An empty one counts as not set. */
bool cli_is_set(const char *variable);

/* "PROG: --option VALUE: expected ...", for the value at hand; ends the program. */
void cli_expected(const struct cli *cli, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/* "PROG: ..."; ends the program with exit status 2. */
void cli_fail(const struct cli *cli, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

#endif /* TOOLS_CLI_H */
