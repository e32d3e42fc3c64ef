/* SPDX-License-Identifier: GPL-2.0-only */
/* The communicators of this node, for the view of a whole job. */
#ifndef SWINGCTL_STATUS_H
#define SWINGCTL_STATUS_H

#include <cjson/cJSON.h>

/* Add all communicators that this user may see to a list, or print them if that is NULL. 0, or a negative errno with a message. */
int status_comms(int fd, cJSON *list);

#endif /* SWINGCTL_STATUS_H */
