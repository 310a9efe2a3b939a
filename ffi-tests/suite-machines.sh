#!/bin/sh
# Freestanding programs (ffi-tests/machines) under each bootloader's flags, run in an emulator. `test` takes three targets,
# one of them big-endian; `long` takes all.
set -u
cd "$(dirname "$0")/.."
. scripts/suite.sh
. scripts/targets.sh
case ${1:-test} in
test) targets="armv7-uboot mips32be thumbv7em" ;;
long) targets=$ALL_TARGETS ;;
*) finish; exit ;;
esac
for t in $targets; do
    check "lib_$t" scripts/lib.sh "$t"
    for program in ffi-tests/machines/*.c; do
        grep -q '^int bare_main' "$program" || continue
        check "$(basename "$program" .c)_$t" scripts/bare.sh "$t" "$program"
    done
done
finish
