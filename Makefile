# SPDX-License-Identifier: Apache-2.0
# A thin front of meson and ninja: installs what is missing, configures once, builds, tests.
# `make DEPS=skip …` leaves the machine's packages alone.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash

BUILD  ?= build
PREFIX ?= /usr/local
DEPS   ?= check
JOBS   ?= $(shell nproc)

# One moving line on a terminal, nothing but failures elsewhere (logs, CI).
NINJA = ninja -j $(JOBS) $(if $(MAKE_TERMOUT),,--quiet)
C_FILES = $$(git ls-files -co --exclude-standard '*.c' '*.h')

# deps GROUP…: see tools/deps for the packages and their reasons.
deps = @[ "$(DEPS)" = skip ] || tools/deps $(1)

# configure DIR FLAGS VARIABLES: meson's talk goes to a log that is shown only when it fails.
define configure
@[ -f $(1)/build.ninja ] || { mkdir -p $(1) && echo "configuring $(1)/" && \
	{ $(3) meson setup $(1) $(2) >$(1)/setup.log 2>&1 || { cat $(1)/setup.log; exit 1; }; }; }
endef

# compile DIR: silent when there is nothing to do, and when a changed meson.build is read again.
define compile
@ninja -C $(1) build.ninja >$(1)/setup.log 2>&1 || { cat $(1)/setup.log; exit 1; }
@ninja -C $(1) -n | grep -q 'no work to do' || $(NINJA) -C $(1)
endef

.PHONY: all
all: ## Build the programs: build/ingero and build/ingero-cluster
	$(call deps,build)
	$(call configure,$(BUILD))
	$(call compile,$(BUILD))

.PHONY: demo
demo: all ## Explain an incident: a real one as root, else a recorded one (no GPU needed)
	@$(BUILD)/ingero demo incident
	@echo "A cluster of 64 ranks, its day and its page: $(BUILD)/ingero-cluster demo"

.PHONY: check
check: ## Run all tests; the last line is "N passed, N failed, N skipped"
	$(call deps,build check)
	$(call configure,$(BUILD))
	@tools/check --build $(BUILD) $(if $(filter skip,$(DEPS)),,--fetch) $(CHECK)

.PHONY: duckdb
duckdb: ## Fetch libduckdb.so, in which `ingero-cluster echo` keeps its rows, into build/duckdb/
	@tools/duckdb --build $(BUILD)

OTHER_ARCH := $(if $(filter x86_64,$(shell uname -m)),aarch64,x86_64)
.PHONY: check-full
check-full: ## As check, with every scenario (ten minutes more), where what is unstable fails; then check-asan and check-tsan
	@! command -v $(OTHER_ARCH)-linux-gnu-gcc >/dev/null || $(MAKE) programs ARCH=$(OTHER_ARCH) # for 95-packages
	@SCENARIOS=all BLAME_JOBS=200 FLIPS=120 $(MAKE) check CHECK=--strict
	@BUILD=$(BUILD) tests/corpus/sensitivity
	@$(MAKE) check-asan check-tsan

CAMPAIGN_S ?= 14400
.PHONY: campaign
campaign: all duckdb ## Break the programs at random and count what is lost: CAMPAIGN_S=14400 seconds, SEED=17 plays one round again, FAULTS="kill,power" of them
	@tools/campaign --build $(BUILD) --seconds $(CAMPAIGN_S) $(SEED:%=--seed %) $(FAULTS:%=--faults %)

.PHONY: check-kernels
check-kernels: ## Boot other kernels under qemu, try the programs in each (VERSIONS="6.1 6.12", ARCH=aarch64), write docs/install.md
	$(call deps,build check)
	$(call configure,$(call folder_of,$(ARCH)),$(if $(call is_cross,$(ARCH)),--cross-file tools/cross/$(ARCH).ini))
	@$(NINJA) -C $(call folder_of,$(ARCH)) ingero libingero-nvtx.so sim-programs
	@tools/check-kernels --build $(call folder_of,$(ARCH)) --arch $(ARCH) $(if $(VERSIONS),,--write docs/install.md) $(VERSIONS)

# Sanitizers see what our own assertions do not; the first report ends a test. LeakSanitizer is a part of
# AddressSanitizer. They need no root and no kernel: programs that load BPF are left to `make check`.
.PHONY: check-asan
check-asan: debug ## Unit, golden, fault and fuzz tests in build-debug/ under ASan, UBSan and LeakSanitizer
	@[ "$(DEPS)" = skip ] || tools/duckdb --build build-debug
	@ASAN_OPTIONS=$(ASAN) UBSAN_OPTIONS=$(UBSAN) tools/check --build build-debug --suite unit --strict

