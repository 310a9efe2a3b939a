#!/bin/sh
# cases.sh: runs the field cases alone, one line a case: `ID pass` when every part of it is tested and passes, else
# `ID fail WHY`. `not built` (parts that later work brings) leaves the exit status alone. ffi-tests/cases.list holds the
# ids, and behind each what of it is not built yet; a test belongs to a case by its name: case_t05_… is of T05.
set -u
cd "$(dirname "$0")/.."
. scripts/cargo.sh
log=target/cases.log
mkdir -p target
: >"$log"
"$CARGO" test --workspace --no-fail-fast case_ >>"$log" 2>&1
cargo_status=$?
if [ "$cargo_status" != 0 ] && ! grep -q '^test result: ' "$log"; then
    cat "$log"
    exit 1
fi
awk '
    FNR == NR { # the test output: `test a::b::case_t05_name ... ok`
        if ($1 == "test" && match($2, /(^|::)case_[a-z][0-9]+_/)) {
            id = substr($2, RSTART, RLENGTH)
            sub(/^(::)?case_/, "", id); sub(/_$/, "", id)
            id = toupper(id)
            name = $2; sub(/.*::/, "", name)
            if ($NF == "ok") good[id]++
            else if ($NF == "FAILED") bad[id] = bad[id] " " name
            else if (/ignored/) slow[id]++
        }
        next
    }
    /^#/ || NF == 0 { next }
    {
        id = $1; listed[id] = 1
        missing = $0; sub(/^[A-Z0-9]+[ \t]*/, "", missing)
        if (bad[id] != "") { print id " fail failed:" bad[id]; status = 1 }
        else if (missing != "") print id " fail not built: " missing
        else if (good[id] + 0 == 0) { print id " fail has no test"; status = 1 }
        else print id " pass"
    }
    END {
        for (id in bad) if (!listed[id]) { print id " fail is not in the list"; status = 1 }
        for (id in good) if (!listed[id] && bad[id] == "") { print id " fail is not in the list"; status = 1 }
        exit status
    }' "$log" ffi-tests/cases.list
