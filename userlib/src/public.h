/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The mark of functions that programs may call; the compiler hides all others. */
#ifndef SWC_PUBLIC_H
#define SWC_PUBLIC_H

#define SWC_PUBLIC __attribute__((visibility("default")))

#endif /* SWC_PUBLIC_H */
