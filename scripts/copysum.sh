#!/bin/sh
# copysum.sh [TARGET…]: instructions that copying and summing 1 KiB of payload takes on each target, with the source 0 to 7 bytes
# further from a multiple of 8 than the destination, counted by a plugin in qemu: target/copysum.tsv. They are the difference
# of receiving two blocks by TFTP whose lengths are 1 KiB apart. DOCS=yes: the table in docs/SIZES.md too.
set -eu
cd "$(dirname "$0")/.."
. scripts/targets.sh
[ $# -gt 0 ] || set -- $ALL_TARGETS
mkdir -p target/bare
${CC:-cc} -shared -fPIC -O2 -Wall -Wextra -Werror ffi-tests/machines/count_plugin.c -o target/bare/count.so
out=target/copysum.tsv
printf 'target\t0\t1\t2\t3\t4\t5\t6\t7\n' >"$out.new"
for t in "$@"; do
    target_facts "$t"
    case $t in host) continue ;; esac # runs without an emulator
    command -v "${cross}gcc" >/dev/null || { echo "$t: ${cross}gcc is not installed ($package); left out" >&2; continue; }
    scripts/bare.sh "$t" ffi-tests/machines/copysum.c >&2 # makes it, and sees that it works
    at=$(readelf -sW "target/bare/$t/copysum" | awk '$8 == "bare_mark" { print "0x" $2 }')
    PLUGIN="$PWD/target/bare/count.so,at=$at" scripts/bare.sh "$t" ffi-tests/machines/copysum.c 2>&1 |
        awk -v t="$t" '$1 == "count" { if (n % 4 == 1) short = $2; if (n % 4 == 3) line = line "\t" $2 - short; n++ }
            END { if (n != 32) exit 1; print t line }' | tee -a "$out.new"
done
mv "$out.new" "$out"
if [ "${DOCS:-}" = yes ]; then
    awk -F'\t' '
        FNR == NR { row = "|"; for (i = 1; i <= NF; i++) row = row " " $i " |"; rows[++n] = row; next }
        /^<!-- copysum -->/ {
            print
            for (i = 1; i <= n; i++) { print rows[i]; if (i == 1) print "|---|---:|---:|---:|---:|---:|---:|---:|---:|" }
            skip = 1
            next
        }
        /^<!-- end copysum -->/ { skip = 0 }
        !skip { print }' "$out" docs/SIZES.md >target/bare/SIZES.md
    cp target/bare/SIZES.md docs/SIZES.md
fi
