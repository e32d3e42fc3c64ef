# SPDX-License-Identifier: GPL-2.0-only
# The entry point: builds the module, the library and the tools into build/, and runs
# the checks, the demonstration and the benchmarks. `make help` lists the targets.
# Kbuild describes the module, a Makefile of its own each folder of user code.

VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
PREFIX ?= /usr/local
export PREFIX DESTDIR

HOST_RELEASE := $(shell uname -r)
HOST_KDIR := /lib/modules/$(HOST_RELEASE)/build

# V=1 shows all commands; otherwise one line per object.
export V
MAKEFLAGS += --no-print-directory
# All cores for the makes below, unless the user gave a number (-jN, N > 1).
J = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

# What can be built with what is installed; the summary names what could not, and the package to install.
.PHONY: all
all:
	@parts=$$(tools/summary parts "$(or $(KDIR),$(KVER))") && \
	$(MAKE) $$parts && \
	tools/summary show "$$parts"

# tools/build-module KDIR; KBUILD_ARGS go to the kernel's make. With test-modules, also the modules for tests.
.PHONY: modules test-modules
modules test-modules:
	+@set -e; kdir=$${KDIR:-$(KDIR)}; \
	if [ -z "$$kdir" ] && [ -n "$(KVER)" ]; then kdir=$$(tools/vm/kernels kdir "$(KVER)"); fi; \
	J=$J tools/build-module $(if $(filter test-%,$@),--tests) "$${kdir:-$(HOST_KDIR)}" $(KBUILD_ARGS)

# tests: what check, or make -C selftests run_tests, would otherwise build first.
.PHONY: lib tools selftests tests
lib:
	@tools/summary need lib
	@$(MAKE) $J -C userlib
tools: lib
	@tools/summary need tools
	@$(MAKE) $J -C tools
selftests: lib
	@$(MAKE) $J -C selftests all mpi
tests: selftests

# For guests without the host's files (the folders are relative to those of the Makefiles): the selftests, static, in
# build/arm64/selftests/install, with unit tests; the tools, linked with the libraries that such guests have, in
# build/arm64/bin. The linker would warn that name service needs more than static libraries.
.PHONY: arm64
arm64:
	@set -e; programs=$$(tools/vm/kernels programs 6.12-arm64); \
	libraries="-L$$programs/usr/lib/aarch64-linux-gnu"; \
	set -- CC=aarch64-linux-gnu-gcc CXX= FC= AR=aarch64-linux-gnu-ar PKG_CONFIG=false \
		CFLAGS="-O2 -isystem $$programs/usr/include"; \
	static="-static -s -Wl,--no-warnings $$libraries"; \
	$(MAKE) $J -C userlib BUILD=../build/arm64 "$$@" LDFLAGS="$$static" \
		../build/arm64/lib/libswingcoll.a ../build/arm64/plain/test_reduce ../build/arm64/plain/test_sparse; \
	$(MAKE) $J -C selftests OUTPUT=../build/arm64/selftests LIB=../build/arm64/lib "$$@" LDFLAGS="$$static" install; \
	cp build/arm64/plain/test_reduce build/arm64/plain/test_sparse build/arm64/selftests/install; \
	$(MAKE) $J -C tools BUILD=../build/arm64 "$$@" LDFLAGS="-s $$libraries" expat= glpk= \
		LIBSWC="../build/arm64/lib/libswingcoll.a -luring -lm"

# The same for this machine's architecture: build/static.
.PHONY: static
static: lib
	@$(MAKE) $J -C selftests OUTPUT=../build/static LDFLAGS="-static -s -Wl,--no-warnings"

# check: every part of the project once; check-full: everything on all kernels. STAGES="lint ..." runs only some.
.PHONY: check check-full lint
check:
	@tools/check $(STAGES)
check-full:
	@tools/check --full $(STAGES)
lint:
	@tools/lint

