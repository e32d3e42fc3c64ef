/* SPDX-License-Identifier: GPL-2.0-only */
/* The library's names of collectives, element types and reductions, for help texts and messages. */
#ifndef TOOLS_NAMES_H
#define TOOLS_NAMES_H

#define COLL_NAMES                                                                                 \
	"allreduce, reduce_scatter, allgather, broadcast, reduce, barrier, alltoall, gather or scatter"
#define DTYPE_NAMES "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 or f64"
#define REDOP_NAMES "sum prod min max avg band bor or bxor"

#endif /* TOOLS_NAMES_H */
