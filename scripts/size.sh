#!/bin/sh
# size.sh: target/size.tsv, one line for each target and feature set that this machine can build. Columns: target, features,
# text, data, bss (bytes of the shipped object), ram_default and ram_tftp (bytes of the block a stack needs), stack_depth (of
# lace_poll, bytes), tab-separated, one header line. docs/SIZES.md says how each is found.
# SIZE_TARGETS, SIZE_FEATURES ("set;set"): fewer of them. SIZE_OUT: another file. DOCS=yes: their rows in docs/SIZES.md too.
set -eu
cd "$(dirname "$0")/.."
. scripts/targets.sh
. scripts/cargo.sh

# In a set, features are joined by commas. `none` is the stack alone: UDP, ARP, ICMP, IPv4.
default_sets="none;dhcp,dns,ping,tftp"
has() { sed -n '/^\[features\]/,/^\[/p' Cargo.toml | grep -q "^$1 *="; }
has tcp && default_sets="$default_sets;dhcp,dns,ping,tftp,tcp"
default_sets="$default_sets;all"
sets=${SIZE_FEATURES:-$default_sets}

"$CARGO" build -q --release -p bootlace-sizes
tool=target/release/bootlace-sizes
out=${SIZE_OUT:-target/size.tsv}
new=$out.new
mkdir -p target/size
printf 'target\tfeatures\ttext\tdata\tbss\tram_default\tram_tftp\tstack_depth\n' >"$new"
mkdir -p target/size

# What ffi-tests/machines/ram.c says when it runs on the target: sizes that hold there, not here.
ram() { # ram NAME
    awk -v name="$1" '$1 == name { print $2; found = 1 } END { if (!found) print "-" }' target/size/ram
}

failed=
for t in ${SIZE_TARGETS:-$ALL_TARGETS}; do
    target_facts "$t"
    if ! command -v "${cross}gcc" >/dev/null; then echo "$t: ${cross}gcc is not installed ($package); left out" >&2; continue; fi
    old=$IFS
    IFS=';'
    for set in $sets; do
        IFS=$old
        features=$set work=$PWD/target/size/work dist=target/size/dist
        [ "$set" = all ] && features= work=$PWD/target/lib dist=target/dist/$t # the library that is shipped
        if ! FEATURES=$features OUT=$dist WORK=$work scripts/lib.sh "$t" >target/size/log 2>&1; then
            cat target/size/log >&2
            failed="$failed $t($set)"
            continue
        fi
        LIB=$dist/libbootlace.a scripts/bare.sh "$t" ffi-tests/machines/ram.c >target/size/ram 2>target/size/ram.err ||
            { cat target/size/ram.err >&2; failed="$failed ram:$t($set)"; }
        line=$("$tool" "$work/$t/with-stack-sizes.o" lace_poll) || { failed="$failed $t($set)"; continue; }
        # shellcheck disable=SC2086
        set -- $line
        printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$t" "$set" "$1" "$2" "$3" "$(ram ram_default)" "$(ram ram_tftp)" "$4" | tee -a "$new"
    done
    IFS=$old
done
mv "$new" "$out"
echo "$out: $(($(wc -l <"$out") - 1)) lines"
if [ "${DOCS:-}" = yes ]; then
    # Rows measured now take the place of those before; the order is that of the targets and sets.
    awk -v targets="$ALL_TARGETS" -v sets="$default_sets" '
        function row(line,   n, cell, i, text) {
            n = split(line, cell, "\t")
            for (i = 1; i <= n; i++) text = text " " cell[i] " |"
            return "|" text
        }
        FNR == NR { split($0, cell, "\t"); rows[cell[1], cell[2]] = row($0); next }
        /^<!-- sizes -->/ { print; inside = 1; next }
        /^<!-- end -->/ {
            print rows["target", "features"]
            print "|---|---|---:|---:|---:|---:|---:|---:|"
            n = split(targets, target, " ")
            m = split(sets, set, ";")
            for (i = 1; i <= n; i++)
                for (k = 1; k <= m; k++)
                    if ((target[i], set[k]) in rows) print rows[target[i], set[k]]
            inside = 0
        }
        inside { split($0, cell, " *[|] *"); if (!((cell[2], cell[3]) in rows)) rows[cell[2], cell[3]] = $0; next }
        { print }' "$out" docs/SIZES.md >target/size/SIZES.md
    cp target/size/SIZES.md docs/SIZES.md
fi
[ -z "$failed" ] || { echo "could not build:$failed" >&2; exit 1; }