# The reliability campaign, MINUTES for each part; PARTS="kill fuzz ..." for some. tools/soak --list names them.
.PHONY: soak
soak:
	@tools/soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) \
		$(if $(CUTS),--cuts $(CUTS)) $(PARTS)

# Real MPI programs with and without the preload library; PROGRAMS="pw gromacs" for some of them.
.PHONY: mpi-programs
mpi-programs:
	@tools/setup mpi programs
	@$(MAKE) -s lib tools
	@$(MAKE) -s modules KVER=6.12
	@tools/vm/run --kernel 6.12 --cx16 --mem 4G --timeout 3000 -- selftests/mpi/programs.sh $(PROGRAMS)

# The tests of collectives that MPICH ships, likewise, with both MPIs; SUITE_FOLDERS="comm topo" runs other ones.
.PHONY: mpi-suite
mpi-suite:
	@tools/vm/mpi-suite
	@$(MAKE) -s lib tools
	@$(MAKE) -s modules KVER=6.12
	@tools/vm/run --kernel 6.12 --cx16 --mem 4G --timeout 6000 --env SUITE_FOLDERS="$(SUITE_FOLDERS)" \
		-- selftests/mpi/suite.sh

# The lines of the module that its tests run; TESTS="..." runs only some.
.PHONY: coverage
coverage:
	@tools/vm/coverage $(TESTS)

# HERE=1: on this machine instead of a virtual one.
.PHONY: demo
demo:
	@tools/vm/demo $(if $(HERE),--here)

# What most benchmarks run: programs of MPI libraries, ours, and the module.
.PHONY: bench-programs
bench-programs:
	@tools/setup bench
	@$(MAKE) -s lib tools
	@$(MAKE) -s -C tools bench
	@$(MAKE) -s modules KVER=6.12

.PHONY: bench
bench: bench-programs
	@tools/vm/run --kernel 6.12 --cpus 2 --mem 4G --timeout 3600 --out build/bench -- tools/bench/run
	@tools/vm/run --kernel 6.12 --cpus 2 --mem 4G --timeout 600 --out build/bench -- tools/bench/executor

# MPI beside itself under the preload library.
.PHONY: bench-mpi
bench-mpi: bench-programs
	@tools/vm/run --kernel 6.12 --cpus 2 --mem 4G --timeout 1800 -- tools/bench/mpi

# The backend of torch.distributed beside gloo: all_reduce, and steps of a training.
.PHONY: bench-torch
bench-torch:
	@tools/setup torch
	@$(MAKE) -s lib
	@$(MAKE) -s modules KVER=6.12
	@tools/vm/run --kernel 6.12 --cpus 2 --mem 3G --timeout 1800 --env PYTHONPATH=build/python -- sh -c \
		'tools/bench/torch -n 2 && tools/bench/torch -n 4 && tools/examples/train_digits.py'

.PHONY: bench-dma bench-overlap
# CPU time and small differences: both are lost in the noise of a busy host.
bench-dma: clock = --icount --cpus 1
bench-dma bench-overlap: bench-%:
	@tools/setup bench
	@$(MAKE) -s lib tools
	@$(MAKE) -s test-modules KVER=6.12
	@tools/vm/run --kernel 6.12 --mem 2G --timeout 2400 $(clock) --out build/bench -- tools/bench/$*

# Several virtual machines at once: pairs, tcp, cpu, instructions and torus. PART= one of these, or split, forest, bine or
# model, which are not part of all; tools/bench/cluster --help describes them.
.PHONY: bench-cluster
bench-cluster: bench-programs
	@tools/bench/cluster $(PART)

# Between two nodes, and four: sparse allreduces over density, with a picture if it can be drawn.
.PHONY: bench-sparse
bench-sparse:
	@tools/setup figures
	@$(MAKE) -s lib tools
	@$(MAKE) -s modules KVER=6.12
	@tools/bench/sparse

