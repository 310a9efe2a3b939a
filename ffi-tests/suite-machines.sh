#!/bin/sh
# Freestanding programs (ffi-tests/machines) under each bootloader's flags, run in an emulator. `test` takes three targets,
# one of them big-endian; `long` takes all. Where a machine can trap accesses that are not aligned, the frame suite runs with
# them trapped, and a program that makes one must end badly. What the frame suite sends is the same on every machine.
set -u
cd "$(dirname "$0")/.."
. scripts/suite.sh
. scripts/targets.sh
case ${1:-test} in
test) targets="armv7-uboot mips32be thumbv7em" ;;
long) targets=$ALL_TARGETS ;;
*) finish; exit ;;
esac

traps() { # traps TARGET: an unaligned load ends the program, by a signal or a fault of the board's
    scripts/bare.sh "$1" ffi-tests/machines/unaligned.c >target/bare/traps 2>&1
    status=$?
    [ $status = 135 ] || { [ $status = 3 ] && grep -q 'FAIL fault' target/bare/traps; }
}

mkdir -p target/bare
frames_say=
frames() { # frames TARGET: passes when it does, and says what the other machines said
    scripts/bare.sh "$1" ffi-tests/machines/frames.c >target/bare/frames 2>&1 || { cat target/bare/frames; return 1; }
    said=$(grep '^ok ' target/bare/frames) || return 1
    [ "${frames_say:-$said}" = "$said" ] || { echo "$said, not $frames_say"; return 1; }
}

for t in $targets; do
    check "lib_$t" scripts/lib.sh "$t"
    for program in ffi-tests/machines/*.c; do
        grep -q '^int bare_main' "$program" || continue
        name=$(basename "$program" .c)
        case $name in
        frames)
            check "frames_$t" frames "$t"
            frames_say=${frames_say:-$(grep '^ok ' target/bare/frames)}
            ;;
        unaligned)
            case $t in mips* | thumb*) check "unaligned_traps_$t" traps "$t" ;; esac
            ;;
        *) check "${name}_$t" scripts/bare.sh "$t" "$program" ;;
        esac
    done
    case ${1:-test}$t in
    longarmv7 | longmips32be | longpowerpc)
        check "giants_300_mib_$t" env CFLAGS=-DGIANT_MIB=300 TIMEOUT=600 scripts/bare.sh "$t" ffi-tests/machines/giants.c
        ;;
    esac
    case $t in
    armv7* | aarch64*) # the board itself: there the trap can be switched on
        export BOARD=virt
        check "unaligned_traps_${t}_virt" traps "$t"
        check "frames_${t}_virt" frames "$t"
        unset BOARD
        ;;
    thumbv6m) # a board of that size, with the clients that boot a file
        export LIB=target/bare/small/libbootlace.a BOARD=small
        check "lib_${t}_small" env FEATURES=dhcp,dns,ping,tftp OUT=target/bare/small WORK="$PWD/target/lib-small" scripts/lib.sh "$t"
        for name in conversation frames; do check "${name}_${t}_small" scripts/bare.sh "$t" "ffi-tests/machines/$name.c"; done
        unset LIB BOARD
        ;;
    thumbv7em) # built for a board that traps what ARMv7-M allows
        [ "${1:-test}" = long ] || continue
        export LIB=target/bare/strict/libbootlace.a CFLAGS="-DSTRICT -mno-unaligned-access"
        check "lib_${t}_strict" env OUT=target/bare/strict WORK="$PWD/target/lib-strict" EXTRA_FLAGS=-Ctarget-feature=+strict-align scripts/lib.sh "$t"
        check "frames_${t}_strict" frames "$t"
        unset LIB CFLAGS
        ;;
    esac
done
finish
