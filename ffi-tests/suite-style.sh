#!/bin/sh
# The house rules that a machine can check: formatting, lints, imports that point downward only, file lengths.
set -u
cd "$(dirname "$0")/.."
. scripts/suite.sh
[ "${1:-test}" = test ] || { finish; exit; }
. scripts/cargo.sh

# Layers, lowest first. A file may name its own layer and those below.
downward() {
    below=
    bad=0
    for layer in wire storage stack udp tcp client ffi; do
        above="${above_all#* "$layer" }"
        for up in $above; do
            grep -rnE "\b(crate|super::super)::$up\b" "src/$layer" "src/$layer.rs" --include='*.rs' 2>/dev/null |
                grep -vE '^[^:]*(/tests/[^:]*|/tests\.rs|_tests\.rs):' | awk -F: -v up="$up" '{ print "names " up ": " $0; found = 1 } END { exit !found }' && bad=1
        done
    done
    return $bad
}
above_all=" wire storage stack udp tcp client ffi "
unsafe_in_ffi_only() { ! grep -rnE '\bunsafe (fn|impl|extern|\{)|#!?\[allow\(.*unsafe_code' src --include='*.rs' | grep -v '^src/ffi/'; }
short_files() { # code without its tests
    for f in $(git ls-files 'src/*.rs' | grep -vE '/tests/|/tests\.rs|_tests\.rs'); do
        n=$(awk '/^#\[cfg\(test\)\]/ { exit } { n++ } END { print n + 0 }' "$f")
        [ "$n" -le 850 ] || echo "$f: $n lines"
    done | { ! grep .; }
}
no_private_words() { # paths and hosts of one machine do not belong into the tree
    ! git grep -nIE '(^|[^[:alnum:]_/}"])/(work|root)/|index\.crates\.io|deb\.debian\.org' -- . ':!ffi-tests/suite-style.sh' ':!Cargo.lock'
}

if "$CARGO" fmt --version >/dev/null 2>&1; then check rustfmt "$CARGO" fmt --all --check; fi
if "$CARGO" clippy --version >/dev/null 2>&1; then
    check clippy "$CARGO" clippy -q --workspace --all-targets -- -D warnings
fi
check imports_point_downward downward
check unsafe_in_ffi_only unsafe_in_ffi_only
check short_files short_files
check no_private_words no_private_words
finish
