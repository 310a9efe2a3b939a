#!/bin/sh
# fuzz.sh SECONDS: every fuzz target SECONDS seconds, each from its own corpus. Exit status 1 on a finding, which stays in
# fuzz/artifacts. Needs cargo-fuzz (cargo install cargo-fuzz) and a nightly toolchain, or a compiler that takes
# RUSTC_BOOTSTRAP=1. The library allocates nothing; what the simulated hosts of two targets leak is not looked at.
set -u
cd "$(dirname "$0")/.."
seconds=${1:-30}
case $seconds in '' | *[!0-9]*) echo "usage: make fuzz SECONDS=N" >&2; exit 2 ;; esac
[ -d fuzz ] || { echo "there are no fuzz targets yet" >&2; exit 1; }
command -v cargo-fuzz >/dev/null || { echo "cargo-fuzz is missing: cargo install cargo-fuzz" >&2; exit 1; }
if rustup run nightly rustc --version >/dev/null 2>&1; then
    fuzz="cargo +nightly fuzz"
else
    export RUSTC_BOOTSTRAP=1
    fuzz="cargo fuzz"
fi
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
targets=$($fuzz list) || exit 1
[ -n "$targets" ] || { echo "there are no fuzz targets" >&2; exit 1; }
found=
for t in $targets; do
    echo "== $t, $seconds s"
    # New inputs go to a scratch corpus; the committed one (fuzz/corpus) only feeds.
    mkdir -p "target/fuzz-corpus/$t" "fuzz/corpus/$t"
    if ! $fuzz run "$t" "target/fuzz-corpus/$t" "fuzz/corpus/$t" -- -max_total_time="$seconds" -print_final_stats=1 -rss_limit_mb=8192 >"target/fuzz-$t.log" 2>&1; then
        found="$found $t"
        tail -30 "target/fuzz-$t.log"
    else
        grep -E 'stat::number_of_executed_units|^#[0-9]+.*DONE' "target/fuzz-$t.log"
    fi
done
[ -z "$found" ] || { echo "findings in:$found" >&2; exit 1; }
