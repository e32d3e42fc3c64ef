// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA devices: they come, and they may go at any moment.
 *
 * A device goes only when nobody uses it: its removal ends the communicators that have connections on it, and
 * waits until those are closed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "rdma.h"

static int dev_add(struct ib_device *ib);
static void dev_remove(struct ib_device *ib, void *data);

static struct ib_client client = {
	.name = "swingcoll",
	.add = dev_add,
	.remove = dev_remove,
};

/* So that a device cannot go between being found and being taken, nor all of them. */
static DEFINE_MUTEX(devs_mutex);
static bool all_removed;

/* What is missing on a device; NULL: nothing. */
static const char *lacks(struct ib_device *ib)
{
	if (!(ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return "registration by work requests";
	/* Messages tell what they are by immediate data. */
	if (rdma_protocol_iwarp(ib, rdma_start_port(ib)))
		return "RDMA writes with immediate data, which iWARP does not have";
	return NULL;
}

static int dev_add(struct ib_device *ib)
{
	const char *missing = lacks(ib);
	struct swc_rdma_dev *dev;

	if (missing) {
		pr_info("RDMA device %s is not used: it lacks %s\n", dev_name(&ib->dev), missing);
		return -EOPNOTSUPP;
	}
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->ib = ib;
	spin_lock_init(&dev->lock);
	INIT_LIST_HEAD(&dev->conns);
	init_waitqueue_head(&dev->idle);
	ib_set_client_data(ib, &client, dev);
	return 0;
}

static void end_conns(struct swc_rdma_dev *dev)
{
	for (;;) {
		struct swc_conn *conn, *found = NULL;

		spin_lock(&dev->lock);
		list_for_each_entry(conn, &dev->conns, dev_node) {
			/* One that has failed is on its way. */
			if (!READ_ONCE(conn->failed) && kref_get_unless_zero(&conn->ref)) {
				found = conn;
				break;
			}
		}
		spin_unlock(&dev->lock);
		if (!found)
			return;
		swc_conn_fail(found, -ENODEV, "RDMA device %s was removed", dev_name(&dev->ib->dev));
		swc_conn_put(found);
	}
}

static bool dev_idle(struct swc_rdma_dev *dev)
{
	bool idle;

	spin_lock(&dev->lock);
	idle = !dev->nconns;
	spin_unlock(&dev->lock);
	return idle;
}

static void dev_remove(struct ib_device *ib, void *data)
{
	struct swc_rdma_dev *dev = data;

	if (!dev)
		return;
	/* Connections are being made until connection managers are told, too. */
	mutex_lock(&devs_mutex);
	ib_set_client_data(ib, &client, NULL);
	mutex_unlock(&devs_mutex);
	end_conns(dev);
	wait_event(dev->idle, dev_idle(dev));
	kfree(dev);
}

/* The device for a connection; NULL if it is going, or cannot do what is needed. */
struct swc_rdma_dev *swc_dev_take(struct ib_device *ib, struct swc_conn *conn)
{
	struct swc_rdma_dev *dev;

	mutex_lock(&devs_mutex);
	dev = all_removed ? NULL : ib_get_client_data(ib, &client);
	if (dev) {
		spin_lock(&dev->lock);
		list_add(&conn->dev_node, &dev->conns);
		dev->nconns++;
		spin_unlock(&dev->lock);
	}
	mutex_unlock(&devs_mutex);
	return dev;
}

void swc_dev_drop(struct swc_conn *conn)
{
	struct swc_rdma_dev *dev = conn->dev;

	if (!dev)
		return;
	conn->dev = NULL;
	spin_lock(&dev->lock);
	list_del_init(&conn->dev_node);
	/* Under the lock: whoever waits may free the device as soon as it sees zero. */
	if (!--dev->nconns)
		wake_up_all(&dev->idle);
	spin_unlock(&dev->lock);
}

int swc_dev_init(void)
{
	return ib_register_client(&client);
}

void swc_dev_exit(void)
{
	/* What is the client's data from now on, is another's. */
	mutex_lock(&devs_mutex);
	all_removed = true;
	mutex_unlock(&devs_mutex);
	ib_unregister_client(&client);
}
