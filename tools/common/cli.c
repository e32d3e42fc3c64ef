// SPDX-License-Identifier: GPL-2.0-only
/* Command lines: getopt_long() behind a table, the help text, and values checked against their range. */
#include "common/cli.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What getopt_long() returns for a long form: this and the index in the table. */
#define INDEX 256
#define HELP (INDEX + CLI_MAX_OPTIONS)
#define VERSION (HELP + 1)

#define TEXT_COLUMN 24
#define LAST_COLUMN 98

/* ------------------------------------------------------------------ messages */

static void message(const struct cli *cli, const char *format, va_list args)
{
	fprintf(stderr, "%s: ", cli->prog);
	vfprintf(stderr, format, args);
}

void cli_fail(const struct cli *cli, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	message(cli, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

void cli_expected(const struct cli *cli, const char *format, ...)
{
	char expected[512];
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	cli_fail(cli, "%s %s: expected %s (see %s --help)", cli->what,
		 cli->value && *cli->value ? cli->value : "''", expected, cli->prog);
}

/* A stream keeps the mark of an error, so this sees that of any line before. */
int cli_finish(const char *prog, int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "%s: cannot write to standard output\n", prog);
	return 2;
}

/* ------------------------------------------------------------------ help */

/* A text that begins in TEXT_COLUMN, broken at spaces. */
static void print_wrapped(const char *text)
{
	size_t room = LAST_COLUMN - TEXT_COLUMN;

	while (strlen(text) > room) {
		size_t n = room;

		while (n && text[n] != ' ')
			n--;
		if (!n)
			n = strcspn(text, " ");
		printf("%.*s\n%*s", (int)n, text, TEXT_COLUMN, "");
		text += n;
		text += strspn(text, " ");
	}
	puts(text);
}

static void print_option(char letter, const char *name, const char *arg, const char *text)
{
	char left[64];
	int n;

	if (letter)
		n = snprintf(left, sizeof(left), "  -%c, --%s", letter, name);
	else
		n = snprintf(left, sizeof(left), "      --%s", name);
	if (arg)
		n += snprintf(left + n, sizeof(left) - (size_t)n, " %s", arg);
	if (n < TEXT_COLUMN)
		printf("%-*s", TEXT_COLUMN, left);
	else
		printf("%s\n%*s", left, TEXT_COLUMN, "");
	print_wrapped(text);
}

static void help(const struct cli *cli)
{
	printf("Usage: %s\n", cli->usage);
	for (const struct cli_option *o = cli->options; o->name; o++) {
		char text[512];

		snprintf(text, sizeof(text), "%s%s", o->text,
			 cli->needs & 1ull << o->id ? " (needed)" : "");
		print_option(o->letter, o->name, o->arg, text);
	}
	if (cli->version)
		print_option('V', "version", NULL, "print the version");
	print_option('h', "help", NULL, "print this text");
	if (cli->notes)
		printf("\n%s\n", cli->notes);
	exit(cli_finish(cli->prog, 0));
}

/* ------------------------------------------------------------------ options */

/* The table in the form that getopt_long() takes. */
static void describe(const struct cli *cli, struct option *known, char *letters)
{
	*letters++ = ':'; /* a missing value is told apart from an unknown option */
	for (int i = 0; cli->options[i].name; i++) {
		const struct cli_option *o = &cli->options[i];

		if (i == CLI_MAX_OPTIONS)
			abort();
		*known++ = (struct option){ o->name, o->arg ? required_argument : no_argument, NULL,
					    INDEX + i };
		if (!o->letter)
			continue;
		*letters++ = o->letter;
		if (o->arg)
			*letters++ = ':';
	}
	*known++ = (struct option){ "help", no_argument, NULL, HELP };
	*letters++ = 'h';
	if (cli->version) {
		*known++ = (struct option){ "version", no_argument, NULL, VERSION };
		*letters++ = 'V';
	}
	*known = (struct option){ 0 };
	*letters = 0;
}

static int find(const struct cli *cli, int found)
{
	int i = 0;

	if (found >= INDEX)
		return found - INDEX;
	while (cli->options[i].letter != found)
		i++;
	return i;
}

static void not_an_option(const struct cli *cli, int found)
{
	const char *word = cli->argv[optind - 1];

	/* A letter may stand among others, of which getopt has not reached the end. */
	if (optopt && optopt < INDEX)
		cli_fail(cli, "-%c %s (see %s --help)", optopt,
			 found == ':' ? "needs a value" : "is not an option here", cli->prog);
	cli_fail(cli, "%s %s (see %s --help)", word,
		 found == ':' ? "needs a value"
		 : optopt     ? "takes no value"
			      : "is not an option here",
		 cli->prog);
}

int cli_next(struct cli *cli)
{
	struct option known[CLI_MAX_OPTIONS + 3];
	char letters[2 * CLI_MAX_OPTIONS + 4];
	const struct cli_option *o;
	int c;

	if (!cli->begun) {
		optind = 1;
		opterr = 0;
		cli->begun = true;
	}
	describe(cli, known, letters);
	c = getopt_long(cli->argc, cli->argv, letters, known, NULL);
	if (c == -1)
		return CLI_END;
	if (c == '?' || c == ':')
		not_an_option(cli, c);
	if (c == HELP || c == 'h')
		help(cli);
	if (c == VERSION || (c == 'V' && cli->version)) {
		printf("%s %s\n", cli->prog, cli->version);
		exit(cli_finish(cli->prog, 0));
	}
	o = &cli->options[find(cli, c)];
	cli->given |= 1ull << o->id;
	snprintf(cli->word, sizeof(cli->word), "--%s", o->name);
	cli->what = cli->word;
	cli->value = optarg;
	return o->id;
}

bool cli_has_operand(const struct cli *cli)
{
	return optind < cli->argc;
}

char *cli_operand(struct cli *cli, const char *name)
{
	cli->what = name;
	if (!cli_has_operand(cli))
		cli_fail(cli, "%s is missing (see %s --help)", name, cli->prog);
	cli->value = cli->argv[optind++];
	return cli->value;
}

void cli_end(struct cli *cli)
{
	if (cli_has_operand(cli))
		cli_fail(cli, "unexpected argument \"%s\" (see %s --help)", cli->argv[optind],
			 cli->prog);
	for (const struct cli_option *o = cli->options; o->name; o++)
		if (cli->needs & ~cli->given & 1ull << o->id)
			cli_fail(cli, "--%s %s is missing: %s", o->name, o->arg, o->text);
}

/* ------------------------------------------------------------------ values */

bool cli_is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

long long cli_number(const struct cli *cli, long long min, long long max)
{
	long long v = 0;

	if (number_parse(cli->value, min, max, &v))
		cli_expected(cli, "a whole number from %lld to %lld", min, max);
	return v;
}

double cli_real(const struct cli *cli, double min, double max)
{
	double v = 0;

	if (number_parse_real(cli->value, min, max, &v))
		cli_expected(cli, "a number from %.10g to %.10g", min, max);
	return v;
}

uint64_t cli_size(const struct cli *cli, uint64_t min, uint64_t max)
{
	char low[NUMBER_TEXT], high[NUMBER_TEXT];
	uint64_t v = 0;

	if (number_parse_size(cli->value, min, max, &v))
		cli_expected(cli, "a size from %s to %s, such as 8, 64K or 16M",
			     number_bytes((double)min, low), number_bytes((double)max, high));
	return v;
}

size_t cli_sizes(struct cli *cli, size_t *sizes, size_t max)
{
	char *list = cli->value;
	size_t n = 0;

	/* An empty one is wrong, too. */
	while ((cli->value = strsep(&list, ","))) {
		if (n == max)
			cli_fail(cli, "%s: more than %zu sizes", cli->what, max);
		sizes[n++] = cli_size(cli, 1, 1ull << 40);
	}
	return n;
}

int cli_name(const struct cli *cli, int (*parse)(const char *), const char *names)
{
	int v = parse(cli->value);

	if (v < 0)
		cli_expected(cli, "%s", names);
	return v;
}

int cli_choice(const struct cli *cli, const char *const *names)
{
	char list[256] = "";
	size_t used = 0;

	for (int i = 0; names[i]; i++) {
		if (!strcmp(cli->value, names[i]))
			return i;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
					 !i		? ""
					 : names[i + 1] ? ", "
							: " or ",
					 names[i]);
	}
	cli_expected(cli, "%s", list);
}
