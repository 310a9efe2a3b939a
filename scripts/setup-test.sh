#!/bin/sh
# Brings what `make test` needs: tools and real servers, from Debian, by name. A second when all is there.
# setup-test.sh [test|targets|all]: for the tests proper (default), for every cross target, or both.
set -eu
cd "$(dirname "$0")/.."
. scripts/apt.sh

TEST="gcc g++ binutils make pkg-config libc6-dev libslirp-dev iproute2 ethtool nftables tcpdump valgrind cmake curl busybox iputils-ping util-linux libwrap0 libpcre2-8-0
 dnsmasq-base isc-dhcp-server kea-dhcp4-server bind9 bind9-dnsutils unbound nginx-light vsftpd iperf iperf3 nfs-ganesha nfs-ganesha-vfs rpcbind
 rustc-web rust-web-src gcc-mips-linux-gnu gcc-arm-linux-gnueabihf gcc-arm-none-eabi qemu-user qemu-system-arm"
TARGETS="rustc-web rust-web-src gcc-arm-linux-gnueabihf gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu gcc-mips-linux-gnu
 gcc-mipsel-linux-gnu gcc-powerpc-linux-gnu gcc-s390x-linux-gnu gcc-i686-linux-gnu gcc-arm-none-eabi
 qemu-user qemu-system-arm qemu-system-misc"

case "${1:-test}" in
test) apt_need $TEST ;;
targets) apt_need $TARGETS ;;
all) apt_need $TEST $TARGETS ;;
*) echo "usage: $0 [test|targets|all]" >&2; exit 2 ;;
esac

# These two packages conflict: unpacked side by side instead of installed. atftpd's brings a link named in.tftpd, which
# that of tftpd-hpa, unpacked after it, replaces.
servers() {
    dir=target/servers
    [ -x "$dir/usr/sbin/in.tftpd" ] && [ ! -L "$dir/usr/sbin/in.tftpd" ] && [ -x "$dir/usr/sbin/atftpd" ] && return 0
    mkdir -p "$dir/deb"
    for p in atftpd tftpd-hpa; do
        (cd "$dir/deb" && { apt-get -q download "$p" >/dev/null 2>&1 || { apt-get -q update && apt-get -q download "$p"; }; })
        dpkg -x "$dir"/deb/"$p"_*.deb "$dir"
    done
}
[ "${1:-test}" = targets ] || servers
