#!/bin/sh
# bench.sh all|memory|tap|model|tlb: runs one group of benchmarks, or all, into target/bench.tsv.
set -eu
cd "$(dirname "$0")/.."
. scripts/cargo.sh
group=${1:-all}
ran=
for g in memory tap model tlb; do
    [ "$group" = all ] || [ "$group" = $g ] || continue
    if [ ! -e "benches/src/bin/$g.rs" ]; then
        [ "$group" = all ] || { echo "there is no group $g yet" >&2; exit 1; }
        continue
    fi
    [ $g = tap ] && scripts/setup-test.sh test
    case $g in memory | tlb) # these measure the library as it ships, beside others, in one process
        scripts/lib.sh host
        mkdir -p target/bench
        ${CC:-cc} -shared -nostartfiles -Wl,-Bsymbolic -o target/bench/libbootlace.so \
            -Wl,--whole-archive target/dist/host/libbootlace.a -Wl,--no-whole-archive
        ;;
    esac
    "$CARGO" run -q --release -p bootlace-benches --bin $g
    ran=yes
done
[ -n "$ran" ] || { echo "usage: $0 all|memory|tap|model|tlb" >&2; exit 2; }
