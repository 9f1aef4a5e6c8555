# cuota: GPU quotas for unmodified CUDA programs.
#
#   make            the library, the command and the simulated driver, under build/ (O= moves it)
#   make demo       two tenants on one GPU, asked and measured side by side
#   make test       every test that needs no GPU
#   make help       the other targets
#
# Non-recursive: one rule per kind of output; every directory's sources are found by name, so a new
# file needs no edit here. SAN=address,undefined (or thread) instruments everything built.

O        ?= build
ifeq ($(origin CC),default)
CC       := gcc
endif
# V=1 shows the commands.
Q        := $(if $(V),,@)
say       = $(if $(V),,@printf '  %-5s %s\n' $(1) $@)
CUDA     ?= $(firstword $(wildcard /usr/local/cuda /usr/lib/cuda /opt/cuda) /usr)
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
DESTDIR  ?=
VERSION  := 0.1.0
COMMIT   := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
WERROR   ?= -Werror

WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wvla $(WERROR)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
INCLUDES := -Iinclude -Isrc -isystem $(CUDA)/include
CPPFLAGS += -D_GNU_SOURCE -DCUOTA_VERSION='"$(VERSION)"' $(INCLUDES)
CFLAGS   ?= -O2 -g
ALL_CFLAGS := -std=gnu11 $(CFLAGS) $(WARN) -fPIC -fvisibility=hidden -fno-strict-aliasing -MMD -MP $(SANFLAGS)
LDFLAGS  += $(SANFLAGS)

# Sources by layer (docs/design.md). Everything but src/preload is libcuota-core.a.
CORE_SRC    := $(sort $(wildcard src/base/*.c src/ledger/*.c src/memory/*.c src/sched/*.c src/driver/*.[cS] src/hooks/*.c))
PRELOAD_SRC := $(sort $(wildcard src/preload/*.c src/preload/*.S))
CLI_SRC     := $(sort $(wildcard tools/cuota/*.c))
SPANK_SRC   := $(sort $(wildcard tools/spank/*.c))
SPANK_H     := $(firstword $(wildcard /usr/include/slurm/spank.h /usr/local/include/slurm/spank.h /opt/slurm/include/slurm/spank.h))
SIM_SHARED  := $(sort $(wildcard tests/sim/shared_*.c))
SIM_NVML    := $(sort $(wildcard tests/sim/nvml_*.c))
SIM_CUDA    := $(filter-out $(SIM_SHARED) $(SIM_NVML),$(sort $(wildcard tests/sim/*.c)))
CHECKS      := $(sort $(wildcard tests/unit/check_*.c))
SIM_TOOLS   := $(sort $(wildcard tests/sim_tools/*.c))
GPU_TOOLS   := $(sort $(wildcard tests/gpu/*.c))
DOORS       := $(sort $(wildcard tests/doors/*.c))
BENCH_SRC   := $(sort $(wildcard tests/bench/*.c))

objs      = $(patsubst %,$(O)/obj/%.o,$(basename $(1)))
CORE_OBJ := $(call objs,$(CORE_SRC))

CHECK_BIN := $(patsubst tests/unit/%.c,$(O)/tests/%,$(CHECKS))
SIM_BIN   := $(patsubst tests/sim_tools/%.c,$(O)/tests/%,$(SIM_TOOLS))
GPU_BIN   := $(patsubst tests/gpu/%.c,$(O)/tests/%,$(GPU_TOOLS))
DOOR_BIN  := $(patsubst tests/doors/%.c,$(O)/doors/%,$(filter-out tests/doors/lib_%,$(DOORS)))
DOOR_LIB  := $(patsubst tests/doors/%.c,$(O)/doors/%.so,$(filter tests/doors/lib_%,$(DOORS)))
BENCH_BIN := $(patsubst tests/bench/%.c,$(O)/bench/%,$(BENCH_SRC))

# The device machine and other bare hosts have no Check; tests are linked against the archive.
CHECK_LIBS := -Wl,-Bstatic $(shell pkg-config --libs-only-l --static check 2>/dev/null | tr ' ' '\n' | grep -vxE -- '-lrt|-lm|-lpthread' | tr '\n' ' ') -Wl,-Bdynamic -lpthread -lrt -lm
# Static where an archive exists, so that the command runs on hosts without these packages.
CLI_LIBS   := -Wl,-Bstatic -ljansson -lncursesw -ltinfo -Wl,-Bdynamic

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all demo test integration gpu-test bench lint asan ubsan tsan fuzz man install uninstall dist clean help deps tests sim

all: $(O)/libcuota.so $(O)/cuota sim $(if $(SPANK_H),$(O)/cuota_spank.so)

sim: $(O)/sim/libcuda.so.1 $(O)/sim/libnvidia-ml.so.1

help:
	@sed -n 's/^#   //p;/^[a-z-]*:.*##/s/:.*## /\t/p' Makefile

# ---- the library ---------------------------------------------------------------------------------

# Thread-local data of the initial-exec kind: __tls_get_addr would make the loader a library that is needed.
$(CORE_OBJ): ALL_CFLAGS += -ftls-model=initial-exec

$(O)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<

$(O)/obj/%.o: %.S
	@mkdir -p $(@D)
	$(call say,AS)
	$(Q)$(CC) $(CPPFLAGS) -fPIC -MMD -MP -c -o $@ $<

$(O)/libcuota-core.a: $(CORE_OBJ)
	$(call say,AR)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# Only names from hooks.def, the look-ups and cuota_* leave the library.
$(O)/exports.map: src/hooks/hooks.def src/preload/exports.in src/hooks/nvml.def
	@mkdir -p $(@D)
	$(Q){ echo '{ global:'; sed -n 's/^\(HOOK\|NVML_HOOK\)(\([A-Za-z0-9_]*\).*/\t\2;/p' src/hooks/hooks.def src/hooks/nvml.def; cat src/preload/exports.in; echo 'local: *; };'; } > $@

# Needs libc.so.6 and nothing else: what glibc before 2.34 keeps in libdl and libpthread is found at run time.
# Never unloaded, since its thread runs in it; two segments instead of four cost every exec 12 us less.
$(O)/libcuota.so: $(CORE_OBJ) $(call objs,$(PRELOAD_SRC)) $(O)/exports.map
	$(call say,LINK)
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) $(LDFLAGS) -Wl,-soname,libcuota.so.0 -Wl,--version-script=$(O)/exports.map \
		-Wl,-Bsymbolic $(if $(SAN),,-Wl,-z,defs) -Wl,-z,relro,-z,now,-z,nodelete,-z,noseparate-code

