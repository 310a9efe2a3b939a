#!/bin/sh
# The bootloader ports as their users build them: Debian's U-Boot source package with the glue, its sandbox between real servers
# (ffi-tests/tests/u_boot.rs). suite-ports.sh [test|long|ports]: does something for `ports` only.
set -u
cd "$(dirname "$0")/.."
. scripts/suite.sh
[ "${1:-test}" = ports ] || { finish; exit; }
. scripts/cargo.sh
lines=$(cat c-examples/u-boot/*.c c-examples/u-boot/*.h | scripts/code-lines.sh)
if [ "$lines" -le 1200 ]; then pass "u_boot_glue_of_${lines}_lines"; else fail u_boot_glue "$lines lines of code"; fi
check u_boot_builds scripts/u-boot.sh bootlace
finish
log=target/suite-ports.log
{ "$CARGO" test -q --no-fail-fast -p bootlace-lab --test u_boot -- --ignored 2>&1; echo "status $?"; } | tee "$log" | grep -v '^status '
echo "0 passed, 0 failed, $(grep -c ' \.\.\. skipped: ' "$log") skipped"
exit "$(sed -n 's/^status //p' "$log")"
