/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The secret that the ranks of a job share (SWINGCOLL_SECRET, SWINGCOLL_SECRET_FILE): by it they
 * authenticate each other when they meet, and derive the communicator's id from one that may be read
 * on the network.
 */
#ifndef SWC_BOOTSTRAP_SECRET_H
#define SWC_BOOTSTRAP_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <swingcoll.h>

#define SWC_SECRET_MIN 16 /* characters */
#define SWC_SECRET_MAX 1024
#define SWC_SECRET_MAC 16

/* @given: false: there is none, and the ranks trust the network. @key: made from it. */
struct swc_secret {
	bool given;
	uint8_t key[32];
};

/*
 * Read it from the environment, or the file that this names. 0, also if there is none; -EINVAL, or
 * -EACCES if the file is another user's or others may read it, or the error of reading it; then with
 * a line in @why.
 */
int swc_secret_read(struct swc_secret *s, char *why, size_t why_bytes);

/* MAC of @data by the secret. Different uses have different labels. */
void swc_secret_mac(const struct swc_secret *s, const char *label, const void *data, size_t bytes,
		    uint8_t *mac);

/* In constant time. */
bool swc_secret_equal(const uint8_t *a, const uint8_t *b);

/* Equal on all ranks with the same secret; 0 without one. */
uint64_t swc_secret_fingerprint(const struct swc_secret *s);

/* Make an id that was sent in clear the communicator's, which only those with the secret know. */
void swc_secret_derive_id(const struct swc_secret *s, struct swingcoll_id *id);

#endif /* SWC_BOOTSTRAP_SECRET_H */