# Need neither the module nor a virtual machine. figures: times by models, in build/figures. readme-figures: the plots
# of the README and of RESULTS.md, from data in the tree.
.PHONY: figures readme-figures
figures:
	@tools/setup figures
	@$(MAKE) -s lib tools
	@build/bin/swingplan figures --out build/figures
	@tools/bench/workloads --out build/figures
	@tools/bench/plot --out build/figures build/figures/figures.json build/figures/workloads.json
readme-figures:
	@tools/setup figures
	@tools/bench/plot --readme

# Debian packages of all of it, in build/deb.
.PHONY: deb
deb:
	@tools/setup deb
	@tools/dist/build-deb

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

# The module for the running kernel, or for RELEASE; dkms rebuilds it by itself
# whenever a kernel is installed. Earlier builds of this version are removed first, for
# all kernels: dkms does not notice that the source has changed.
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

# Remove what install and dkms have installed.
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
clean: # modules may have been built in a folder of the cache
	@bash -c '. tools/vm/lib.sh && rm -rf "$$(modules_dir)"'
	rm -rf build

.PHONY: help
help:
	@echo "make                      module for the running kernel, library, tools [V=1: show commands]"
	@echo "make modules KVER=V       module for Debian's kernel V: 6.1 6.12 7.3 6.1-cloud 6.12-arm64"
	@echo "                          or for one with checkers: 6.12-kasan 6.12-kcsan"
	@echo "make modules KDIR=DIR     module for the kernel whose build tree is DIR"
	@echo "make lib | tools | tests"
	@echo "make test-modules [KVER=] the module, and modules for tests"
	@echo "make arm64 | static       tests (arm64: and tools) for a guest with kernel 6.12-arm64 or 6.1-cloud"
	@echo "make check [STAGES=...]   checks of every part; 'tools/check --list' names the stages"
	@echo "make check-full [STAGES=] all checks at full length, on all kernels"
	@echo "make soak [MINUTES= PARTS= CUTS=] the reliability campaign: kills, attacks, fuzzing, a changing machine"
	@echo "make mpi-programs [PROGRAMS=] real MPI programs, such as LAMMPS, with and without the preload library"
	@echo "make mpi-suite [SUITE_FOLDERS=] MPICH's tests of collectives, likewise, with MPICH and Open MPI"
	@echo "make coverage [TESTS=]    which lines of the module its tests run, by source, in build/coverage"
	@echo "make lint                 sparse, checkpatch, clang-format, shellcheck, codespell, reuse, calls between files"
	@echo "make demo [HERE=1]        show it at work in a virtual machine (HERE: on this host)"
	@echo "make bench                compare with MPI libraries, results in build/bench"
	@echo "make bench-mpi            compare MPI libraries with themselves under the preload library"
	@echo "make bench-torch          all_reduce and training of PyTorch by swingcoll and by gloo"
	@echo "make bench-dma            copies by a DMA engine beside copies by the CPU"
	@echo "make bench-overlap        allgathers overlapped with the products that consume them"
	@echo "make bench-cluster [PART=] the same between nodes (pairs, tcp, cpu, instructions), and all algorithms on 16 (torus);"
	@echo "                          other networks by PART=split, forest or bine"
	@echo "make bench-sparse         sparse allreduces over density, between nodes: break-even, table and plot in build/bench"
	@echo "make bench-cluster PART=model   measurements in the tree compared with the model as it is now"
	@echo "make figures              compare algorithms and workloads by models, tables and plots in build/figures"
	@echo "make readme-figures       draw the plots of the README again"
	@echo "make install              library, tools, manual, udev rule [PREFIX= DESTDIR=]"
	@echo "make deb                  Debian packages in build/deb"
	@echo "make dkms [RELEASE=]      install the module through DKMS"
	@echo "make uninstall            remove what those two have installed"
	@echo "make setup                install the Debian packages all this needs"
	@echo "make kernels-refresh      fetch newer Debian kernels into the cache"
	@echo "make clean"
