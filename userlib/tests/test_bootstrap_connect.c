// SPDX-License-Identifier: GPL-2.0-only
/* The connection of a rank to rank 0, while signals come. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/bootstrap/tcp.h"
#include "tap.h"

static void on_alarm(int sig)
{
	(void)sig;
}

/* A port whose queue is full does not answer. Signals that come meanwhile do not end the attempt. */
static void test_signals(void)
{
	const struct itimerval often = { { 0, 10000 }, { 0, 10000 } }, never = { 0 };
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct addrinfo list = { .ai_family = AF_INET,
				 .ai_addr = (struct sockaddr *)&addr,
				 .ai_addrlen = sizeof(addr) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), first[3], fd = -1, ret;
	socklen_t len = sizeof(addr);
	const char *why = NULL;
	struct tcp t = { 0 };
	uint64_t begin, ms;

	bind(listener, (struct sockaddr *)&addr, sizeof(addr));
	getsockname(listener, (struct sockaddr *)&addr, &len);
	listen(listener, 0);
	for (int i = 0; i < 3; i++) {
		first[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(first[i], (struct sockaddr *)&addr, sizeof(addr));
	}
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	begin = swc_socket_now_ms();
	ret = swc_tcp_connect_rank(&t, 0, &list, begin + 300, &fd, &why);
	ms = swc_socket_now_ms() - begin;
	setitimer(ITIMER_REAL, &never, NULL);
	printf("# %d after %llu ms: %s\n", ret, (unsigned long long)ms, why ? why : "?");
	ok(ret == -EAGAIN && ms >= 290, "signals do not end a connection that is being made");
	for (int i = 0; i < 3; i++)
		close(first[i]);
	close(listener);
}

int main(void)
{
	printf("TAP version 13\n");
	test_signals();
	return done();
}
