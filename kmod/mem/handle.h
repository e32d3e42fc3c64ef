/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects that user space names by handle: an xarray maps the handle to the object and holds a reference to
 * it.
 */
#ifndef SWC_HANDLE_H
#define SWC_HANDLE_H

#include <linux/xarray.h>

/**
 * swc_handle_get() - look up an object by its handle
 * @table: maps handles to objects, each with a reference
 * @handle: handle
 * @get: takes a reference to an object; called under the table's lock, whose reference keeps the object alive
 *
 * Return: the object, with a reference; NULL if there is none.
 */
static inline void *swc_handle_get(struct xarray *table, u32 handle, void (*get)(void *object))
{
	void *object;

	xa_lock(table);
	object = xa_load(table, handle);
	if (object)
		get(object);
	xa_unlock(table);
	return object;
}

#endif /* SWC_HANDLE_H */
