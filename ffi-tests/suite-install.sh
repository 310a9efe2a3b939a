#!/bin/sh
# What `make install` and `make dist` leave behind is found by pkg-config and CMake, and is the same from any directory.
set -u
cd "$(dirname "$0")/.."
. scripts/suite.sh
[ "${1:-test}" = test ] || { finish; exit; }
scratch=$PWD/target/install
rm -rf "$scratch"
mkdir -p "$scratch"
cat >"$scratch/main.c" <<'EOF'
#include <bootlace.h>
int main(void) { return lace_version() == 0; }
EOF

install() { make -s install DESTDIR="$scratch/root" PREFIX=/opt/lace; }
uses_pkg_config() {
    flags=$(PKG_CONFIG_PATH=$scratch/root/opt/lace/lib/pkgconfig pkg-config --cflags --libs bootlace) || return 1
    # shellcheck disable=SC2086
    cc -Wall -Werror "$scratch/main.c" $flags -o "$scratch/with-pkg-config" && "$scratch/with-pkg-config"
}
uses_cmake() {
    mkdir -p "$scratch/cmake"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.13)' 'project(t C)' 'find_package(bootlace 0.1 REQUIRED)' \
        'add_executable(t ../main.c)' 'target_link_libraries(t bootlace::bootlace)' >"$scratch/cmake/CMakeLists.txt"
    cmake -S "$scratch/cmake" -B "$scratch/cmake/b" -DCMAKE_PREFIX_PATH="$scratch/root/opt/lace" &&
        cmake --build "$scratch/cmake/b" && "$scratch/cmake/b/t"
}
tarball() { make -s dist TARGETS=host && cp target/dist/bootlace-*-host.tar.gz "$scratch/first.tar.gz"; }
complete() {
    tar tzf "$scratch/first.tar.gz" >"$scratch/list" || return 1
    for f in lib/libbootlace.a include/bootlace.h include/bootlace_port.h lib/pkgconfig/bootlace.pc LICENSE-MIT LICENSE-APACHE \
        lib/cmake/bootlace/bootlace-config.cmake; do
        grep -q "/$f\$" "$scratch/list" || { echo "no $f"; return 1; }
    done
}
again() { sleep 1; make -s dist TARGETS=host && cmp "$scratch/first.tar.gz" target/dist/bootlace-*-host.tar.gz; }

check install install
check pkg_config uses_pkg_config
if command -v cmake >/dev/null; then check cmake uses_cmake; else skip cmake "cmake is not installed"; fi
check dist tarball
check dist_complete complete
check dist_same_again again
finish
