#!/bin/sh
# bare.sh TARGET PROGRAM.c [EMULATOR ARGUMENTS…]: compiles a freestanding program under a bootloader's flags, links it with the
# target's library and runs it in an emulator. Its exit status is the program's.
# A program X.c may have more files: X_*.c. CFLAGS: more flags. TIMEOUT: seconds. LIB: another library. MORE: further libraries.
# PLUGIN: one of qemu's. BOARD=virt: on qemu's board of that name instead of as a Linux program; ARM and AArch64. BOARD=small, of
# thumbv6m: 256 KiB of flash and 16 KiB of RAM, which the library with every feature is too large for.
set -eu
cd "$(dirname "$0")/.."
. scripts/targets.sh
t=$1 program=$2
shift 2
target_facts "$t"
need "$t" "${cross}gcc" "$([ "$package" = binutils ] && echo gcc || echo "$package")"
case ${BOARD:-}$t in
*thumb* | virtarm*) need "$t" qemu-system-arm qemu-system-arm ;;
virtaarch64*) need "$t" qemu-system-aarch64 qemu-system-arm ;;
host) ;;
*) need "$t" "$run" qemu-user ;;
esac
lib=${LIB:-target/dist/$t/libbootlace.a}
[ -e "$lib" ] || scripts/lib.sh "$t" >&2
mkdir -p "target/bare/$t"
out=target/bare/$t/$(basename "$program" .c)
more=
for file in "${program%.c}"_*.c; do [ ! -e "$file" ] || more="$more $file"; done
common="-std=gnu11 -O2 -ffreestanding -fno-stack-protector -fno-builtin -nostdlib -static -no-pie -Wall -Wextra -Werror -I$(dirname "$lib")/include -Iinclude
 -Iffi-tests/machines -Wl,-z,noexecstack ${CFLAGS:-}"
case ${BOARD:-}$t in
virt*) # the machine itself instead of a Linux program: there, unaligned accesses can be made to trap
    case $t in aarch64*) system=qemu-system-aarch64 cpu=cortex-a57 ;; *) system=qemu-system-arm cpu=cortex-a15 common="$common -marm -mno-unaligned-access" ;; esac
    # shellcheck disable=SC2086
    "${cross}gcc" $cflags $common -DBOARD "$program" $more ffi-tests/machines/peer.c ffi-tests/machines/runtime.c "$lib" ${MORE:-} -lgcc \
        -Wl,-e,_start -Wl,--build-id=none -Wl,--no-warn-rwx-segments -T ffi-tests/machines/virt.ld -o "$out-virt"
    exec timeout "${TIMEOUT:-120}" $system -M virt -cpu $cpu -m 64 -nic none -nographic -monitor none -serial none \
        -semihosting-config enable=on,target=native -kernel "$out-virt" "$@" </dev/null 2>&1
    ;;
thumb* | smallthumb*)
    [ -z "${PLUGIN:-}" ] || set -- -plugin "$PLUGIN" "$@"
    ram=0x400000
    case ${BOARD:-}$t in
    smallthumbv6m) board=microbit ram=0x4000 common="$common -DSMALL_BOARD -DPEER_FRAMES=3 -DPEER_FRAME=600" ;;
    thumbv6m) board="microbit -global nrf51-soc.flash-size=$ram -global nrf51-soc.sram-size=$ram" ;; # the only Cortex-M0 that qemu has
    *) board=mps2-an386 ;;
    esac
    # shellcheck disable=SC2086
    "${cross}gcc" $cflags $common "$program" $more ffi-tests/machines/peer.c ffi-tests/machines/runtime.c "$lib" ${MORE:-} -lgcc -Wl,--gc-sections -Wl,--defsym=RAM_SIZE=$ram -T ffi-tests/machines/cortex-m.ld -o "$out"
    # shellcheck disable=SC2086
    exec timeout "${TIMEOUT:-120}" qemu-system-arm -M $board -nographic -monitor none -serial none \
        -semihosting-config enable=on,target=native -kernel "$out" "$@" </dev/null 2>&1 # semihosting writes there
    ;;
*)
    case $t in host) common="$common -mno-red-zone" run= ;; esac
    [ -z "${PLUGIN:-}" ] || run="$run -plugin $PLUGIN"
    # shellcheck disable=SC2086
    "${cross}gcc" $cflags $common "$program" $more ffi-tests/machines/peer.c ffi-tests/machines/runtime.c "$lib" ${MORE:-} -lgcc -Wl,-e,_start -Wl,--no-relax -o "$out"
    # shellcheck disable=SC2086
    exec timeout "${TIMEOUT:-120}" $run "$out" "$@" </dev/null
    ;;
esac