.PHONY: check-tsan
check-tsan: ## Tests that start threads in build-tsan/ under ThreadSanitizer
	$(call deps,build)
	$(call configure,build-tsan,-Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false)
	@$(NINJA) -C build-tsan threaded-tests sim/sim-train sim/sim-nccl sim/sim-calls
	@TSAN_OPTIONS=$(TSAN) tools/check --build build-tsan --suite threads --strict
	@for program in "train --steps 20" nccl "calls --op launch --count 500 --threads 4" \
		"calls --op memcpy-async --count 500 --threads 4"; do \
		TSAN_OPTIONS=$(TSAN) build-tsan/sim/sim-$$program >build-tsan/sim.log 2>&1 || \
			{ cat build-tsan/sim.log; echo "failed: sim-$$program"; exit 1; }; \
	done; echo "sim-train, sim-nccl and sim-calls: no data race"

STOP  = halt_on_error=1:abort_on_error=1
ASAN  = $(STOP):allocator_may_return_null=1:detect_leaks=1:detect_stack_use_after_return=1
UBSAN = $(STOP):print_stacktrace=1
TSAN  = $(STOP):second_deadlock_stack=1

COVERAGE = build-coverage
.PHONY: coverage
coverage: ## Run the tests of check-asan with gcov, and print how much of each folder they ran
	$(call deps,build)
	$(call configure,$(COVERAGE),-Dbuildtype=debug -Db_coverage=true)
	$(call compile,$(COVERAGE))
	@tools/check --build $(COVERAGE) --suite unit | tail -n 1
	@tools/coverage --build $(COVERAGE)

