# Sourced. Firmware of c-examples/baremetal and qemu's boards for it.
#   firmware ARCH [TARGET]   builds target/baremetal/firmware-ARCH.elf; TARGET: with that target's library, which must suit
#   board ARCH ARGUMENTS…    runs it; ARGUMENTS: qemu's -netdev for `id=n0`. Its console is standard output.
. scripts/targets.sh

firmware() {
    library=${2:-$1}
    target_facts "$1"
    need "$1" "${cross}gcc" "$package" || return 1
    scripts/lib.sh "$library" >&2 || return 1
    mkdir -p target/baremetal
    make -s -C c-examples/baremetal ARCH="$1" LIB="$PWD/target/dist/$library/libbootlace.a" OUT="$PWD/target/baremetal"
}

board() {
    arch=$1
    shift
    case $arch in
    aarch64) set -- qemu-system-aarch64 -cpu cortex-a57 "$@" ;;
    armv7) set -- qemu-system-arm -cpu cortex-a15 "$@" ;;
    riscv64) set -- qemu-system-riscv64 -bios none "$@" ;;
    *) echo "no board for $arch: aarch64, armv7, riscv64" >&2; return 2 ;;
    esac
    case $arch in riscv64) system=qemu-system-misc ;; *) system=qemu-system-arm ;; esac
    need "$arch" "$1" $system || return 1
    timeout "${TIMEOUT:-120}" "$@" -M virt -m 128 -nodefaults -display none -serial stdio -no-reboot \
        -global virtio-mmio.force-legacy=false -device virtio-net-device,netdev=n0 \
        -kernel "target/baremetal/firmware-$arch.elf" </dev/null
}
