# SPDX-License-Identifier: GPL-2.0-only
# Front door: builds the module, the library and the tools into build/, and runs
# the checks, the demonstration and the benchmarks. `make help` lists the targets.
# The module itself is described by Kbuild, each folder of user code by its Makefile.

VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
PREFIX ?= /usr/local
export PREFIX DESTDIR

HOST_RELEASE := $(shell uname -r)
HOST_KDIR := /lib/modules/$(HOST_RELEASE)/build

MAKEFLAGS += --no-print-directory
# All cores for the makes below, unless the user said how many (-jN, N > 1).
J = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

.PHONY: all
ifneq ($(or $(KDIR),$(KVER),$(wildcard $(HOST_KDIR)/Makefile)),)
all: modules lib tools selftests
else
all: lib tools selftests
	@echo "Module not built: no headers for the running kernel ($(HOST_RELEASE))."
	@echo "Install linux-headers-$(HOST_RELEASE), or use make modules KVER=6.12 or KDIR=..."
endif

# The module is built on a copy, so that one tree serves many kernels and parallel
# builds of different ones do not meet. KBUILD_ARGS go to the kernel's make. The
# modules for tests are built beside it.
.PHONY: modules
modules:
	@set -e; kdir=$${KDIR:-$(KDIR)}; \
	if [ -z "$$kdir" ] && [ -n "$(KVER)" ]; then kdir=$$(tools/vm/kernels kdir "$(KVER)"); fi; \
	kdir=$${kdir:-$(HOST_KDIR)}; \
	if [ ! -e "$$kdir/Makefile" ]; then \
		echo "no kernel build tree $$kdir: install linux-headers-$(HOST_RELEASE)," \
			"or use make modules KVER=6.12 or KDIR=..." >&2; exit 1; \
	fi; \
	release=$$(sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' "$$kdir/include/generated/utsrelease.h"); \
	dir=$(CURDIR)/build/modules/$$release; mkdir -p "$$dir/src"; \
	exec 9>"$$dir/lock"; flock 9; \
	rsync -a --delete --exclude='*.o' --exclude='*.ko' --exclude='*.mod' --exclude='*.mod.c' \
		--exclude='.*' --exclude=modules.order --exclude=Module.symvers \
		Kbuild kmod uapi selftests/modules "$$dir/src/"; \
	$(MAKE) $J -C "$$kdir" M="$$dir/src" $(KBUILD_ARGS) modules; \
	$(MAKE) $J -C "$$kdir" M="$$dir/src/modules" $(KBUILD_ARGS) modules; \
	find "$$dir/src" -name '*.ko' -exec cp -t "$$dir" {} +; \
	echo "built build/modules/$$release/swingcoll.ko"

.PHONY: lib tools selftests
lib:
	$(MAKE) $J -C userlib
tools: lib
	$(MAKE) $J -C tools
selftests: lib
	$(MAKE) $J -C selftests all mpi

# What a guest without the host's files runs, and so static: build/arm64/selftests/install, with a unit test. The
# linker would warn that name service needs more.
ARM64 := $(CURDIR)/build/arm64
.PHONY: arm64
arm64:
	@set -e; programs=$$(tools/vm/kernels programs 6.12-arm64); \
	set -- CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar PKG_CONFIG=false \
		CFLAGS="-O2 -isystem $$programs/usr/include" \
		LDFLAGS="-static -s -Wl,--no-warnings -L$$programs/usr/lib/aarch64-linux-gnu"; \
	$(MAKE) $J -C userlib BUILD=$(ARM64) "$$@" $(ARM64)/lib/libswingcoll.a $(ARM64)/plain/test_reduce; \
	$(MAKE) $J -C selftests OUTPUT=$(ARM64)/selftests LIB=$(ARM64)/lib "$$@" install; \
	cp $(ARM64)/plain/test_reduce $(ARM64)/selftests/install

# The same for this machine's architecture: build/static.
.PHONY: static
static: lib
	@$(MAKE) $J -C selftests OUTPUT=$(CURDIR)/build/static LDFLAGS="-static -s -Wl,--no-warnings"

# STAGES="lint ..." runs only some.
.PHONY: check lint
check:
	@tools/check $(STAGES)
lint:
	@tools/lint

# HERE=1: on this machine instead of a virtual one.
.PHONY: demo demo-ready
demo: demo-ready
ifdef HERE
	@tools/examples/demo.sh
else
	@echo "demo: starting a virtual machine with kernel 6.12"
	@tools/vm/run --kernel 6.12 --cpus 2 --timeout 900 -- tools/examples/demo.sh
endif
demo-ready:
	@echo "demo: installing what is missing"
	@tools/setup demo
	@echo "demo: building the library and the tools"
	@$(MAKE) -s lib tools
ifndef HERE
	@echo "demo: building the module for kernel 6.12"
	@$(MAKE) -s modules KVER=6.12
endif

.PHONY: bench
bench:
	@tools/setup bench
	@$(MAKE) -s lib tools
	@$(MAKE) -s -C tools bench
	@$(MAKE) -s modules KVER=6.12
	@tools/vm/run --kernel 6.12 --cpus 2 --mem 4G --timeout 3600 --out build/bench -- tools/bench/run
	@tools/vm/run --kernel 6.12 --cpus 2 --mem 4G --timeout 600 --out build/bench -- tools/bench/executor

.PHONY: bench-dma bench-overlap
# CPU time and small differences: both drown in what else a host does.
bench-dma: clock = --icount --cpus 1
bench-dma bench-overlap: bench-%:
	@tools/setup bench
	@$(MAKE) -s lib tools
	@$(MAKE) -s modules KVER=6.12
	@tools/vm/run --kernel 6.12 --mem 2G --timeout 2400 $(clock) --out build/bench -- tools/bench/$*

# Several virtual machines at once; PART=pairs, cpu, instructions or torus for one part of it.
.PHONY: bench-cluster
bench-cluster:
	@tools/setup bench
	@$(MAKE) -s lib tools
	@$(MAKE) -s -C tools bench
	@$(MAKE) -s modules KVER=6.12
	@tools/bench/cluster $(PART)

# Needs neither the module nor a virtual machine: a model's times.
.PHONY: figures
figures:
	@$(MAKE) -s lib tools
	@build/bin/swingplan figures --out build/figures

.PHONY: setup kernels-refresh
setup:
	@tools/setup
kernels-refresh:
	@tools/vm/kernels refresh

# User code below PREFIX, and DESTDIR if given. The module: make dkms.
.PHONY: install
install: lib tools
	$(MAKE) -C userlib install
	$(MAKE) -C tools install
	$(if $(DESTDIR),,/sbin/ldconfig)

# The module for the running kernel, or for RELEASE; dkms builds it again by itself
# whenever a kernel is installed. What it has built of this version before, for any
# kernel, goes first: it would not look whether the source has changed.
DKMS_SRC := /usr/src/swingcoll-$(VERSION)
DKMS_REMOVE := if [ -d /var/lib/dkms/swingcoll/$(VERSION) ]; then \
	dkms remove swingcoll/$(VERSION) --all; fi
.PHONY: dkms
dkms:
	@command -v dkms >/dev/null || { echo "dkms is missing: apt-get install dkms" >&2; exit 1; }
	$(DKMS_REMOVE)
	rm -rf $(DKMS_SRC)
	mkdir -p $(DKMS_SRC)
	cp -r Kbuild kmod uapi dkms.conf $(DKMS_SRC)
	dkms install swingcoll/$(VERSION) $(if $(RELEASE),-k $(RELEASE))

# What install and dkms have put where.
.PHONY: uninstall
uninstall:
	@set -e; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	$(MAKE) -s install DESTDIR="$$tmp"; \
	(cd "$$tmp" && find . ! -type d) | (cd "$(DESTDIR)/" && xargs rm -fv)
	$(if $(DESTDIR),,/sbin/ldconfig)
ifndef DESTDIR
	$(DKMS_REMOVE)
	rm -rf $(DKMS_SRC)
endif

.PHONY: clean
clean:
	rm -rf build

.PHONY: help
help:
	@echo "make                      module for the running kernel, library, tools, tests"
	@echo "make modules KVER=V       module for Debian's kernel V: 6.1 6.12 7.3 6.1-cloud 6.12-arm64"
	@echo "make modules KDIR=DIR     module for the kernel whose build tree is DIR"
	@echo "make lib | tools | selftests"
	@echo "make arm64 | static       selftests for a guest with kernel 6.12-arm64 or 6.1-cloud"
	@echo "make check [STAGES=...]   all checks; 'tools/check --list' names the stages"
	@echo "make lint                 sparse, checkpatch, clang-format, shellcheck"
	@echo "make demo [HERE=1]        show it at work in a virtual machine (HERE: on this host)"
	@echo "make bench                compare with MPI libraries, results in build/bench"
	@echo "make bench-dma            copies by a DMA engine beside copies by the CPU"
	@echo "make bench-overlap        allgathers overlapped with the products that consume them"
	@echo "make bench-cluster [PART=] the same between nodes (pairs, cpu, instructions), and all algorithms on 16 (torus)"
	@echo "make install              library, tools, manual, udev rule [PREFIX= DESTDIR=]"
	@echo "make dkms [RELEASE=]      install the module through DKMS"
	@echo "make uninstall            take away what those two have installed"
	@echo "make figures              compare the algorithms by model, tables and pictures in build/figures"
	@echo "make setup                install the Debian packages all this needs"
	@echo "make kernels-refresh      fetch newer Debian kernels into the cache"
	@echo "make clean"
