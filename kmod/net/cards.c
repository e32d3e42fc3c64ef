// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network cards that go down: connections that can go on by another path do so at once, where TCP would wait
 * for its timeout. Others are left alone: a card may come back in time.
 */
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <net/net_namespace.h>

#include "net/conn.h"

/* Taken under the kernel's lock of all network devices. */
static DEFINE_MUTEX(nets_mutex);
static LIST_HEAD(nets);

static void drop_all(struct swc_net *net, int card)
{
	struct swc_conn *conn;

	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node) {
		spin_lock(&conn->lock);
		if (READ_ONCE(conn->card) == card)
			swc_resume_drop(conn, "a network card of this node is down");
		spin_unlock(&conn->lock);
	}
	xa_unlock(&net->conns);
}

static int card_event(struct notifier_block *nb, unsigned long event, void *info)
{
	struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct swc_net *net;
	bool down;

	/* Who unregisters a notifier is told that all cards go down, which they do not. */
	down = event == NETDEV_DOWN && !netif_running(dev);
	if (!down && (event != NETDEV_CHANGE || netif_carrier_ok(dev)))
		return NOTIFY_DONE;
	mutex_lock(&nets_mutex);
	list_for_each_entry(net, &nets, cards_node)
		if (net_eq(net->ns, dev_net(dev)))
			drop_all(net, dev->ifindex);
	mutex_unlock(&nets_mutex);
	return NOTIFY_DONE;
}

static struct notifier_block card_notifier = { .notifier_call = card_event };

void swc_cards_watch(struct swc_net *net)
{
	mutex_lock(&nets_mutex);
	list_add(&net->cards_node, &nets);
	mutex_unlock(&nets_mutex);
}

void swc_cards_forget(struct swc_net *net)
{
	mutex_lock(&nets_mutex);
	list_del(&net->cards_node);
	mutex_unlock(&nets_mutex);
}

int swc_cards_init(void)
{
	return register_netdevice_notifier(&card_notifier);
}

void swc_cards_exit(void)
{
	unregister_netdevice_notifier(&card_notifier);
}
