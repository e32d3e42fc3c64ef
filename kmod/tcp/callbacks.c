// SPDX-License-Identifier: GPL-2.0-only
/*
 * The callbacks of a socket, by which it tells its user of what happens.
 */
#include <net/sock.h>

#include "tcp/tcp.h"

void swc_tcp_save_callbacks(struct socket *sock, struct swc_tcp_callbacks *callbacks)
{
	struct sock *sk = sock->sk;

	*callbacks = (struct swc_tcp_callbacks){
		.data_ready = sk->sk_data_ready, .state_change = sk->sk_state_change,
		.write_space = sk->sk_write_space, .error_report = sk->sk_error_report,
	};
}

/* None of those before runs any more when this returns. @user: what they find in sk_user_data */
void swc_tcp_set_callbacks(struct socket *sock, const struct swc_tcp_callbacks *callbacks, void *user)
{
	struct sock *sk = sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = user;
	sk->sk_data_ready = callbacks->data_ready;
	sk->sk_state_change = callbacks->state_change;
	sk->sk_write_space = callbacks->write_space;
	sk->sk_error_report = callbacks->error_report;
	write_unlock_bh(&sk->sk_callback_lock);
}

/* The socket has its own again, which do not look for a user. */
void swc_tcp_restore_callbacks(struct socket *sock, const struct swc_tcp_callbacks *callbacks)
{
	swc_tcp_set_callbacks(sock, callbacks, NULL);
}