# A folder that runs on a machine with an NVIDIA GPU, PyTorch and root, and nothing else of ours:
# `make check-gpu` there after copying it, or here if there is a GPU. ARCH=x86_64 builds it on arm64.
ARCH ?= $(shell uname -m)
KIT  ?= build-kit
# for `ingero demo`, whose recordings are best made on a quiet machine (tools/record-demo)
KIT_CROSS := $(if $(filter-out $(shell uname -m),$(ARCH)),$(ARCH)-linux-gnu-)
KIT_SIM = libcuda.so.1 libcudart.so.12 sim-train sim-cpu-hog sim-disk-hog
.PHONY: gpu-kit
gpu-kit: ## Make build-kit/: what tries the agent on a machine with a GPU (ARCH=x86_64 for another one)
	$(call deps,build)
	$(call configure,build-$(ARCH),$(if $(filter-out $(shell uname -m),$(ARCH)),--cross-file tools/cross/$(ARCH).ini))
	@$(NINJA) -C build-$(ARCH) ingero ingero-cluster libingero-nvtx.so bench/published_agent bench/bench_explain $(KIT_SIM:%=sim/%)
	@mkdir -p $(KIT)/sim && cp $(addprefix build-$(ARCH)/,ingero ingero-cluster libingero-nvtx.so bench/published_agent bench/bench_explain) tests/gpu/*.py $(KIT)/
	@cp $(KIT_SIM:%=build-$(ARCH)/sim/%) build-$(ARCH)/sim/sim-train.py $(KIT)/sim/
	@$(KIT_CROSS)gcc -O2 -shared -fPIC -o $(KIT)/ranks_preload.so tests/gpu/ranks_preload.c -ldl
	@$(KIT_CROSS)strip $(KIT)/ingero $(KIT)/ingero-cluster $(KIT)/published_agent $(KIT)/bench_explain
	@echo "$(KIT)/ is ready: on the machine with the GPU, sudo python3 $(KIT)/check_gpu.py"

.PHONY: check-gpu
check-gpu: gpu-kit ## Try the agent on this machine's GPU with PyTorch: coverage, losses, overhead
	@[ -e /dev/nvidia0 ] || { echo "no GPU here: copy $(KIT)/ to a machine that has one, and run" \
		"sudo python3 check_gpu.py there"; exit 69; }
	@python3 $(KIT)/check_gpu.py

.PHONY: check-versions
check-versions: ## Try every version of libnccl, libcudart and libcupti that pip has (root): docs/compatibility.md
	$(call deps,build)
	$(call configure,$(BUILD))
	$(call compile,$(BUILD))
	@tools/check-versions --build $(BUILD) --write

CHECK_KIT ?= build-check-kit
.PHONY: check-kit
check-kit: ## Make build-check-kit/: all tests, for a machine without compilers (ARCH=x86_64 for another one)
	$(call deps,build)
	$(call configure,build-check-$(ARCH),-Dkit=true $(if $(filter-out $(shell uname -m),$(ARCH)),--cross-file tools/cross/$(ARCH).ini))
	$(call compile,build-check-$(ARCH))
	@tools/check-kit --build build-check-$(ARCH) --out $(CHECK_KIT) --arch $(ARCH)
	@[ "$(DEPS)" = skip ] || tools/duckdb --build $(CHECK_KIT)/build --arch $(ARCH)

# Tests of what qemu-user does not emulate fail there: CONTRIBUTING says which. Kernels of arm64 are booted by
# `make check-kernels ARCH=aarch64`. Loader and C library are those of libc6:arm64, which the libraries to link with depend on: the
# cross compiler's loader with that library hangs at the first thread.
.PHONY: check-arm
check-arm: ## Unit tests of an arm64 build under qemu-user (Debian's qemu-user-static)
	@$(MAKE) check-kit ARCH=aarch64 CHECK_KIT=build-check-aarch64-kit
	@cd build-check-aarch64-kit && tools/check --kit --suite unit --emulator qemu-aarch64-static $(CHECK)

.PHONY: debug
debug: ## Build in build-debug/ with ASan and UBSan
	$(call deps,build)
	$(call configure,build-debug,-Dbuildtype=debug -Db_sanitize=address$(,)undefined -Db_lundef=false)
	$(call compile,build-debug)

SECONDS ?= 60
TARGET  ?=
.PHONY: fuzz
fuzz: ## Look for inputs that break a parser: SECONDS=60 for each target, or TARGET=name for one
	$(call deps,build fuzz)
	$(call configure,build-fuzz,-Dfuzz=true -Dwerror=false -Db_sanitize=address$(,)undefined -Db_lundef=false,CC="$$(command -v ccache) clang")
	@$(NINJA) -C build-fuzz fuzz-programs
	@tools/fuzz --build build-fuzz --seconds $(SECONDS) $(TARGET)

.PHONY: bench
bench: ## Run the benchmarks (root); each prints its figures against their budgets
	$(call deps,build bench)
	$(call configure,$(BUILD))
	$(call compile,$(BUILD))
	@meson test -C $(BUILD) --no-rebuild --benchmark --verbose --num-processes 1

.PHONY: bench-diagnose
bench-diagnose: ## Play scenarios for six minutes (root), say how often the diagnosis is right: docs/accuracy-rounds.md
	$(call deps,build)
	$(call configure,$(BUILD))
	$(call compile,$(BUILD))
	@BUILD=$(BUILD) python3 bench/diagnose.py --write $(DIAGNOSE)

.PHONY: format
format: ## Rewrite all C files in the project's style
	$(call deps,check)
	@clang-format -i $(C_FILES)

.PHONY: format-check
format-check: ## Say which C files are not in the project's style
	$(call deps,check)
	@clang-format --dry-run -Werror $(C_FILES)

.PHONY: words
words: ## Print every sentence a user can see, with its place
	@tools/words

.PHONY: docs
docs: all ## Write what follows from sources: flags in docs/commands.md, values of the charts, the plain manifest
	@BUILD=$(BUILD) tools/commands-page
	@BUILD=$(abspath $(BUILD)) tools/charts

# Packages of ARCH, below build-release/; packaging/pack says what each is, docs/install.md how to use it.
RELEASE   ?= build-release
SYSCONF   ?= /etc
KEY       ?=
ARCHES    ?= $(ARCH)
is_cross   = $(filter-out $(shell uname -m),$(1))
folder_of  = $(if $(call is_cross,$(1)),build-$(1),$(BUILD))
PACK       = packaging/pack --build $(BUILD) --out $(RELEASE)

# Both programs and those of the tarball; manual pages and completions come from the native build.
programs-%: all
	$(call configure,$(call folder_of,$*),$(if $(call is_cross,$*),--cross-file tools/cross/$*.ini))
	@$(NINJA) -C $(call folder_of,$*) ingero ingero-cluster packaging/portable/ingero packaging/portable/ingero-cluster

.PHONY: programs
programs: $(ARCHES:%=programs-%) ## Build both programs for ARCH, as packages hold them

.PHONY: deb
deb: programs ## Make Debian packages in build-release/ (ARCH=x86_64 for another machine)
	@$(PACK) deb --arch $(ARCH)

.PHONY: tarball
tarball: programs ## Make the tarball for other distributions (glibc 2.31 or later)
	@$(PACK) tarball --arch $(ARCH)

.PHONY: image
image: programs ## Make the OCI image
	$(call deps,pack)
	@$(PACK) image --arch $(ARCH)

.PHONY: release
release: programs ## Make all packages, sums and their signature: KEY=release.key (ARCHES="aarch64 x86_64")
	$(call deps,pack)
	@$(PACK) release $(ARCHES:%=--arch %) --key "$(KEY)"

INSTALL = packaging/pack --build $(BUILD) --prefix "$(PREFIX)" --sysconf "$(SYSCONF)" --destdir "$(DESTDIR)"
.PHONY: install
install: all ## Copy programs, libduckdb.so if it was fetched, units, manual pages and completions below PREFIX (default /usr/local); DESTDIR is honoured
	@$(INSTALL) install

.PHONY: uninstall
uninstall: all ## Remove what install copied; settings and recordings stay
	@$(INSTALL) uninstall

.PHONY: clean
clean: ## Remove everything that was built
	@rm -rf $(BUILD) build-debug build-tsan build-fuzz build-coverage $(RELEASE)

.PHONY: help
help: ## List the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' Makefile | \
		while IFS=$$'\t' read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

# A comma that $(call) does not take for a separator.
, := ,