# ---- the command ---------------------------------------------------------------------------------

# A host that has a built command but not what it is built from (a compute node) uses it as it is.
ifeq ($(wildcard /usr/include/jansson.h /usr/local/include/jansson.h),)
$(O)/cuota: $(O)/libcuota-core.a
	@test -x $@ || { echo "cuota: building the command needs jansson, libmicrohttpd and ncurses: make deps"; exit 1; }
	@touch $@
else
$(O)/cuota: $(call objs,$(CLI_SRC)) $(O)/libcuota-core.a
	$(call say,LINK)
	$(Q)$(CC) -o $@ $^ $(LDFLAGS) $(CLI_LIBS) -lpthread -ldl
endif

$(O)/obj/tools/cuota/version.o: CPPFLAGS += -DCUOTA_COMMIT='"$(COMMIT)"'

# ---- the Slurm plugin, where Slurm's headers are -------------------------------------------------

# spank_* and slurm_* come from the Slurm program that loads it; a plugin fits one Slurm release.
$(O)/cuota_spank.so: $(call objs,$(SPANK_SRC) $(filter src/base/% src/ledger/%,$(CORE_SRC))) tools/spank/exports.map
	$(call say,LINK)
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) $(LDFLAGS) -Wl,--version-script=tools/spank/exports.map \
		-Wl,-Bsymbolic -Wl,-z,relro,-z,now -lpthread -ldl

$(call objs,$(SPANK_SRC)): CPPFLAGS += -Itools/spank $(patsubst %,-isystem %,$(filter-out /usr/include,$(SPANK_H:/slurm/spank.h=))) \
	-DCUOTA_LIBRARY='"$(LIBDIR)/libcuota.so"'

# ---- the simulated driver ------------------------------------------------------------------------

$(call objs,$(SIM_CUDA) $(SIM_NVML) $(SIM_SHARED)): CPPFLAGS += -Itests/sim

$(O)/sim/libcuda.so.1: $(call objs,$(SIM_CUDA) $(SIM_SHARED))
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -shared -o $@ $^ $(LDFLAGS) -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -lpthread -ldl
	@ln -sf libcuda.so.1 $(O)/sim/libcuda.so

$(O)/sim/libnvidia-ml.so.1: $(call objs,$(SIM_NVML) $(SIM_SHARED))
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -shared -o $@ $^ $(LDFLAGS) -Wl,-soname,libnvidia-ml.so.1 -Wl,-Bsymbolic -lpthread -ldl
	@ln -sf libnvidia-ml.so.1 $(O)/sim/libnvidia-ml.so

# ---- tests ---------------------------------------------------------------------------------------

$(CHECK_BIN): $(O)/tests/%: tests/unit/%.c $(O)/libcuota-core.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -o $@ $< $(O)/libcuota-core.a $(LDFLAGS) $(CHECK_LIBS) -ldl

$(filter $(O)/tests/check_sim%,$(CHECK_BIN)): | sim

$(SIM_BIN): $(O)/tests/%: tests/sim_tools/%.c | $(O)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -o $@ $< $(LDFLAGS) -L$(O)/sim -Wl,--no-as-needed -l:libcuda.so.1 -ldl -lpthread

$(GPU_BIN): $(O)/tests/%: tests/gpu/%.c
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -o $@ $< $(LDFLAGS) -ldl -lpthread -lm

