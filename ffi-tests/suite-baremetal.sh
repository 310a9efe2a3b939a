#!/bin/sh
# The firmware of c-examples/baremetal boots 16 MiB over qemu's user network. `test`: one machine; `long`: all three.
set -u
cd "$(dirname "$0")/.."
. scripts/suite.sh
case ${1:-test} in
test) machines="armv7:armv7-uboot" ;; # a library that suite-machines.sh needs as well
long) machines="aarch64 armv7 riscv64" ;;
*) finish; exit ;;
esac
for machine in $machines; do
    check "firmware_boots_16_mib_on_${machine%:*}" scripts/demo-baremetal.sh "$machine"
done
finish
