// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lines over vector sizes as an SVG picture: sizes on a logarithmic axis, times on another or percent on a
 * linear one, a legend at the right. Colour, dashes and marks tell the lines apart.
 */
#include "swingplan.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define WIDTH 960.0
#define HEIGHT 540.0
#define LEFT 84.0
#define RIGHT 200.0 /* room for the legend */
#define TOP 48.0
#define BOTTOM 64.0
#define X_LABELS 8
#define LEGEND_LINE 22.0

static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
				       "#7a5195", "#8c6d1f", "#444444" };
static const char *const dashes[] = { "none", "7 3", "2 3" };

#define NCOLOURS (sizeof(colours) / sizeof(colours[0]))
#define NDASHES (sizeof(dashes) / sizeof(dashes[0]))

struct axis {
	double low, high; /* of what is drawn: logarithms if log */
	double from, to;  /* in the picture */
	bool log;
};

static double place(const struct axis *a, double v)
{
	double part = ((a->log ? log10(v) : v) - a->low) / (a->high - a->low);

	return a->from + part * (a->to - a->from);
}

/* 1, 2 or 5 times a power of ten, so that some eight of them make up the range. */
static double nice_step(double range)
{
	double power = pow(10, floor(log10(range / 8))), lead = range / 8 / power;

	return power * (lead > 5 ? 10 : lead > 2 ? 5 : lead > 1 ? 2 : 1);
}

static bool drawn(const struct plot *p, double v)
{
	return isfinite(v) && (v > 0 || !p->log_y);
}

static void find_range(const struct plot *p, double *low, double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (unsigned int i = 0; i < p->nseries; i++)
		for (unsigned int s = 0; s < p->nsizes; s++)
			if (drawn(p, p->series[i].y[s])) {
				*low = fmin(*low, p->series[i].y[s]);
				*high = fmax(*high, p->series[i].y[s]);
			}
}

static struct axis y_axis(const struct plot *p)
{
	struct axis a = { .from = HEIGHT - BOTTOM, .to = TOP, .log = p->log_y };
	double low, high, step;

	find_range(p, &low, &high);
	if (!(low <= high))
		low = high = 1;
	if (p->log_y) {
		a.low = floor(log10(low));
		a.high = ceil(log10(high));
		a.high += a.high > a.low ? 0 : 1;
		return a;
	}
	low = fmin(low, 0);
	high = fmax(high, 10);
	step = nice_step(high - low);
	a.low = floor(low / step) * step;
	a.high = ceil(high / step) * step;
	return a;
}

static struct axis x_axis(const struct plot *p)
{
	struct axis a = { .from = LEFT, .to = WIDTH - RIGHT, .log = true };
	double low = INFINITY, high = 0;

	for (unsigned int s = 0; s < p->nsizes; s++) {
		low = fmin(low, p->sizes[s]);
		high = fmax(high, p->sizes[s]);
	}
	a.low = log10(low);
	a.high = log10(high);
	if (!(a.high > a.low)) {
		a.low -= 0.5;
		a.high += 0.5;
	}
	return a;
}

static void y_tick(FILE *f, double y, const char *label)
{
	fprintf(f,
		"<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#%s\"/>\n"
		"<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
		LEFT, WIDTH - RIGHT, y, y, *label ? "ddd" : "f3f3f3", LEFT - 8, y + 4, label);
}

static void draw_y(FILE *f, const struct axis *a, const char *label)
{
	double step = a->log ? 1 : nice_step(a->high - a->low);
	char text[PLAN_TEXT];

	for (double v = a->low; v < a->high + step / 2; v += step) {
		if (!a->log)
			snprintf(text, sizeof(text), "%g", fabs(v) < step / 2 ? 0 : v);
		y_tick(f, a->from + (v - a->low) / (a->high - a->low) * (a->to - a->from),
		       a->log ? plan_time_text(pow(10, v), text) : text);
		for (int m = 2; a->log && m < 10 && v + 0.5 < a->high; m++)
			y_tick(f, place(a, m * pow(10, v)), "");
	}
	if (!a->log)
		fprintf(f, "<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#666\"/>\n",
			LEFT, WIDTH - RIGHT, place(a, 0), place(a, 0));
	fprintf(f,
		"<text transform=\"translate(18 %g) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
		(TOP + HEIGHT - BOTTOM) / 2, label);
}

