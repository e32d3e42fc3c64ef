/* SPDX-License-Identifier: GPL-2.0-only */
/* The files with the specifications of allocate and orders. */
#ifndef SWINGPLAN_SPEC_H
#define SWINGPLAN_SPEC_H

#include "plan/format/spec.h"

/* Read a file, "-" for standard input; ends the program with one line if something is wrong. */
void spec_read_orders(struct swc_spec *s, const char *path);
void spec_read_allocate(struct swc_spec *s, const char *path);

#endif /* SWINGPLAN_SPEC_H */
