#!/bin/sh
# bare.sh TARGET PROGRAM.c [EMULATOR ARGUMENTS…]: compiles a freestanding program under a bootloader's flags, links it with the
# target's library and runs it in an emulator. Its exit status is the program's.
# A program X.c may have more files: X_*.c. CFLAGS: more flags. TIMEOUT: seconds. LIB: another library.
# PLUGIN: one of qemu's. BOARD=virt: on qemu's board of that name instead of as a Linux program; ARM and AArch64.
set -eu
cd "$(dirname "$0")/.."
. scripts/targets.sh
t=$1 program=$2
shift 2
target_facts "$t"
lib=${LIB:-target/dist/$t/libbootlace.a}
[ -e "$lib" ] || scripts/lib.sh "$t" >&2
mkdir -p "target/bare/$t"
out=target/bare/$t/$(basename "$program" .c)
more=
for file in "${program%.c}"_*.c; do [ ! -e "$file" ] || more="$more $file"; done
common="-std=gnu11 -O2 -ffreestanding -fno-stack-protector -fno-builtin -nostdlib -static -no-pie -Wall -Wextra -Werror -Iinclude
 -Iffi-tests/machines -Wl,-z,noexecstack ${CFLAGS:-}"
case ${BOARD:-}$t in
virt*) # the machine itself instead of a Linux program: there, unaligned accesses can be made to trap
    case $t in aarch64*) system=qemu-system-aarch64 cpu=cortex-a57 ;; *) system=qemu-system-arm cpu=cortex-a15 common="$common -marm -mno-unaligned-access" ;; esac
    # shellcheck disable=SC2086
    "${cross}gcc" $cflags $common -DBOARD "$program" $more ffi-tests/machines/peer.c ffi-tests/machines/runtime.c "$lib" -lgcc \
        -Wl,-e,_start -Wl,--build-id=none -Wl,--no-warn-rwx-segments -T ffi-tests/machines/virt.ld -o "$out-virt"
    exec timeout "${TIMEOUT:-120}" $system -M virt -cpu $cpu -m 64 -nic none -nographic -monitor none -serial none \
        -semihosting-config enable=on,target=native -kernel "$out-virt" "$@" </dev/null 2>&1
    ;;
thumb*)
    [ -z "${PLUGIN:-}" ] || set -- -plugin "$PLUGIN" "$@"
    board=mps2-an386 ram=0x400000
    [ "$t" = thumbv6m ] && board=microbit ram=0x4000 common="$common -DPEER_FRAMES=3 -DPEER_FRAME=600"
    # shellcheck disable=SC2086
    "${cross}gcc" $cflags $common "$program" $more ffi-tests/machines/peer.c ffi-tests/machines/runtime.c "$lib" -lgcc -Wl,--gc-sections -Wl,--defsym=RAM_SIZE=$ram -T ffi-tests/machines/cortex-m.ld -o "$out"
    exec timeout "${TIMEOUT:-120}" qemu-system-arm -M $board -nographic -monitor none -serial none \
        -semihosting-config enable=on,target=native -kernel "$out" "$@" </dev/null 2>&1 # semihosting writes there
    ;;
*)
    case $t in host) common="$common -mno-red-zone" run= ;; esac
    [ -z "${PLUGIN:-}" ] || run="$run -plugin $PLUGIN"
    # shellcheck disable=SC2086
    "${cross}gcc" $cflags $common "$program" $more ffi-tests/machines/peer.c ffi-tests/machines/runtime.c "$lib" -lgcc -Wl,-e,_start -Wl,--no-relax -o "$out"
    # shellcheck disable=SC2086
    exec timeout "${TIMEOUT:-120}" $run "$out" "$@" </dev/null
    ;;
esac
