#!/bin/sh
# Runs the suites and closes with one line over all: `N passed, N failed, N skipped`. Exit status 1 when one failed.
# test.sh [test|long|ports]. Suites: cargo's, then every ffi-tests/suite-*.sh, which take the kind as their argument and
# print a closing line of their own. A suite that ends badly without a failure in its line counts as one more failure.
set -u
cd "$(dirname "$0")/.."
kind=${1:-test}
. scripts/cargo.sh
log=target/test.log
mkdir -p target
: >"$log"

suite() { # suite COMMAND…
    echo "== $*"
    echo "== $*" >>"$log"
    { "$@" 2>&1; echo "suite-status $?"; } | tee -a "$log" | grep -v '^suite-status '
}

start=$(date +%s)
case $kind in
test)
    suite "$CARGO" test -q --no-fail-fast --lib --tests
    suite "$CARGO" test -q --no-fail-fast --doc
    suite "$CARGO" test -q --no-fail-fast -p bootlace-benches -p bootlace-sizes
    suite "$CARGO" test -q --no-fail-fast --manifest-path fuzz/Cargo.toml --target-dir target/fuzz-tests
    ;;
long)
    suite "$CARGO" test -q --no-fail-fast --release --lib --tests -- --ignored
    # What stands for the features that are left out is another way through the stack.
    suite "$CARGO" test -q --no-fail-fast --lib --no-default-features --features dhcp,dns,ping,tftp --target-dir target/few
    suite "$CARGO" test -q --no-fail-fast --lib --no-default-features --features dhcp,dns,ping,tftp,tcp --target-dir target/few tcp::
    ;;
ports) ;;
*) echo "usage: $0 [test|long|ports]" >&2; exit 2 ;;
esac
for s in ffi-tests/suite-*.sh; do
    [ -e "$s" ] && suite sh "$s" "$kind"
done

echo "took $(($(date +%s) - start)) s; the whole output is in $log"
awk '
    function flush_suite() { if (name != "" && status != 0 && bad == 0) { f++; print "ended with status " status ": " name } }
    /^== / { name = $0; bad = 0; status = 0 }
    /^test result: / { p += $4; f += $6; bad += $6 }
    /^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ { p += $1; f += $3; bad += $3; s += $5 }
    /^suite-status / { status = $2; flush_suite() }
    END {
        if (p + f == 0) { print "no test ran"; f = 1 }
        printf "%d passed, %d failed, %d skipped\n", p, f, s
        exit (f > 0)
    }' "$log"