$(BENCH_BIN): $(O)/bench/%: tests/bench/%.c $(O)/libcuota-core.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -o $@ $< $(O)/libcuota-core.a $(LDFLAGS) -ldl -lpthread -lm

# Programs and libraries that reach the driver in every way; those whose names end in linked are linked to it.
$(O)/doors/%linked $(O)/doors/%linked.so: DOOR_LIBS = -L$(O)/sim -Wl,--no-as-needed -l:libcuda.so.1

$(O)/doors/lib_stands.so: DOOR_LIBS = $(O)/libcuota-core.a
$(O)/doors/lib_stands.so: $(O)/libcuota-core.a

$(DOOR_BIN): $(O)/doors/%: tests/doors/%.c $(O)/libcuota-core.a | $(O)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) -Itests $(ALL_CFLAGS) -o $@ $< $(O)/libcuota-core.a $(LDFLAGS) $(DOOR_LIBS) -ldl -lpthread

$(DOOR_LIB): $(O)/doors/%.so: tests/doors/%.c | $(O)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) -Itests $(ALL_CFLAGS) -fvisibility=default -shared -o $@ $< $(LDFLAGS) $(DOOR_LIBS) -ldl

# The simulated driver once more, of another name and with symbol versions, which dlvsym asks for.
$(O)/doors/vendor-driver.so: $(call objs,$(SIM_CUDA) $(SIM_SHARED)) tests/doors/versioned.map
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) $(LDFLAGS) -Wl,-soname,vendor-driver.so -Wl,-Bsymbolic \
		-Wl,--version-script=tests/doors/versioned.map -lpthread -ldl

# Every way to take device memory, and the judge of them: one binary for the simulated driver and a card.
ESCAPE_SRC := $(sort $(wildcard tests/escape/*.c))
ESCAPE_BIN := $(O)/tests/escape
$(call objs,$(ESCAPE_SRC)): CPPFLAGS += -Itests/escape

$(ESCAPE_BIN): $(call objs,$(ESCAPE_SRC))
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -o $@ $^ $(LDFLAGS) -ldl

tests: $(ESCAPE_BIN) $(CHECK_BIN) $(SIM_BIN) $(GPU_BIN) $(DOOR_BIN) $(DOOR_LIB) $(O)/doors/vendor-driver.so

deps: ## install what building and testing needs (root), or print the one command that does
	@tests/install-deps

demo: ## the main job on the GPU, or on the simulated one
	@tests/install-deps
	@$(MAKE) --no-print-directory all tests
	@tests/demo $(O)

test: ## every test that needs no GPU
	@tests/install-deps
	@$(MAKE) --no-print-directory all tests
	@tests/run-tests $(O)

integration: ## Slurm, containers, Jupyter, Kubernetes, Prometheus for real; PART=slurm: only that
	-@tests/install-deps build test slurm
	@$(MAKE) --no-print-directory all tests
	@tests/integration/run $(O) $(PART)

gpu-test: all $(GPU_BIN) $(ESCAPE_BIN) $(SIM_BIN) $(DOOR_BIN) $(DOOR_LIB) ## the tests that need a real GPU; results go to docs/measurements.md by hand
	@tests/gpu/run $(O)

bench: all $(BENCH_BIN) $(GPU_BIN) $(ESCAPE_BIN) ## benchmarks, on the GPU if there is one (QUICK=1: short)
	@tests/bench/run $(O)

# ---- quality -------------------------------------------------------------------------------------

lint: ## format, static checks, include directions, symbols
	@tests/lint $(O)

asan: ## the test suite under AddressSanitizer
	$(MAKE) O=$(O)-asan SAN=address,undefined CFLAGS='-O1 -g' sanitized-test

ubsan: ## the test suite under UndefinedBehaviorSanitizer
	$(MAKE) O=$(O)-ubsan SAN=undefined CFLAGS='-O1 -g' sanitized-test

tsan: ## the threaded unit tests under ThreadSanitizer
	$(MAKE) O=$(O)-tsan SAN=thread CFLAGS='-O1 -g' CC=clang UNIT_SKIP='check_sched_model check_sched_company' \
		UNIT_SKIP_WHY='one thread, virtual time' sanitized-test

.PHONY: sanitized-test
# ThreadSanitizer knows one process: the simulator's robust mutex, left behind by a killed holder, it takes for unlocked. Its
# report starts a symbolizer, which outlives the next kill with the seat in its hands.
sanitized-test: export TSAN_OPTIONS := report_mutex_bugs=0
sanitized-test: export UNIT_SKIP := $(UNIT_SKIP)
sanitized-test: export UNIT_SKIP_WHY := $(UNIT_SKIP_WHY)
sanitized-test: $(CHECK_BIN)
	@tests/run-unit $(O)

fuzz: ## each fuzzer for FUZZ_SECONDS (60)
	@tests/fuzz/run $(O)-fuzz

include $(wildcard packaging/install.mk)

clean:
	rm -rf $(O) $(O)-asan $(O)-ubsan $(O)-tsan $(O)-fuzz

-include $(shell find $(O) -name '*.d' -type f 2>/dev/null)
