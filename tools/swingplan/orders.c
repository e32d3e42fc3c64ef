// SPDX-License-Identifier: GPL-2.0-only
/* swingplan orders: the best split of a vector among the orders in which its parts visit the dimensions. */
#include "swingplan.h"

#include <stdio.h>

#include "plan/orders.h"
#include "spec.h"

static void print(const struct swc_spec *s, const struct swc_orders *o)
{
	char text[NUMBER_TEXT];

	printf("%-18s %s of %s\n", "collective", swc_spec_ops[s->op], number_bytes(s->bytes, text));
	printf("%-18s %s\n", "split", number_ns(o->time, text));
	printf("%-18s %s, %.2f times the split\n", "fixed order", number_ns(o->fixed, text),
	       o->fixed / o->time);
	printf("%-18s %s, %.2f times the split\n", "best single order", number_ns(o->single, text),
	       o->single / o->time);
	printf("%-18s %s\n", "all rates together", number_ns(o->bound, text));
	for (uint32_t i = 0; i < o->n; i++) {
		printf("%17.4f%%", 100 * o->order[i].fraction);
		for (uint32_t k = 0; k < s->ndims; k++)
			printf("%s%u", k ? ", " : "  ", o->order[i].dim[k]);
		printf("\n");
	}
}

static void print_json(const struct swc_spec *s, const struct swc_orders *o)
{
	cJSON *all = cJSON_CreateObject(), *list, *item, *order;

	cJSON_AddStringToObject(all, "op", swc_spec_ops[s->op]);
	cJSON_AddNumberToObject(all, "bytes", s->bytes);
	cJSON_AddNumberToObject(all, "time_ns", o->time);
	cJSON_AddNumberToObject(all, "fixed_ns", o->fixed);
	cJSON_AddNumberToObject(all, "best_single_ns", o->single);
	cJSON_AddNumberToObject(all, "bound_ns", o->bound);
	cJSON_AddNumberToObject(all, "speedup_over_fixed", o->fixed / o->time);
	cJSON_AddNumberToObject(all, "speedup_over_single", o->single / o->time);
	list = cJSON_AddArrayToObject(all, "orders");
	for (uint32_t i = 0; i < o->n; i++) {
		item = cJSON_CreateObject();
		order = cJSON_AddArrayToObject(item, "order");
		for (uint32_t k = 0; k < s->ndims; k++)
			cJSON_AddItemToArray(order, cJSON_CreateNumber(o->order[i].dim[k]));
		cJSON_AddNumberToObject(item, "fraction", o->order[i].fraction);
		cJSON_AddItemToArray(list, item);
	}
	json_document(stdout, all);
}

int orders_run(const struct plan_options *opt)
{
	double bytes, all = 1;
	struct swc_orders o;
	struct swc_spec s;

	spec_read_orders(&s, opt->spec);
	for (uint32_t i = 0; i < s.ndims; i++)
		all *= s.size[i];
	/* As a reduce-scatter: of the whole vector, once or there and back. */
	bytes = s.bytes * (s.op == SWC_SPEC_ALLREDUCE ? 2 : s.op == SWC_SPEC_ALLGATHER ? all : 1);
	swc_orders_find(&o, s.size, s.rate, s.ndims, bytes);
	if (opt->json)
		print_json(&s, &o);
	else
		print(&s, &o);
	swc_spec_free(&s);
	return 0;
}
