#!/bin/sh
# The laboratory's tests: the project's C programs against real servers. suite-lab.sh [test|long|ports]
set -u
cd "$(dirname "$0")/.."
. scripts/cargo.sh
case ${1:-test} in
test) set -- ;;
long) # all but the ports'; one after the other, for some compare times
    set -- --lib
    for f in ffi-tests/tests/*.rs; do
        case $f in */u_boot.rs) ;; *) set -- "$@" --test "$(basename "$f" .rs)" ;; esac
    done
    set -- "$@" -- --ignored --test-threads=1
    ;;
*) echo "0 passed, 0 failed"; exit 0 ;;
esac
log=target/suite-lab.log
mkdir -p target
{ "$CARGO" test -q --no-fail-fast -p bootlace-lab "$@" 2>&1; echo "status $?"; } | tee "$log" | grep -v '^status '
# cargo's own lines count what passed and failed; tests that returned early said so.
echo "0 passed, 0 failed, $(grep -c ' \.\.\. skipped: ' "$log") skipped"
exit "$(sed -n 's/^status //p' "$log")"
