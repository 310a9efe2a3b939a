#!/bin/sh
# header.sh write: regenerates include/bootlace.h from src/ffi. header.sh check: regenerates it elsewhere and shows how the
# committed one differs, if it does.
set -eu
cd "$(dirname "$0")/.."
. scripts/cargo.sh
mkdir -p target/header
LACE_HEADER=$PWD/target/header/bootlace.h
export LACE_HEADER
rm -f "$LACE_HEADER"
touch cbindgen.toml # so that the build script runs
"$CARGO" check -q --lib --features header --target-dir target/header
case ${1:-check} in
write) mv "$LACE_HEADER" include/bootlace.h ;;
check)
    diff -u include/bootlace.h "$LACE_HEADER" || { echo "include/bootlace.h is not what src/ffi gives: make header" >&2; exit 1; }
    ;;
*) echo "usage: $0 write|check" >&2; exit 2 ;;
esac
