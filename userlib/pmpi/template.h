/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For the templates: names and the type of counts, for PMPI_LARGE (names with _c) or not. */
#undef COUNT
#undef OURS
#undef THEIRS
#undef EXPORT
#ifdef PMPI_LARGE
#define COUNT MPI_Count
#define OURS(name) pmpi_##name##_c
#define THEIRS(name) PMPI_##name##_c
#define EXPORT(name) PMPI_EXPORT_(MPI_##name##_c, pmpi_##name##_c)
#else
#define COUNT int
#define OURS(name) pmpi_##name
#define THEIRS(name) PMPI_##name
#define EXPORT(name) PMPI_EXPORT_(MPI_##name, pmpi_##name)
#endif
