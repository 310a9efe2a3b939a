#!/bin/sh
# What the shipped object exports and needs, that it is the same from any directory, that it shares an image with another
# Rust library, and that no forbidden register or instruction is in it. `test` takes the host and three other targets,
# one of them big-endian; `long` takes all.
set -u
cd "$(dirname "$0")/.."
. scripts/suite.sh
. scripts/targets.sh
kind=${1:-test}
[ "$kind" = ports ] && { finish; exit; }
. scripts/cargo.sh
scratch=target/symbols
rm -rf "$scratch"
mkdir -p "$scratch"

symbols() { # symbols FILE: `defined NAME` or `undefined NAME` a line, global ones only
    readelf -sW "$1" | awk '($5 == "GLOBAL" || $5 == "WEAK") && $8 != "" { print ($7 == "UND" ? "undefined" : "defined"), $8 }' | sort -u
}
exports_only_lace() { symbols "$1" | grep '^defined' && ! symbols "$1" | grep '^defined' | grep -v '^defined lace_'; }
needs_only_mem() { # nothing where the host's convention is another
    [ -z "$convention" ] || { ! symbols "$1" | grep '^undefined'; return; }
    ! symbols "$1" | grep '^undefined' | grep -Ev '^undefined (memcpy|memmove|memset|memcmp)$'
}
one_object() { [ "$("${cross}ar" t "$1")" = bootlace.o ]; }
no_static_data() { # a stack keeps nothing outside its block of memory
    ! readelf -SW "$1" | sed 's/^ *\[ *[0-9]*\] *//' | awk '$7 ~ /W/ && $1 !~ /^\.data\.rel\.ro/ && $5 !~ /^0+$/' | grep .
}
no_formatting() { # core::fmt is kilobytes that a bootloader has no use for
    ! readelf -sW "$1" | awk '$4 == "FUNC" && $8 ~ /(core|Cs[A-Za-z0-9_]*_4core)3fmt/ { print $8 }' | grep .
}

copies_in_vectors() { # the copy with its checksum: vector loads, stores and sums, and no call of memcpy
    objdump -dr -C --no-show-raw-insn "$1" | awk '/^[0-9a-f]+ <bootlace::storage::checksum::Sum::copy.*>:/ { p = 1 } /^$/ { p = 0 } p' >"$scratch/copy.dis"
    for pattern in 'movdqu .*\(.*\),%xmm' 'mov(dqu|dqa|ups|aps) +%xmm[0-9]+,.*\(' 'paddq' 'psrlq'; do
        grep -Eq "$pattern" "$scratch/copy.dis" || { echo "not found: $pattern"; return 1; }
    done
    ! grep -E 'mem(cpy|move)' "$scratch/copy.dis"
}

hot_functions_first() { # the way of a frame lies together; a compiler may inline some of the list, not most of it
    readelf -SW "$1" | sed 's/^ *\[ *[0-9]*\] *//' | awk '$2 == "PROGBITS" && $1 ~ /^\.text/ { print $1 }' >"$scratch/text"
    head -1 "$scratch/text" | grep -q '^\.text\.hot\.' || { echo "first: $(head -1 "$scratch/text")"; return 1; }
    found=$(grep -c '^\.text\.hot\.' "$scratch/text") listed=$(grep -c '^[a-z]' scripts/hot.list)
    [ $((found * 4)) -ge $((listed * 3)) ] || { echo "$found of the $listed functions in scripts/hot.list"; return 1; }
}

