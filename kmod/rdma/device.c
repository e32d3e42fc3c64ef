// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA devices, which may be removed at any moment: connections on the device go on by another path, or the
 * removal aborts their communicators; it waits until none uses the device. Ports may go down.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "rdma/rdma.h"

static int dev_add(struct ib_device *ib);
static void dev_remove(struct ib_device *ib, void *data);

static struct ib_client client = {
	.name = "swingcoll",
	.add = dev_add,
	.remove = dev_remove,
};

/* A device is not removed between being found and being taken, nor the client unregistered. */
static DEFINE_MUTEX(devs_mutex);
static bool all_removed;

/* A feature that the device lacks and the module needs; NULL: none. */
static const char *missing_feature(struct ib_device *ib)
{
	if (!(ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return "registration by work requests";
	return NULL;
}

/* In process context. */
static void handle_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct swc_rdma_dev *dev = container_of(handler, struct swc_rdma_dev, events);
	struct swc_rdma_conn *conn;

	if (event->event != IB_EVENT_PORT_ERR)
		return;
	spin_lock(&dev->lock);
	list_for_each_entry(conn, &dev->conns, dev_node) {
		spin_lock(&conn->base.lock);
		if (conn->port == event->element.port_num)
			swc_resume_drop(&conn->base, "a port of this node's RDMA device is down");
		spin_unlock(&conn->base.lock);
	}
	spin_unlock(&dev->lock);
}

static int dev_add(struct ib_device *ib)
{
	const char *missing = missing_feature(ib);
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
	INIT_IB_EVENT_HANDLER(&dev->events, ib, handle_event);
	ib_register_event_handler(&dev->events);
	return 0;
}

static void fail_conns(struct swc_rdma_dev *dev)
{
	for (;;) {
		struct swc_rdma_conn *conn, *found = NULL;
		struct swc_comm *comm;

		spin_lock(&dev->lock);
		list_for_each_entry(conn, &dev->conns, dev_node) {
			/* One that has failed is being closed. */
			if (!test_bit(SWC_CONN_F_FAILED, &conn->base.flags) &&
			    kref_get_unless_zero(&conn->base.ref)) {
				found = conn;
				break;
			}
		}
		/* One that goes on by another path does so in a while: once is enough. */
		if (found) {
			list_del_init(&found->dev_node);
			/* Until it is closed, which takes it off the list, it holds the communicator. */
			comm = found->base.comm;
			swc_net_ops->get(comm);
		}
		spin_unlock(&dev->lock);
		if (!found)
			return;
		if (found->base.resumable)
			swc_conn_retry(&found->base, "its RDMA device was removed", -ENODEV);
		else
			swc_conn_fail(&found->base, -ENODEV, "RDMA device %s was removed",
				      dev_name(&dev->ib->dev));
		swc_conn_put(&found->base);
		swc_net_ops->put(comm);
	}
}

static bool is_idle(struct swc_rdma_dev *dev)
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
	/* From here on no connection takes it. */
	mutex_lock(&devs_mutex);
	ib_set_client_data(ib, &client, NULL);
	mutex_unlock(&devs_mutex);
	ib_unregister_event_handler(&dev->events);
	fail_conns(dev);
	wait_event(dev->idle, is_idle(dev));
	kfree(dev);
}

/* The device for a connection; NULL if it is being removed, or lacks a feature. */
struct swc_rdma_dev *swc_dev_get(struct ib_device *ib, struct swc_rdma_conn *conn)
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

/* The connection does not have it any more, which the caller passes to swc_dev_unuse(); NULL: it has none. */
struct swc_rdma_dev *swc_dev_detach(struct swc_rdma_conn *conn)
{
	struct swc_rdma_dev *dev = conn->dev;

	if (!dev)
		return NULL;
	conn->dev = NULL;
	spin_lock(&dev->lock);
	list_del_init(&conn->dev_node);
	spin_unlock(&dev->lock);
	return dev;
}

void swc_dev_unuse(struct swc_rdma_dev *dev)
{
	spin_lock(&dev->lock);
	/* Under the lock: the waiter frees the device as soon as it sees zero. */
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
	/* From now on the client's data may be that of another client. */
	mutex_lock(&devs_mutex);
	all_removed = true;
	mutex_unlock(&devs_mutex);
	ib_unregister_client(&client);
}
