/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
#ifndef SWC_CORE_TEXT_H
#define SWC_CORE_TEXT_H

#include <linux/swingcoll.h>

#include "types.h"

/*
 * A pid in a kept text: the process's own one, and the inode number of its pid namespace between two
 * characters that no other part of a text has.
 */
#define SWC_TEXT_NS		'\x01'
#define SWC_TEXT_NS_END		'\x02'
#define SWC_TEXT_PID		"pid %d\x01%x\x02"

/**
 * swc_text_read() - a kept text, as its reader understands it
 * @to: SWC_TEXT_BYTES; padded with zeros
 * @from: at most SWC_TEXT_BYTES, with its terminating NUL
 * @pid_ns: inode number of the reader's pid namespace; 0: the text leaves this node
 *
 * A pid of another namespace is followed by "in another pid namespace". What does not fit is cut off.
 */
void swc_text_read(char *to, const char *from, u32 pid_ns);

#endif /* SWC_CORE_TEXT_H */
