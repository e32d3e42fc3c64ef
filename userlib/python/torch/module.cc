// SPDX-License-Identifier: LGPL-2.1-or-later
/* The extension swingcoll._torch: what the Python side of the backend calls. */
#include <Python.h>
#include <torch/csrc/utils/pybind.h>
#include <pybind11/chrono.h>

#include "group.h"
#include "partitioned.h"

namespace py = pybind11;
using namespace swingcoll_torch;

static std::shared_ptr<Partitioned> partitioned(const c10::intrusive_ptr<Backend> &backend,
						at::Tensor tensor, int partitions,
						const c10d::ReduceOp &op)
{
	auto *group = dynamic_cast<Group *>(backend.get());

	if (!group)
		throw std::invalid_argument(
			"swingcoll: partitioned allreduce: needs a process group of backend swingcoll");
	return group->partitioned(std::move(tensor), partitions, op);
}

PYBIND11_MODULE(_torch, m)
{
	using Unlocked = py::call_guard<py::gil_scoped_release>;

	m.def(
		"create",
		[](const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
		   std::chrono::milliseconds timeout) -> c10::intrusive_ptr<Backend> {
			return c10::make_intrusive<Group>(store, rank, size, timeout);
		},
		Unlocked());
	m.def("partitioned", &partitioned, Unlocked());
	py::class_<Partitioned, std::shared_ptr<Partitioned>>(m, "Partitioned")
		.def_readonly("tensor", &Partitioned::tensor)
		.def_readonly("partitions", &Partitioned::partitions)
		.def("start", &Partitioned::start, Unlocked())
		.def("ready", &Partitioned::ready, Unlocked())
		.def("abort_incomplete", &Partitioned::abort_incomplete, Unlocked())
		.def("work", &Partitioned::work, Unlocked());
}
