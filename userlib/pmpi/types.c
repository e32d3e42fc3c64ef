// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI's types and operations in swingcoll's terms: a hash table by handle, filled once. Sizes come
 * from MPI, so a type of C or Fortran needs nothing but its kind here.
 */
#include <stddef.h>
#include <string.h>

#include "pmpi/pmpi.h"

#define SLOTS 256 /* several times the number of types, so that probing is short */

static struct pmpi_type table[SLOTS];

static unsigned int slot_of(MPI_Datatype handle)
{
	return (unsigned int)((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15 >> 56);
}

static int8_t dtype_of(enum pmpi_kind kind, uint32_t size)
{
	static const int8_t signeds[] = { -1, -1, SWINGCOLL_I16, -1, SWINGCOLL_I32, -1,
					  -1, -1, SWINGCOLL_I64 };
	static const int8_t unsigneds[] = { -1, -1, SWINGCOLL_U16, -1, SWINGCOLL_U32, -1,
					    -1, -1, SWINGCOLL_U64 };

	switch (kind) {
	case PMPI_SIGNED:
	case PMPI_INTEGER:
		return size == 1 ? SWINGCOLL_I8 : size <= 8 ? signeds[size] : -1;
	case PMPI_UNSIGNED:
	case PMPI_BOOL:
	case PMPI_BYTE:
		return size == 1 ? SWINGCOLL_U8 : size <= 8 ? unsigneds[size] : -1;
	case PMPI_COMPLEX:
		size /= 2;
		/* fall through */
	case PMPI_FLOAT:
		return size == 2   ? SWINGCOLL_F16
		       : size == 4 ? SWINGCOLL_F32
		       : size == 8 ? SWINGCOLL_F64
				   : -1;
	default:
		return -1;
	}
}

static void enter(MPI_Datatype handle, enum pmpi_kind kind)
{
	unsigned int i = slot_of(handle);
	int size = 0;

	if (handle == MPI_DATATYPE_NULL || pmpi_type_find(handle) ||
	    PMPI_Type_size(handle, &size) != MPI_SUCCESS || size <= 0)
		return;
	while (table[i].size)
		i = (i + 1) % SLOTS;
	table[i] = (struct pmpi_type){
		.handle = handle,
		.size = (uint32_t)size,
		.kind = (uint8_t)kind,
		.words = kind == PMPI_COMPLEX ? 2 : 1,
		.dtype = dtype_of(kind, (uint32_t)size),
	};
}

const struct pmpi_type *pmpi_type_find(MPI_Datatype handle)
{
	for (unsigned int i = slot_of(handle); table[i].size; i = (i + 1) % SLOTS)
		if (table[i].handle == handle)
			return &table[i];
	return NULL;
}

static void enter_c(void)
{
	const MPI_Datatype signeds[] = { MPI_SIGNED_CHAR, MPI_SHORT,	 MPI_INT,
					 MPI_LONG,	  MPI_LONG_LONG, MPI_INT8_T,
					 MPI_INT16_T,	  MPI_INT32_T,	 MPI_INT64_T };
	const MPI_Datatype integers[] = { MPI_AINT, MPI_OFFSET, MPI_COUNT };
	const MPI_Datatype unsigneds[] = {
		MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT,	   MPI_UNSIGNED,
		MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T,
		MPI_UINT16_T,	   MPI_UINT32_T,	   MPI_UINT64_T
	};
	const MPI_Datatype floats[] = { MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE };
	const MPI_Datatype complexes[] = { MPI_C_FLOAT_COMPLEX,	      MPI_C_DOUBLE_COMPLEX,
					   MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX,
					   MPI_CXX_DOUBLE_COMPLEX,    MPI_CXX_LONG_DOUBLE_COMPLEX };
	const MPI_Datatype opaques[] = { MPI_CHAR, MPI_WCHAR, MPI_PACKED };

	for (size_t i = 0; i < sizeof(signeds) / sizeof(*signeds); i++)
		enter(signeds[i], PMPI_SIGNED);
	for (size_t i = 0; i < sizeof(integers) / sizeof(*integers); i++)
		enter(integers[i], PMPI_INTEGER);
	for (size_t i = 0; i < sizeof(unsigneds) / sizeof(*unsigneds); i++)
		enter(unsigneds[i], PMPI_UNSIGNED);
	for (size_t i = 0; i < sizeof(floats) / sizeof(*floats); i++)
		enter(floats[i], PMPI_FLOAT);
	for (size_t i = 0; i < sizeof(complexes) / sizeof(*complexes); i++)
		enter(complexes[i], PMPI_COMPLEX);
	enter(MPI_C_BOOL, PMPI_BOOL);
	enter(MPI_CXX_BOOL, PMPI_BOOL);
	enter(MPI_BYTE, PMPI_BYTE);
	for (size_t i = 0; i < sizeof(opaques) / sizeof(*opaques); i++)
		enter(opaques[i], PMPI_OPAQUE);
}

/* Logical values are opaque: what is true differs between compilers. */
static void enter_fortran(void)
{
	const MPI_Datatype integers[] = { MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4,
					  MPI_INTEGER8 };
	const MPI_Datatype floats[] = { MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8 };
	const MPI_Datatype complexes[] = { MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8,
					   MPI_COMPLEX16 };
	const MPI_Datatype opaques[] = { MPI_LOGICAL, MPI_CHARACTER };

	for (size_t i = 0; i < sizeof(integers) / sizeof(*integers); i++)
		enter(integers[i], PMPI_INTEGER);
	for (size_t i = 0; i < sizeof(floats) / sizeof(*floats); i++)
		enter(floats[i], PMPI_FLOAT);
	for (size_t i = 0; i < sizeof(complexes) / sizeof(*complexes); i++)
		enter(complexes[i], PMPI_COMPLEX);
	for (size_t i = 0; i < sizeof(opaques) / sizeof(*opaques); i++)
		enter(opaques[i], PMPI_OPAQUE);
}

/* ---- operations ---- */

enum {
	C_INTEGERS = 1 << PMPI_SIGNED | 1 << PMPI_UNSIGNED,
	INTEGERS = C_INTEGERS | 1 << PMPI_INTEGER,
	ARITHMETIC = INTEGERS | 1 << PMPI_FLOAT,
};

struct op {
	MPI_Op op;
	uint8_t redop, logical, kinds;
};

/* Those that swingcoll has, and those that only MPI has. The most frequent ones first. */
static struct op ops[10];
static MPI_Op others[4];

static void enter_ops(void)
{
	const struct op known[] = {
		{ MPI_SUM, SWINGCOLL_SUM, false, ARITHMETIC | 1 << PMPI_COMPLEX },
		{ MPI_MAX, SWINGCOLL_MAX, false, ARITHMETIC },
		{ MPI_MIN, SWINGCOLL_MIN, false, ARITHMETIC },
		{ MPI_PROD, SWINGCOLL_PROD, false, ARITHMETIC },
		{ MPI_BAND, SWINGCOLL_BAND, false, INTEGERS | 1 << PMPI_BYTE },
		{ MPI_BOR, SWINGCOLL_BOR, false, INTEGERS | 1 << PMPI_BYTE },
		{ MPI_BXOR, SWINGCOLL_BXOR, false, INTEGERS | 1 << PMPI_BYTE },
		{ MPI_LAND, SWINGCOLL_BAND, true, C_INTEGERS | 1 << PMPI_BOOL },
		{ MPI_LOR, SWINGCOLL_BOR, true, C_INTEGERS | 1 << PMPI_BOOL },
		{ MPI_LXOR, SWINGCOLL_BXOR, true, C_INTEGERS | 1 << PMPI_BOOL },
	};
	const MPI_Op unknown[] = { MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP };

	_Static_assert(sizeof(known) == sizeof(ops), "as many as there is room for");
	memcpy(ops, known, sizeof(ops));
	memcpy(others, unknown, sizeof(others));
}

bool pmpi_op_find(MPI_Op op, const struct pmpi_type *type, struct pmpi_op *out,
		  enum pmpi_reason *why)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		if (ops[i].op != op)
			continue;
		*why = PMPI_WHY_TYPE;
		if (!type || type->dtype < 0 || !(ops[i].kinds >> type->kind & 1))
			return false;
		out->redop = (enum swingcoll_redop)ops[i].redop;
		out->logical = ops[i].logical;
		return true;
	}
	*why = PMPI_WHY_USER_OP;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (others[i] == op)
			*why = PMPI_WHY_OP;
	return false;
}

void pmpi_types_init(void)
{
	enter_c();
	enter_fortran();
	enter_ops();
}
