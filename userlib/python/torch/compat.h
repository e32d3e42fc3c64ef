// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What differs between versions of PyTorch, and nothing else. 1.13 has no c10d::Backend: there a backend is a ProcessGroup.
 * The names are those of the newer versions. Built and tested with 1.13.1 and 2.6.0.
 */
#ifndef SWINGCOLL_TORCH_COMPAT_H
#define SWINGCOLL_TORCH_COMPAT_H

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <torch/version.h>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
namespace swingcoll_torch
{
using Backend = c10d::Backend;
}
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
namespace swingcoll_torch
{
using Backend = c10d::ProcessGroup;
}
#endif

#endif /* SWINGCOLL_TORCH_COMPAT_H */
