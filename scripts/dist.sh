#!/bin/sh
# dist.sh: target/dist/bootlace-VERSION-TARGET.tar.gz for each target: library, headers, pkg-config and CMake files,
# licences. TARGETS="a b": fewer of them. Byte for byte the same from any directory.
set -eu
cd "$(dirname "$0")/.."
. scripts/targets.sh
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
for t in ${TARGETS:-$ALL_TARGETS}; do
    scripts/lib.sh "$t"
    name=bootlace-$version-$t
    root=target/dist/stage/$name
    rm -rf "$root"
    TARGET=$t PREFIX='' DESTDIR=$PWD/$root scripts/install.sh >/dev/null
    cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$root/"
    (cd target/dist/stage && find "$name" -type f | LC_ALL=C sort |
        tar --create --no-recursion --files-from=- --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@0 | gzip -9n) \
        >"target/dist/$name.tar.gz.new"
    mv "target/dist/$name.tar.gz.new" "target/dist/$name.tar.gz"
    echo "target/dist/$name.tar.gz"
done
rm -rf target/dist/stage
