/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For collective_template.h, which is compiled once for each kind of functions: blocking, or, with
 * PMPI_NONBLOCKING, those that return a request, or, with PMPI_PERSISTENT, those that make a
 * persistent request, which Open MPI 4 has as MPIX_Allreduce_init() and so on; with counts of int, or,
 * with PMPI_LARGE, of MPI_Count and with names that end in _c. Each macro is given the name of both
 * first kinds.
 */
#undef COUNT
#undef DISPL
#undef ARRAYS
#undef COUNTS
#undef OURS_
#undef THEIRS_
#undef EXPORT_
#undef INIT_
#ifdef PMPI_LARGE
#define COUNT MPI_Count
#define DISPL MPI_Aint
#define ARRAYS(counts_, displs_) .large_counts = counts_, .large_displs = displs_
#define COUNTS(counts_) NULL, counts_
#define OURS_(name) pmpi_##name##_c
#define THEIRS_(name) PMPI_##name##_c
#define EXPORT_(name) PMPI_EXPORT_(MPI_##name##_c, pmpi_##name##_c)
#define INIT_(prefix, name) prefix##name##_init_c
#else
#define COUNT int
#define DISPL int
#define ARRAYS(counts_, displs_) .counts = counts_, .displs = displs_
#define COUNTS(counts_) counts_, NULL
#define OURS_(name) pmpi_##name
#define THEIRS_(name) PMPI_##name
#define EXPORT_(name) PMPI_EXPORT_(MPI_##name, pmpi_##name)
#define INIT_(prefix, name) prefix##name##_init
#endif

#ifndef OURS
/* The rest of a function, for calls that have no memo: apart, to keep that short. */
#define DECIDE(blocking, nonblocking) PMPI_PASTE(decide_, OURS(blocking, nonblocking))
/* For calls that have one, by which they are swingcoll's: blocking ones. Apart likewise. */
#define TRY(blocking, nonblocking) PMPI_PASTE(try_, OURS(blocking, nonblocking))
#ifdef PMPI_NONBLOCKING
#define OURS(blocking, nonblocking) OURS_(nonblocking)
#define THEIRS(blocking, nonblocking) THEIRS_(nonblocking)
#define EXPORT(blocking, nonblocking) EXPORT_(nonblocking)
#define ID(name) PMPI_I##name
#define REQUEST_PARAM , MPI_Request *request
#define REQUEST_ARG , request
#define OFFLOAD(call, ret) pmpi_begin(call, request, ret)
#define QUICK(good, call) PMPI_UNTRIED
#elif defined(PMPI_PERSISTENT)
#if MPI_VERSION >= 4
#define PUBLIC(blocking) INIT_(MPI_, blocking)
#define THEIRS(blocking, nonblocking) INIT_(PMPI_, blocking)
#else
#define PUBLIC(blocking) INIT_(MPIX_, blocking)
#define THEIRS(blocking, nonblocking) INIT_(PMPIX_, blocking)
#endif
#define OURS(blocking, nonblocking) INIT_(pmpi_, blocking)
#define EXPORT(blocking, nonblocking) PMPI_EXPORT_(PUBLIC(blocking), OURS(blocking, nonblocking))
#define ID(name) PMPI_##name##_INIT
#define REQUEST_PARAM , MPI_Info info, MPI_Request *request
#define REQUEST_ARG , info, request
#define OFFLOAD(call, ret) pmpi_begin_persistent(call, request, ret)
#define QUICK(good, call) PMPI_UNTRIED
#else
#define OURS(blocking, nonblocking) OURS_(blocking)
#define THEIRS(blocking, nonblocking) THEIRS_(blocking)
#define EXPORT(blocking, nonblocking) EXPORT_(blocking)
#define ID(name) PMPI_##name
#define REQUEST_PARAM
#define REQUEST_ARG
#define OFFLOAD(call, ret) pmpi_offload(call, ret)
/* How a call goes to swingcoll at once, if its memo m says so: see quick.h. */
#define QUICK(good, call) PMPI_QUICK(m, good, call)
#endif
#endif
