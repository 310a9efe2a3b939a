#!/bin/sh
# demo-baremetal.sh [ARCH[:TARGET]…]: builds the firmware of c-examples/baremetal (aarch64, armv7, riscv64; default aarch64) and boots a file
# of 16 MiB with it on qemu's board `virt`, over qemu's user network, so that no privileges are needed. Its last line is
# `demo-baremetal: OK BYTES bytes sha256 HEX`, when every machine got what was served. BYTES: another size. TARGET: with
# another target's library.
set -eu
cd "$(dirname "$0")/.."
. scripts/baremetal.sh
[ $# -gt 0 ] || set -- aarch64
bytes=${BYTES:-16777216}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# A file whose blocks all differ.
awk 'BEGIN { for (i = 0; ; i++) printf "%015d\n", i * 2654435761 % 1000000000000000 }' 2>/dev/null | head -c "$bytes" >"$folder/kernel"
sum=$(sha256sum <"$folder/kernel" | cut -d' ' -f1)
for arch in "$@"; do
    library=${arch#*:} arch=${arch%:*}
    firmware "$arch" "$library"
    board "$arch" -netdev "user,id=n0,restrict=on,tftp=$folder,bootfile=kernel" | tr -d '\r' | tee "$folder/said"
    tail -1 "$folder/said" | grep -qx "boot: OK $bytes bytes sha256 $sum" || { echo "demo-baremetal: $arch did not boot what was served" >&2; exit 1; }
done
echo "demo-baremetal: OK $bytes bytes sha256 $sum"
