# SPDX-License-Identifier: GPL-2.0-only
# One line per file that is made, nothing with make -s, the commands with V=1: include this, put $(call say,CC) before
# the command, and $(Q) in front of it. BUILD or OUTPUT, the folder of what is made, is left out of the line.
ifeq ($(V),)
Q := @
say = $(if $(findstring s,$(firstword -$(MAKEFLAGS))),,@printf '  %-7s %s\n' '$(1)' '$(patsubst $(or $(BUILD),$(OUTPUT))/%,%,$@)')
endif
