#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: constants.sh MODULE: C assertions that the constants of the Fortran module are those of swingcoll.h, and the
# types and reductions those of the kernel's header; that these two have no more of them; and that the limits are equal.
set -eu
module=$1
# "NAME VALUE" of each constant with this kind.
constants() {
	sed -nE "s/^ *integer\($1\), parameter(, public)? :: ([A-Z0-9_]+) = (-?[0-9]+)\$/\2 \3/p" "$module"
}

echo '#include <errno.h>'
echo '#include <linux/swingcoll.h>'
echo '#include <swingcoll.h>'
constants c_int | while read -r name value; do
	echo "_Static_assert($name == $value, \"$name\");"
done
constants c_int32_t | while read -r name value; do
	echo "_Static_assert((int32_t)$name == $value, \"$name\");"
done
# Blocks of constants by the comment in front of each, with the enum's end in the kernel.
for block in "Element types:SWC_DTYPE_NR" "Reductions:SWC_REDOP_NR"; do
	names=$(sed -n "/^ *! ${block%:*}\.\$/,/^\$/s/.*:: SWINGCOLL_\([A-Z0-9_]*\) = .*/\1/p" "$module")
	for name in $names; do
		echo "_Static_assert((int)SWINGCOLL_$name == (int)SWC_$name, \"SWC_$name\");"
	done
	echo "_Static_assert(${block#*:} == $(echo "$names" | grep -c .), \"${block%:*}\");"
done
