#compdef swingctl swingperf swingplan all_reduce_perf all_gather_perf reduce_scatter_perf broadcast_perf reduce_perf alltoall_perf gather_perf scatter_perf
# SPDX-License-Identifier: GPL-2.0-only
# Options from what the programs themselves print by --help.
_gnu_generic
