#!/bin/sh
# install.sh: the library of TARGET (default: host), headers, a pkg-config file and a CMake package under DESTDIR/PREFIX.
set -eu
cd "$(dirname "$0")/.."
target=${TARGET:-host}
prefix=${PREFIX-/usr/local}
root=${DESTDIR:-}$prefix
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
lib=target/dist/$target/libbootlace.a
[ -e "$lib" ] || scripts/lib.sh "$target"

mkdir -p "$root/include" "$root/lib/pkgconfig" "$root/lib/cmake/bootlace"
install -m 644 include/*.h "$root/include/"
own=target/dist/$target/include/bootlace.h # where the target has a calling convention of its own
[ ! -e "$own" ] || install -m 644 "$own" "$root/include/"
install -m 644 "$lib" "$root/lib/"
# Paths are relative to the file itself, so that an unpacked tarball works where it lies.
cat >"$root/lib/pkgconfig/bootlace.pc" <<EOF
prefix=\${pcfiledir}/../..
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: bootlace
Description: Network stack for bootloaders and firmware
Version: $version
Libs: -L\${libdir} -lbootlace
Cflags: -I\${includedir}
EOF
cat >"$root/lib/cmake/bootlace/bootlace-config.cmake" <<'EOF'
# find_package(bootlace) gives the target bootlace::bootlace.
if(NOT TARGET bootlace::bootlace)
  get_filename_component(_bootlace_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(bootlace::bootlace STATIC IMPORTED)
  set_target_properties(bootlace::bootlace PROPERTIES
    IMPORTED_LOCATION "${_bootlace_root}/lib/libbootlace.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_bootlace_root}/include")
  unset(_bootlace_root)
endif()
EOF
cat >"$root/lib/cmake/bootlace/bootlace-config-version.cmake" <<EOF
set(PACKAGE_VERSION "$version")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
EOF
echo "installed to $root"
