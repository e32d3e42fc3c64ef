/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages of the bootstrap on non-blocking TCP sockets. Deadlines are times of swc_socket_now_ms().
 * Calls return 0 or a negative errno: -ETIMEDOUT after the deadline, -ECONNRESET if the other end has
 * closed.
 */
#ifndef SWC_BOOTSTRAP_SOCKET_H
#define SWC_BOOTSTRAP_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWC_SOCKET_MAGIC "swcboot4"
#define SWC_SOCKET_TEXT 240 /* bytes of the text of an error */

uint64_t swc_socket_now_ms(void);
/* Milliseconds until the deadline, for poll(); 0: it has passed. */
int swc_socket_left_ms(uint64_t deadline);

/* Send or receive all of it, without a header. */
int swc_socket_transfer(int fd, void *data, size_t bytes, bool out, uint64_t deadline);
/* Send a message: data, or a line of text if error is not 0. */
int swc_socket_send(int fd, int error, const void *data, size_t bytes, uint64_t deadline);
/* Receive a message. An error in it becomes the result, its text swingcoll_bootstrap_error(). */
int swc_socket_recv(int fd, void *data, size_t bytes, uint64_t deadline);

/* Packed records (pack.h); @data is freed by who has them. */
struct swc_packed {
	void *data;
	size_t bytes;
};

/* The same with @n records of @record bytes, packed; 0 or -ENOMEM. For several receivers. */
int swc_socket_pack(struct swc_packed *p, const void *data, size_t n, size_t record);
int swc_socket_send_packed(int fd, const void *data, size_t n, size_t record, uint64_t deadline);
/* @kept: what has been received, to be passed on, or NULL; not set on error. */
int swc_socket_recv_packed(int fd, void *data, size_t n, size_t record, struct swc_packed *kept,
			   uint64_t deadline);

/* Close *fd unless it is -1, which it becomes. */
void swc_socket_close(int *fd);
void swc_socket_no_delay(int fd);
/* Write the address of the other end; returns text. */
const char *swc_socket_peer_name(int fd, char *text, size_t bytes);
/* Has the other end an address that only its own host knows? */
bool swc_socket_is_loopback(int fd);
/* Is the other end on another host? */
bool swc_socket_is_remote(int fd);

#endif /* SWC_BOOTSTRAP_SOCKET_H */
