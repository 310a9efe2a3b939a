#!/bin/sh
# lib.sh TARGET: builds target/dist/TARGET/libbootlace.a, an archive with one relocatable object.
# FEATURES: client features, space or comma separated (default: the crate's default set; `none`: the stack alone).
# OPT: opt-level. OUT: output directory. WORK: where cargo builds. EXTRA_FLAGS: more rustc flags.
#
# The Rust archive is linked into one object in which only lace_* stays global: what nothing reaches is dropped, and core's
# own symbols cannot clash with those of another Rust library in the same image. Paths are remapped and the archive carries
# no dates, so the result is the same from any directory.
set -eu
cd "$(dirname "$0")/.."
. scripts/targets.sh

[ "${1:-}" = --list ] && { printf '%s\n' $ALL_TARGETS; exit 0; }
name=${1:-host}
. scripts/cargo.sh
[ "$name" != host ] || need host "${RUSTC:-rustc}" rustc-web
target_facts "$name" || exit 2

out=${OUT:-target/dist/$name}
work=${WORK:-$PWD/target/lib}
opt=${OPT:-$opt}
# Microcontrollers have little room: only what is shorter that way is inlined, also of what is marked `#[inline]` (5 % of the
# text); what is marked `always` still is.
case $name:$opt in thumb*:s) flags="$flags -Cllvm-args=-inline-threshold=5 -Cllvm-args=-inlinehint-threshold=10" ;; esac

for tool in ld objcopy ar; do need "$name" "$cross$tool" "$package"; done
need "$name" readelf binutils

# Every target but the host's is built with core from source, by Debian's compiler: this serves targets without a
# prebuilt core, and keeps a reserved register reserved in core too.
std=
if [ "$name" = host ]; then
    RUSTC=${RUSTC:-rustc}
else
    RUSTC=${LACE_RUSTC:-/usr/bin/rustc}
    lib=$("$RUSTC" --print sysroot 2>/dev/null || true)/lib/rustlib/src/rust/library
    [ -x "$RUSTC" ] && [ -d "$lib" ] || {
        echo "$name: needs a compiler with library sources; as root: apt-get install --no-install-recommends rustc-web rust-web-src" >&2
        exit 1
    }
    export RUSTC_BOOTSTRAP=1
    std="-Zbuild-std=core"
    [ -z "$convention" ] || std="$std -Zbuild-std-features=compiler-builtins-mem"
    flags="$flags -Zemit-stack-sizes"
fi
export RUSTC

set -- $(printf '%s' "${FEATURES:-}" | tr ',' ' ')
known=$(sed -n '/^default = \[/{s/^[^[]*\[//;s/[],"]//g;p;}' Cargo.toml)
for feature in "$@"; do
    case " $known none " in *" $feature "*) continue ;; esac
    echo "unknown feature: $feature; known: $known, or none" >&2
    exit 2
done
case "${FEATURES:-}" in
'') features="--features panic-handler" ;;
none) features="--no-default-features --features panic-handler" ;;
*) features="--no-default-features --features panic-handler,$(IFS=,; echo "$*")" ;;
esac

# The rustup or Debian source tree, the registry and this directory: none of their names may show in the object.
sysroot=$("$RUSTC" --print sysroot)
sep=$(printf '\037') # cargo's separator: a path may hold spaces
remap="--remap-path-prefix=$PWD=/bootlace$sep--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo$sep--remap-path-prefix=$sysroot=/rust"
[ "$name" = host ] || remap="$remap$sep--remap-path-prefix=$(readlink -f "$lib")=/rust/library"
tables="-Cforce-unwind-tables=no"
[ "$name" = host ] && tables=

export CARGO_PROFILE_RELEASE_OPT_LEVEL="$opt" CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_PANIC=abort
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_INCREMENTAL=0
CARGO_ENCODED_RUSTFLAGS=$(printf '%s' "-Awarnings $flags $tables ${EXTRA_FLAGS:-}" | tr -s ' ' | sed 's/ $//' | tr ' ' '\037')$sep$remap
export CARGO_ENCODED_RUSTFLAGS
mkdir -p "$work/$name"
if command -v flock >/dev/null; then # one build of a target at a time, the linking included
    exec 7>"$work/$name/lock"
    flock 7
fi

# Where the compiler's target keeps a frame pointer in every function, one that does not is made from it: a register more,
# and on thumbv7em 3.6 % less text. Nothing here walks the stack. Not where r9 is reserved: without a frame pointer, LLVM
# pushes and pops r9 as it is, to keep the stack aligned.
target=$rust
if [ -n "$std" ] && [ "${flags#*reserve-r9}" = "$flags" ] && spec=$("$RUSTC" -Zunstable-options --print target-spec-json --target "$rust") &&
    printf '%s' "$spec" | grep -q '"frame-pointer": "always"' && "$CARGO" -Z help 2>/dev/null | grep -q json-target-spec; then
    target=$work/$name/$rust.json
    printf '%s\n' "$spec" | sed '/"frame-pointer"/d' >"$target"
    std="$std -Zjson-target-spec"
