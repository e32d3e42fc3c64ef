/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a rank can be reached by the others of its communicator, apart from collectives, also after those
 * have failed: sockets that listen as long as the communicator exists. The kernel closes them when the
 * process ends, which tells the others of its death.
 */
#ifndef SWC_AGREE_ENDPOINT_H
#define SWC_AGREE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SWC_HELLO_KEY 16 /* bytes: an id */

/**
 * struct swc_hello - the beginning of a connection, from both sides
 * @number: of the agreement on the communicator
 * @mac: of the fields before it, by the communicator's id
 * @door: of the fields before it, by the key of the endpoints, which tells strangers at once from ranks of a
 *	communicator or an agreement that the other end does not know yet
 */
struct swc_hello {
	char magic[8];
	uint32_t from;
	uint32_t to;
	uint64_t number;
	uint8_t mac[16];
	uint8_t door[16];
};

struct swc_hello swc_hello_make(const uint8_t *door, const uint8_t *key, uint32_t from, uint32_t to,
				uint64_t number);
/* Does it come from a rank of the communicator, to rank @to, for that agreement? Its door is no matter. */
bool swc_hello_is_for(const struct swc_hello *h, const uint8_t *key, uint32_t to, uint64_t number);

/* Of one process; shared by a communicator and those that are shrunk from it. Locks itself. */
struct swc_endpoint;

/* Listen by TCP at any port. 0 or a negative errno. */
int swc_endpoint_open(struct swc_endpoint **ep);
/* The TCP port; 0: none. */
uint16_t swc_endpoint_port(const struct swc_endpoint *ep);
/*
 * Listen for ranks of this node, by a name that follows from the communicator's id and the rank. *ep NULL:
 * make it. @remote false: stop to listen by TCP.
 */
int swc_endpoint_bind(struct swc_endpoint **ep, const uint8_t *key, uint32_t rank, bool remote);
/* The address for that name. Returns its length. */
socklen_t swc_endpoint_name(struct sockaddr_un *sa, const uint8_t *key, uint32_t rank);
struct swc_endpoint *swc_endpoint_get(struct swc_endpoint *ep);
/* NULL is allowed. */
void swc_endpoint_put(struct swc_endpoint *ep);
/* In the child of a fork: close the copies, or the parent's death would not be noticed. */
void swc_endpoint_forked(struct swc_endpoint *ep);

/* The listening sockets, for poll(), up to 2; -1: none. */
void swc_endpoint_listeners(const struct swc_endpoint *ep, int fd[2]);
/*
 * Accept some of what has connected, and close what is of no use: strangers, and connections that nobody has
 * taken and whose other end has closed. 0, or -EMFILE and the like.
 */
int swc_endpoint_accept(struct swc_endpoint *ep);
/* Take a connection whose hello is for this; -1: there is none. *from is who has made it. */
int swc_endpoint_take(struct swc_endpoint *ep, const uint8_t *key, uint32_t to, uint64_t number,
		      uint32_t *from);

/**
 * struct swc_peers - how a rank reaches the others of its communicator
 * @ep: its own endpoint; a reference
 * @key: id of the first communicator with these endpoints
 * @origin: by rank: the rank in that communicator
 * @port: by rank: where it listens by TCP; all 0 if all ranks are on one node
 */
struct swc_peers {
	struct swc_endpoint *ep;
	uint8_t key[SWC_HELLO_KEY];
	uint32_t *origin;
	uint16_t *port;
};

/*
 * Of a new communicator, with ports unless @port is NULL. Takes over *ep, on failure, too; @ep NULL: makes
 * one. 0 or a negative errno.
 */
int swc_peers_init(struct swc_peers *p, const uint8_t *key, uint32_t nranks, uint32_t rank,
		   struct swc_endpoint **ep, const uint16_t *port);
/* Of a communicator without some of its ranks. */
int swc_peers_without(struct swc_peers *p, const struct swc_peers *all, uint32_t nranks,
		      const bool *excluded);
void swc_peers_free(struct swc_peers *p);

#endif /* SWC_AGREE_ENDPOINT_H */
