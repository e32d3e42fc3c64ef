#compdef swingctl swingperf swingplan
# SPDX-License-Identifier: GPL-2.0-only
# Options from what the programs themselves print by --help.
_gnu_generic