static void draw_x(FILE *f, const struct axis *a)
{
	/* Powers of four, or of more if they were too close. */
	double octaves = (a->high - a->low) / log10(2),
	       step = fmax(2, 2 * ceil(octaves / 2 / X_LABELS));
	char text[PLAN_TEXT];

	for (double e = ceil(a->low / log10(2) - 1e-9); e <= a->high / log10(2) + 1e-9; e += step)
		fprintf(f,
			"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\" stroke=\"#ddd\"/>\n"
			"<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
			place(a, exp2(e)), place(a, exp2(e)), TOP, HEIGHT - BOTTOM,
			place(a, exp2(e)), HEIGHT - BOTTOM + 18, plan_bytes_text(exp2(e), text));
	fprintf(f, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">size of the vector</text>\n",
		(LEFT + WIDTH - RIGHT) / 2, HEIGHT - 20);
}

static void draw_mark(FILE *f, unsigned int i, double x, double y)
{
	const char *colour = colours[i % NCOLOURS];

	switch (i / NCOLOURS % 3) {
	case 0:
		fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x, y, colour);
		break;
	case 1:
		fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\" fill=\"%s\"/>\n",
			x - 3, y - 3, colour);
		break;
	default:
		fprintf(f, "<path d=\"M%.1f %.1fl-4 7h8z\" fill=\"%s\"/>\n", x, y - 4, colour);
	}
}

static void draw_path(FILE *f, unsigned int i)
{
	fprintf(f,
		"<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" d=\"",
		colours[i % NCOLOURS], dashes[i / NCOLOURS % NDASHES]);
}

static void draw_series(FILE *f, const struct plot *p, unsigned int i, const struct axis *x,
			const struct axis *y)
{
	const struct series *c = &p->series[i];
	double line = TOP + 10 + i * LEGEND_LINE;
	bool pen = false;

	draw_path(f, i);
	for (unsigned int s = 0; s < p->nsizes; s++) {
		if (!drawn(p, c->y[s])) {
			pen = false;
			continue;
		}
		fprintf(f, "%c%.1f %.1f", pen ? 'L' : 'M', place(x, p->sizes[s]),
			place(y, c->y[s]));
		pen = true;
	}
	fprintf(f, "\"/>\n");
	for (unsigned int s = 0; s < p->nsizes; s++)
		if (drawn(p, c->y[s]))
			draw_mark(f, i, place(x, p->sizes[s]), place(y, c->y[s]));
	draw_path(f, i);
	fprintf(f, "M%g %gh30\"/>\n", WIDTH - RIGHT + 16, line);
	draw_mark(f, i, WIDTH - RIGHT + 31, line);
	fprintf(f, "<text x=\"%g\" y=\"%g\">%s</text>\n", WIDTH - RIGHT + 54, line + 4, c->name);
}

int plot_write(const struct plot *p, const char *path)
{
	double height = fmax(HEIGHT, TOP + 20 + p->nseries * LEGEND_LINE);
	struct axis x = x_axis(p), y = y_axis(p);
	FILE *f = fopen(path, "we");
	bool failed;

	if (!f)
		return -errno;
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
		"viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%g\" y=\"26\" font-size=\"15\">%s</text>\n",
		WIDTH, height, WIDTH, height, LEFT, p->title);
	draw_y(f, &y, p->y_label);
	draw_x(f, &x);
	for (unsigned int i = 0; i < p->nseries; i++)
		draw_series(f, p, i, &x, &y);
	fprintf(f,
		"<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"#666\"/>\n"
		"</svg>\n",
		LEFT, TOP, WIDTH - RIGHT - LEFT, HEIGHT - BOTTOM - TOP);
	failed = ferror(f);
	return fclose(f) || failed ? -EIO : 0;
}