# Instructions by target: `tab` mnemonic, or a register name as a word.
forbidden() {
    case $1 in
    armv7-uboot) echo '\<(r9|sb)\>' ;;
    aarch64-uboot) echo '\<[wx]18\>' ;;
    esac
}
float() {
    case $1 in
    armv7* | thumb*) echo '	(v[a-z0-9.]+)	' ;;
    aarch64*) echo '\<[qdshbv][0-9]+(\.|\>)' ;;
    riscv*) echo '	(f(l|s|ld|sd|lw|sw|mv|add|sub|mul|div|cvt|sgnj|madd)[a-z0-9.]*|c\.f[a-z]+)	' ;;
    mips*) echo '\$f[0-9]+' ;;
    powerpc) echo '	(f[a-z]+|lf[sd]u?x?|stf[sd]u?x?|stfiwx)\.?[	 ]' ;;
    x86*) echo '%(xmm|ymm|zmm|mm|st)' ;;
    s390x) echo '%[fv][0-9]+' ;;
    esac
}
instructions() { # instructions FILE: without addresses, codes, symbols and places: `b0` is no register where it is one of these
    "${cross}objdump" -d --no-show-raw-insn "$1" | sed -E 's/^ *[0-9a-f]+://; s/(0x)?[0-9a-f]+ <[^>]*>//g; s/<[^>]*>//g'
}
disassembly_without() { # disassembly_without TARGET PATTERN
    "${cross}objdump" -d "target/dist/$1/libbootlace.a" | grep -q ' <lace_version>:' || { echo "no code disassembled"; return 1; }
    instructions "target/dist/$1/libbootlace.a" >"$scratch/$1.dis"
    ! grep -E -m5 "$2" "$scratch/$1.dis"
}
# The pattern finds what it looks for: the same compiler without the bootloader's flags.
finds_float() { # finds_float TARGET
    case $1 in thumb*) hard="-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard" ;; x86) hard="-march=pentium3 -mfpmath=sse" ;; *) hard= ;; esac
    # shellcheck disable=SC2086
    echo 'float f(float a, float b) { return a * b + 1.5f; }' | "${cross}gcc" -x c -c $hard -O1 -o "$scratch/float.o" - &&
        instructions "$scratch/float.o" | grep -E "$(float "$1")"
}
links_bare() { # links_bare TARGET: a freestanding program under the bootloader's flags, nothing undefined
    # shellcheck disable=SC2086
    "${cross}gcc" $cflags -ffreestanding -fno-stack-protector -nostdlib -static -O1 -Wall -Wextra -Werror -Wl,--fatal-warnings -Wl,-z,noexecstack \
        -Wl,-e,_start -Iinclude ffi-tests/symbols/bare.c "target/dist/$1/libbootlace.a" -o "$scratch/$1.bare" || return 1
}
links_whole() { # boards link with --whole-archive, and without garbage collection
    # shellcheck disable=SC2086
    "${cross}gcc" $cflags -ffreestanding -fno-stack-protector -nostdlib -static -O1 -Wl,-e,_start -Iinclude ffi-tests/symbols/bare.c \
        -Wl,--whole-archive "target/dist/$1/libbootlace.a" -Wl,--no-whole-archive -o "$scratch/$1.whole"
}
# A second Rust library of the target, with the core that was built for the first, and the program of both in an emulator.
two_in_one_image() { # two_in_one_image TARGET
    deps=target/lib/$1/$rust/release/deps
    same=target/lib/$1/$rust.json # what scripts/lib.sh has made of the compiler's target
    [ -e "$same" ] || same=$rust
    extern=
    for crate in core compiler_builtins; do extern="$extern --extern noprelude:$crate=$(ls -t "$deps/lib$crate"-*.rlib | head -1)"; done
    # shellcheck disable=SC2086
    RUSTC_BOOTSTRAP=1 "${LACE_RUSTC:-/usr/bin/rustc}" -Zunstable-options -Awarnings --edition 2021 --crate-name other --crate-type staticlib -O -Clto=fat \
        -Cpanic=abort --target "$same" $flags $extern -L "dependency=$deps" -o "$scratch/libother-$1.a" ffi-tests/symbols/other.rs &&
        readelf -sW "$scratch/libother-$1.a" 2>/dev/null | grep -q compiler_builtins &&
        MORE=$scratch/libother-$1.a scripts/bare.sh "$1" ffi-tests/symbols/two_bare.c
}

one_target() {
    t=$1
    check "lib_$t" scripts/lib.sh "$t"
    lib=target/dist/$t/libbootlace.a
    [ -e "$lib" ] || return
    target_facts "$t"
    check "one_object_$t" one_object "$lib"
    check "exports_only_lace_$t" exports_only_lace "$lib"
    check "needs_only_mem_$t" needs_only_mem "$lib"
    check "no_static_data_$t" no_static_data "$lib"
    check "no_formatting_$t" no_formatting "$lib"
    case $t in host)
        check hot_functions_first hot_functions_first "$lib"
        case $rust in x86_64*) check copies_in_vectors copies_in_vectors "$lib" ;; esac
        return
        ;;
    esac
    check "links_bare_$t" links_bare "$t"
    check "links_whole_archive_$t" links_whole "$t"
    check "two_rust_libraries_$t" two_in_one_image "$t"
    check "finds_float_$t" finds_float "$t"
    check "no_float_$t" disassembly_without "$t" "$(float "$t")"
    [ -z "$(forbidden "$t")" ] || check "reserved_register_$t" disassembly_without "$t" "$(forbidden "$t")"
}

case $kind in
test) targets="host armv7-uboot mips32be thumbv7em" ;;
*) targets=$ALL_TARGETS ;;
esac
for t in $targets; do one_target "$t"; done

# Each client builds without the others.
alone() { "$CARGO" check -q --lib --no-default-features --features "$1" --target-dir target/alone; }
case $kind in
test) clients="file http nfs put tftp" ;; # those that read files share code
*) clients="dhcp dns file http mcast nfs ping put tcp tftp" ;;
esac
for c in $clients; do check "alone_$c" alone "$c"; done

