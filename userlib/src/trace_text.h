/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events of a communicator's recording as text, for the library and for swingctl. */
#ifndef SWC_TRACE_TEXT_H
#define SWC_TRACE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <linux/swingcoll.h>

/* Room for any text below. */
#define SWC_TRACE_LINE 192

/* "submit" for SWC_TRACE_SUBMIT; "?" for numbers that do not exist. */
const char *swc_trace_type_name(unsigned int type);

/* What a record says beyond its other fields, such as "allreduce, 8 bytes". Returns @text. */
const char *swc_trace_words(const struct swc_trace_record *r, char text[SWC_TRACE_LINE]);

/* The columns of swc_trace_line(). */
const char *swc_trace_heading(void);

/* A record as a line of columns, without a newline; @start: the time from which it counts. */
const char *swc_trace_line(const struct swc_trace_record *r, uint64_t start,
			   char text[SWC_TRACE_LINE]);

/* The step of an event that has one, -1 of any other. */
long swc_trace_step(const struct swc_trace_record *r);

#endif /* SWC_TRACE_TEXT_H */