fi
# shellcheck disable=SC2086
"$CARGO" rustc -q --lib --release --crate-type staticlib $features --target "$target" --target-dir "$work/$name" $std

archive=$work/$name/$rust/release/libbootlace.a
mkdir -p "$out"
tmp=$out/.prelink
rm -rf "$tmp"
mkdir -p "$tmp"

# readelf, not nm: members that carry bitcode show no symbols to nm.
readelf -sW "$archive" 2>/dev/null | awk '$5 == "GLOBAL" && $7 != "UND" && $8 ~ /^lace_/ { print $8 }' | sort -u >"$tmp/exports"
[ -s "$tmp/exports" ] || { echo "$name: the library exports nothing" >&2; exit 1; }

# The four mem functions are the host's even where core brings its own: --wrap leaves them undefined under another name,
# which is then put right. LLVM turns memcmp(…) == 0 into bcmp, which few bootloaders have; memcmp serves.
emulation= wrap= unwrap=
case $name in riscv32) emulation="-m elf32lriscv" ;; esac
for f in memcpy memmove memset memcmp bcmp; do
    [ -z "$convention" ] || break # the host's have another convention
    wrap="$wrap --wrap=$f"
    [ $f = bcmp ] || unwrap="$unwrap --redefine-sym __wrap_$f=$f"
done

# The functions of scripts/hot.list first, in its order, under a name that linkers group. A line becomes a pattern that fits
# both manglings: "tcp::send header" is 3tcp4send, then 6header.
readelf -sW "$archive" 2>/dev/null | awk '
    FNR == NR {
        if (/^[a-z]/) {
            n = split($1, part, "::"); path[++lines] = ""; whole[lines] = NF == 1 ? $1 : ""
            for (i = 1; i <= n; i++) path[lines] = path[lines] length(part[i]) part[i]
            last[lines] = length($2) $2
        }
        next
    }
    $4 == "FUNC" && $7 != "UND" { name[++names] = $8 }
    END {
        print "SECTIONS {"
        for (l = 1; l <= lines; l++)
            for (i = 1; i <= names; i++) {
                at = index(name[i], "8bootlace" path[l])
                fits = whole[l] ? name[i] == whole[l] : at && index(substr(name[i], at), last[l])
                if (fits && !seen[name[i]]++)
                    print "  .text.hot." name[i] " : { *(.text." name[i] ") }"
            }
        print "} INSERT BEFORE .text;"
    }' scripts/hot.list - >"$tmp/hot.ld"

# shellcheck disable=SC2046,SC2086
"${cross}ld" $emulation -r --gc-sections $wrap $(sed 's/^/-u /' "$tmp/exports") -T "$tmp/hot.ld" -o "$tmp/all.o" "$archive"
: >"$tmp/empty"
stack="--add-section .note.GNU-stack=$tmp/empty"
readelf -SW "$tmp/all.o" | grep -q 'note.GNU-stack' && stack=
# shellcheck disable=SC2086
"${cross}objcopy" --strip-debug -R .comment -R .llvmbc -R .llvmcmd -R '.ARM.exidx*' -R '.rel.ARM.exidx*' -R '.ARM.extab*' \
    $stack $unwrap "$tmp/all.o" "$tmp/wrapped.o"
if readelf -sW "$tmp/wrapped.o" | grep -q '__wrap_bcmp$'; then # a second link makes one symbol of the two
    "${cross}objcopy" --redefine-sym __wrap_bcmp=memcmp "$tmp/wrapped.o"
    "${cross}ld" $emulation -r -o "$tmp/once.o" "$tmp/wrapped.o"
    mv "$tmp/once.o" "$tmp/wrapped.o"
fi
cp "$tmp/wrapped.o" "$work/$name/with-stack-sizes.o" # for scripts/size.sh
"${cross}objcopy" --keep-global-symbols="$tmp/exports" -R '.stack_sizes*' -R '.rel.stack_sizes*' -R '.rela.stack_sizes*' \
    "$tmp/wrapped.o" "$tmp/bootlace.o"
"${cross}ar" rcsD "$tmp/libbootlace.a" "$tmp/bootlace.o"
mv -f "$tmp/libbootlace.a" "$out/libbootlace.a"
rm -rf "$tmp"
if [ -n "$convention" ]; then # a header of its own
    mkdir -p "$out/include"
    {
        echo "#define LACE_CALL $convention"
        sed -E 's/\(\*([a-z_]+)\)\(/(LACE_CALL *\1)(/; s/^([a-z][A-Za-z0-9_ ]* \*?)(lace_[a-z0-9_]+\()/\1LACE_CALL \2/' include/bootlace.h
    } >"$out/include/bootlace.h"
fi
echo "$out/libbootlace.a ($rust, opt-level $opt)"