# The checks above find what they look for.
uses_r9() { echo 'int g(void) { register int s __asm__("r9"); __asm__ volatile("mov %0, #1" : "=r"(s)); return s; }'; }
uses_x18() { echo 'long g(void) { register long s __asm__("x18"); __asm__ volatile("mov %0, #1" : "=r"(s)); return s; }'; }
finds_register() { # finds_register TARGET FUNCTION
    target_facts "$1"
    "$2" | "${cross}gcc" -x c -c -O1 -o "$scratch/register.o" - && instructions "$scratch/register.o" | grep -E "$(forbidden "$1")"
}
for pair in armv7-uboot:uses_r9 aarch64-uboot:uses_x18; do
    target_facts "${pair%:*}"
    if command -v "${cross}gcc" >/dev/null; then
        check "finds_register_${pair%:*}" finds_register "${pair%:*}" "${pair#*:}"
    else
        skip "finds_register_${pair%:*}" "${cross}gcc is not installed"
    fi
done

# The host: with another Rust library, in every kind of program.
two() { cc -O1 -Wall -Wextra -Werror "$@" -Iinclude ffi-tests/symbols/two.c target/dist/host/libbootlace.a "$scratch/libother.a" -o "$scratch/two" && "$scratch/two"; }
whole() { two -Wl,--whole-archive target/dist/host/libbootlace.a -Wl,--no-whole-archive; }
other() {
    "${RUSTC:-rustc}" --edition 2021 --crate-type staticlib -O -Cpanic=abort -o "$scratch/libother.a" ffi-tests/symbols/other.rs &&
        readelf -sW "$scratch/libother.a" 2>/dev/null | grep -q 'rust_begin_unwind'
}
check other_library_has_a_handler other
check two_rust_libraries_pie two -fPIE -pie
check two_rust_libraries_static two -static -no-pie
check two_rust_libraries_whole_archive whole
check two_rust_libraries_shared two -Wl,-z,text -Wl,--fatal-warnings

# The same bytes from any directory: a copy of the tree.
somewhere=$(mktemp -d "${TMPDIR:-/tmp}/somewhere else.XXXXXX")
trap 'rm -rf "$somewhere"' EXIT
elsewhere() { # elsewhere TARGET
    (cd "$somewhere" && unset OUT && scripts/lib.sh "$1") && cmp "$somewhere/target/dist/$1/libbootlace.a" "target/dist/$1/libbootlace.a"
    status=$?
    rm -rf "$somewhere/target/lib" # 100 MB
    return $status
}
no_paths() { ! strings -a "$1" | grep -F -e "$PWD" -e "$HOME"; }
case $kind in
test) again=host ;;
*) again=$targets ;;
esac
check tree_copied sh -c 'git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$1"' sh "$somewhere"
for t in $again; do
    check "reproducible_$t" elsewhere "$t"
    check "no_paths_$t" no_paths "target/dist/$t/libbootlace.a"
done

# Bad input.
says() { # says STATUS TEXT COMMAND…
    want=$1 text=$2; shift 2
    out=$("$@" 2>&1); got=$?
    echo "$got: $out"
    [ "$got" = "$want" ] && case $out in *"$text"*) true ;; *) false ;; esac
}
check unknown_target says 2 "unknown target: vax" scripts/lib.sh vax
mkdir -p "$scratch/bin"
for tool in sh dirname sed cat env mkdir rm grep awk sort head uname readlink tr cargo rustc id printf; do
    ln -sf "$(command -v $tool)" "$scratch/bin/$tool" 2>/dev/null
done
bare_path="$PWD/$scratch/bin"
for t in $ALL_TARGETS; do
    target_facts "$t"
    check "missing_tools_$t" says 1 "--no-install-recommends $package" env PATH="$bare_path" scripts/lib.sh "$t"
done
check missing_c_compiler says 1 "--no-install-recommends gcc-mips-linux-gnu" env PATH="$bare_path" scripts/bare.sh mips32be ffi-tests/machines/version.c
check missing_c_compiler_x86_64 says 1 "--no-install-recommends gcc" env PATH="$bare_path" scripts/bare.sh x86_64 ffi-tests/machines/version.c
for tool in mips-linux-gnu-gcc arm-none-eabi-gcc riscv64-linux-gnu-gcc; do
    command -v $tool >/dev/null && ln -sf "$(command -v $tool)" "$scratch/bin/$tool"
done
check missing_emulator says 1 "--no-install-recommends qemu-user" env PATH="$bare_path" scripts/bare.sh mips32be ffi-tests/machines/version.c
check missing_machine says 1 "--no-install-recommends qemu-system-arm" env PATH="$bare_path" scripts/bare.sh thumbv7em ffi-tests/machines/version.c
check missing_board says 1 "--no-install-recommends qemu-system-misc" env PATH="$bare_path" sh -c '. scripts/baremetal.sh; board riscv64'
check missing_rustc says 1 "--no-install-recommends rustc-web" env RUSTC=/nonexistent scripts/lib.sh host
check missing_sources says 1 "rust-web-src" env LACE_RUSTC=/nonexistent scripts/lib.sh thumbv7em
finish
