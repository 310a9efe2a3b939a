# Bootlace's commands. Each is a short recipe; the work is cargo's or that of a script in scripts/.
#
#   make demo          boot a file over libslirp, no privileges       make test        everything but the slow parts
#   make lib TARGET=T  the static library for one target              make test-long   the slow parts
#   make targets       the targets' names                             make test-ports  the bootloader ports
#   make header        regenerate include/bootlace.h                  make cases       the field cases, one line each
#   make size          sizes per target into target/size.tsv          make bench       benchmarks into target/bench.tsv
#   make dist          a tarball per target, or TARGET's              make install     library, headers, pkg-config, CMake
#   make fuzz SECONDS=N  every fuzz target N seconds                  make clean
#   make demo-baremetal  the same on firmware in an emulator          make tool        the `lace` tool: target/examples/lace
#
# make lib takes FEATURES="tftp dhcp" (default: all clients), OPT=3|s|z and TARGET (default: host).

TARGET ?= host
FEATURES ?=
OPT ?=
SECONDS ?= 30
PREFIX ?= /usr/local
DESTDIR ?=
# A target that is named makes one tarball.
TARGETS ?= $(if $(filter file,$(origin TARGET)),,$(TARGET))

export TARGET FEATURES OPT PREFIX DESTDIR

.PHONY: all demo demo-baremetal tool test test-long test-ports cases bench bench-memory bench-tap bench-model bench-tlb size lib targets header \
	check-header dist install fuzz clean setup

all: lib

lib:
	@scripts/lib.sh "$(TARGET)"

targets:
	@scripts/lib.sh --list

header:
	@scripts/header.sh write

check-header:
	@scripts/header.sh check

setup:
	@scripts/setup-test.sh test

test: setup
	@scripts/test.sh test

test-long: setup
	@scripts/setup-test.sh targets
	@scripts/test.sh long

test-ports: setup
	@scripts/test.sh ports

cases:
	@scripts/cases.sh

demo:
	@scripts/demo.sh

demo-baremetal:
	@scripts/demo-baremetal.sh

tool:
	@scripts/tool.sh

bench:
	@scripts/bench.sh all

bench-memory bench-tap bench-model bench-tlb:
	@scripts/bench.sh $(@:bench-%=%)

size:
	@scripts/size.sh

dist:
	@TARGETS="$(TARGETS)" scripts/dist.sh

install:
	@scripts/install.sh

fuzz:
	@scripts/fuzz.sh "$(SECONDS)"

clean:
	rm -rf target fuzz/target
