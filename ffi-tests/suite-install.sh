#!/bin/sh
# What `make install` and `make dist` leave behind is found by pkg-config and CMake, and is the same from any directory.
set -u
cd "$(dirname "$0")/.."
. scripts/suite.sh
. scripts/targets.sh
kind=${1:-test}
[ "$kind" = ports ] && { finish; exit; }
scratch=$PWD/target/install
rm -rf "$scratch"
mkdir -p "$scratch"
cat >"$scratch/main.c" <<'EOF'
#include <bootlace.h>
int main(void) { return lace_version() == 0; }
EOF

install() { make -s install DESTDIR="$scratch/root" PREFIX=/opt/lace; }
uses_pkg_config() { # uses_pkg_config PREFIX: a program of the host
    flags=$(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs bootlace) || return 1
    # shellcheck disable=SC2086
    cc -Wall -Werror "$scratch/main.c" $flags -o "$scratch/with-pkg-config" && "$scratch/with-pkg-config"
}
uses_cmake() { # uses_cmake PREFIX
    rm -rf "$scratch/cmake"
    mkdir -p "$scratch/cmake"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.13)' 'project(t C)' 'find_package(bootlace 0.1 REQUIRED)' \
        'add_executable(t ../main.c)' 'target_link_libraries(t bootlace::bootlace)' >"$scratch/cmake/CMakeLists.txt"
    cmake -S "$scratch/cmake" -B "$scratch/cmake/b" -DCMAKE_PREFIX_PATH="$1" &&
        cmake --build "$scratch/cmake/b" && "$scratch/cmake/b/t"
}
# The same for another machine: a program without an operating system, which needs a start and what a bootloader has.
# In Thumb code a frame pointer would take the register of the system call's number.
machines=$PWD/ffi-tests/machines
bare="-fomit-frame-pointer -ffreestanding -fno-builtin -fno-stack-protector -nostdlib -static -no-pie -I$machines"
cross_pkg_config() { # cross_pkg_config PREFIX
    flags=$(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs bootlace) || return 1
    # shellcheck disable=SC2086
    "${cross}gcc" $cflags $bare "$machines/version.c" "$machines/runtime.c" $flags -lgcc -Wl,-e,_start -o "$scratch/cross" && $run "$scratch/cross"
}
cross_cmake() { # cross_cmake PREFIX
    rm -rf "$scratch/cmake"
    mkdir -p "$scratch/cmake"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.13)' 'project(t C)' 'find_package(bootlace 0.1 REQUIRED)' \
        "add_executable(t $machines/version.c $machines/runtime.c)" 'target_link_libraries(t bootlace::bootlace gcc)' >"$scratch/cmake/CMakeLists.txt"
    cmake -S "$scratch/cmake" -B "$scratch/cmake/b" -DCMAKE_PREFIX_PATH="$1" -DCMAKE_SYSTEM_NAME=Generic -DCMAKE_C_COMPILER="${cross}gcc" \
        -DCMAKE_C_FLAGS="$cflags $bare" -DCMAKE_EXE_LINKER_FLAGS=-Wl,-e,_start &&
        cmake --build "$scratch/cmake/b" && $run "$scratch/cmake/b/t"
}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
tarball() { # tarball TARGET: made, and unpacked into $scratch
    make -s dist TARGETS="$1" && cp "target/dist/bootlace-$version-$1.tar.gz" "$scratch/$1.tar.gz" && tar xzf "$scratch/$1.tar.gz" -C "$scratch"
}
complete() { # complete TARGET
    tar tzf "$scratch/$1.tar.gz" >"$scratch/list" || return 1
    for f in lib/libbootlace.a include/bootlace.h include/bootlace_port.h include/bootlace_sync.h lib/pkgconfig/bootlace.pc LICENSE-MIT LICENSE-APACHE \
        README.md CHANGELOG.md lib/cmake/bootlace/bootlace-config.cmake lib/cmake/bootlace/bootlace-config-version.cmake; do
        grep -qx "bootlace-$version-$1/$f" "$scratch/list" || { echo "no $f"; return 1; }
    done
    cmp "$scratch/bootlace-$version-$1/lib/libbootlace.a" "target/dist/$1/libbootlace.a"
}
again() { sleep 1; make -s dist TARGETS=host && cmp "$scratch/host.tar.gz" "target/dist/bootlace-$version-host.tar.gz"; }
with() { # with TARGET TOOL FUNCTION
    if command -v "$2" >/dev/null; then check "$2_$1" "$3" "$scratch/bootlace-$version-$1"; else skip "$2_$1" "$2 is not installed"; fi
}

case $kind in
test)
    check install install
    check pkg_config uses_pkg_config "$scratch/root/opt/lace"
    if command -v cmake >/dev/null; then check cmake uses_cmake "$scratch/root/opt/lace"; else skip cmake "cmake is not installed"; fi
    targets="host mips32be"
    ;;
*) targets=$ALL_TARGETS ;;
esac
for t in $targets; do
    check "dist_$t" tarball "$t"
    check "dist_complete_$t" complete "$t"
    target_facts "$t"
    case $t in
    host)
        with "$t" pkg-config uses_pkg_config
        with "$t" cmake uses_cmake
        ;;
    thumb*) ;; # for a board, whose linker script it would take
    *)
        with "$t" pkg-config cross_pkg_config
        with "$t" cmake cross_cmake
        ;;
    esac
done
[ "$kind" = long ] || check dist_same_again again
finish
