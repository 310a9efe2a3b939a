# Sourced. target_facts NAME sets what is particular about a target:
#   rust      Rust target triple                     cross   prefix of the GNU tools      package  Debian package with them
#   opt       default opt-level                      flags   flags for every crate, core included
#   cflags    flags with which a bootloader's C matches (used by the tests; also a hint to the user)
#   convention  attribute of the library's functions and callbacks, where the bootloader's convention is another
#   run       emulator that runs a Linux program of this kind, empty where qemu-system is needed
# Position: code that a relocating bootloader may move (armv7, x86_64, host) is position independent; on the other
# machines static code is what their bootloaders link, and it is position independent by nature on aarch64 and riscv.

ALL_TARGETS="host armv7 armv7-uboot aarch64 aarch64-uboot riscv64 riscv32 mips32be mips32le powerpc x86_64 x86 x86-regparm3 s390x thumbv6m thumbv7em"

need() { # need NAME COMMAND PACKAGE…: whether the command is there; if not, NAME says what to install
    need_name=$1 need_tool=$2
    shift 2
    command -v "$need_tool" >/dev/null && return
    echo "$need_name: $need_tool is missing; as root: apt-get install --no-install-recommends $*" >&2
    return 1
}

target_facts() {
    opt=s flags= cflags= run= convention=
    case $1 in
    host)
        rust=$("${RUSTC:-rustc}" -vV | sed -n 's/^host: //p') cross= package=binutils opt=3
        flags="-Crelocation-model=pic" cflags= ;;
    armv7)
        rust=armv7a-none-eabi cross=arm-linux-gnueabihf- package=gcc-arm-linux-gnueabihf opt=3
        flags="-Crelocation-model=pic" cflags="-march=armv7-a -msoft-float -mfloat-abi=soft" run=qemu-arm ;;
    armv7-uboot)
        target_facts armv7
        flags="$flags -Ctarget-feature=+reserve-r9" cflags="$cflags -ffixed-r9" ;;
    aarch64)
        rust=aarch64-unknown-none-softfloat cross=aarch64-linux-gnu- package=gcc-aarch64-linux-gnu opt=3
        cflags="-mgeneral-regs-only -mstrict-align" run=qemu-aarch64 ;;
    aarch64-uboot)
        target_facts aarch64
        flags="$flags -Zfixed-x18" cflags="$cflags -ffixed-x18" ;;
    riscv64)
        rust=riscv64imac-unknown-none-elf cross=riscv64-linux-gnu- package=gcc-riscv64-linux-gnu opt=3
        cflags="-march=rv64imac -mabi=lp64 -mcmodel=medany" run=qemu-riscv64 ;;
    riscv32)
        rust=riscv32imc-unknown-none-elf cross=riscv64-linux-gnu- package=gcc-riscv64-linux-gnu
        cflags="-march=rv32imc -mabi=ilp32 -mcmodel=medany" run=qemu-riscv32 ;;
    mips32be)
        rust=mips-mti-none-elf cross=mips-linux-gnu- package=gcc-mips-linux-gnu
        cflags="-msoft-float -mno-abicalls -fno-pic -march=mips32r2 -G 0" run=qemu-mips ;;
    mips32le)
        rust=mipsel-mti-none-elf cross=mipsel-linux-gnu- package=gcc-mipsel-linux-gnu
        cflags="-msoft-float -mno-abicalls -fno-pic -march=mips32r2 -G 0" run=qemu-mipsel ;;
    powerpc)
        rust=powerpc-unknown-linux-gnu cross=powerpc-linux-gnu- package=gcc-powerpc-linux-gnu
        # Without merging, each constant keeps a section of its own, which a linker can drop, and scripts/size.sh read.
        flags="-Ctarget-feature=-hard-float -Crelocation-model=static -Cllvm-args=-ppc-global-merge=false"
        cflags="-msoft-float -mcpu=603 -fno-pic" run=qemu-ppc ;;
    x86_64)
        rust=x86_64-unknown-none cross=x86_64-linux-gnu- package=binutils opt=3
        flags="-Crelocation-model=pic -Ccode-model=small" cflags="-mno-red-zone -mgeneral-regs-only" run=qemu-x86_64 ;;
    x86)
        rust=i586-unknown-linux-gnu cross=i686-linux-gnu- package=gcc-i686-linux-gnu
        flags="-Ctarget-cpu=i686 -Crelocation-model=static" cflags="-m32 -march=i686 -mgeneral-regs-only -fno-pic" run=qemu-i386 ;;
    x86-regparm3)
        target_facts x86
        # The compiler's own -Zregparm passes 64-bit arguments on the stack, which gcc, and LLVM's calls of __udivdi3, do not
        # (rustc 1.96). So the library keeps the plain convention, its header says so, and it has its own mem functions.
        convention="__attribute__((regparm(0)))" cflags="$cflags -mregparm=3" ;;
    s390x)
        rust=s390x-unknown-none-softfloat cross=s390x-linux-gnu- package=gcc-s390x-linux-gnu opt=3
        cflags="-msoft-float" run=qemu-s390x ;;
    thumbv6m)
        rust=thumbv6m-none-eabi cross=arm-none-eabi- package=gcc-arm-none-eabi
        cflags="-mcpu=cortex-m0 -mthumb" ;;
    thumbv7em)
        rust=thumbv7em-none-eabi cross=arm-none-eabi- package=gcc-arm-none-eabi
        cflags="-mcpu=cortex-m4 -mthumb -msoft-float" ;;
    *)
        echo "unknown target: $1; known: $ALL_TARGETS" >&2
        return 1 ;;
    esac
}
