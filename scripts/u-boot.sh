#!/bin/sh
# u-boot.sh bootlace|legacy: builds the sandbox of Debian's U-Boot source package (2023.01), on Bootlace or with its own stack,
# in target/ports/u-boot/NAME, and prints that folder. What is there already and made of the same is not made again.
set -eu
cd "$(dirname "$0")/.."
name=${1:-bootlace}
work=$PWD/target/ports/u-boot
mkdir -p "$work"
exec 7>"$work/lock"
flock 7

need() {
    . scripts/apt.sh
    apt_need gcc libc6-dev make bison flex bc libssl-dev python3-minimal swig python3-dev python3-setuptools dpkg-dev xz-utils >&2
}

# apt with the machine's sources and source packages beside them, in folders of its own.
source_package() {
    apt=$work/apt
    mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
    for f in /etc/apt/sources.list.d/*.sources; do
        [ -e "$f" ] && sed 's/^Types: deb$/Types: deb deb-src/' "$f" >"$apt/parts/$(basename "$f")"
    done
    [ -s /etc/apt/sources.list ] && sed 'p; s/^deb /deb-src /' /etc/apt/sources.list >"$apt/parts/main.list"
    options="-q -oDir::Etc::SourceParts=$apt/parts -oDir::Etc::SourceList=/dev/null -oDir::State::Lists=$apt/lists -oDir::Cache=$apt/cache -oAPT::Sandbox::User=root"
    # shellcheck disable=SC2086
    (cd "$apt" && apt-get $options update && apt-get $options source u-boot) >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log" >&2; exit 1; }
    rm -rf "$work/source"
    mv "$apt"/u-boot-*/ "$work/source"
}

command -v swig >/dev/null && command -v bison >/dev/null && command -v flex >/dev/null || need
[ -e "$work/source/Makefile" ] || source_package

tree=$work/$name-source
config="-d LTO -d TOOLS_MKEFICAPSULE -d UNIT_TEST -d CLK_K210 -e CMD_NFS -e CMD_DNS -e CMD_WGET -e CMD_TFTPPUT -e NET_TFTP_VARS
 -d BOOTP_SERVERIP"
case $name in
bootlace)
    scripts/lib.sh host >&2
    config="$config -d NETCONSOLE -d IPV6 -d CMD_CDP -d CMD_RARP -d CMD_LINK_LOCAL -d CMD_WOL -d UDP_FUNCTION_FASTBOOT"
    ;;
legacy) config="$config -e PROT_TCP_SACK -e IP_DEFRAG -e TFTP_TSIZE --set-val NET_MAXDEFRAG 16384" ;;
*) echo "usage: $0 bootlace|legacy" >&2; exit 2 ;;
esac
key=$(cat scripts/u-boot.sh c-examples/u-boot/net-* c-examples/u-boot/apply.sh include/*.h "$([ "$name" = legacy ] && echo /dev/null || echo target/dist/host/libbootlace.a)" | cksum)
if [ "$(cat "$work/$name.key" 2>/dev/null)" != "$key" ] || [ ! -x "$work/$name/u-boot" ]; then
    if [ ! -e "$tree" ]; then cp -r "$work/source" "$tree"; fi
    [ "$name" = legacy ] || c-examples/u-boot/apply.sh "$tree" target/dist/host/libbootlace.a
    export NO_SDL=1
    log=$work/$name.log
    {
        # shellcheck disable=SC2086
        make -C "$tree" O="$work/$name" sandbox_defconfig && "$tree/scripts/config" --file "$work/$name/.config" $config &&
            make -C "$tree" O="$work/$name" olddefconfig && nice make -C "$tree" O="$work/$name" -j2
    } </dev/null >"$log" 2>&1 || { grep -E 'error|undefined|\*\*\*' "$log" >&2 || tail -30 "$log" >&2; exit 1; }
    if [ "$name" = bootlace ] && grep -E '^[^ ]*net/net-lace[^ ]*: warning' "$log" >&2; then exit 1; fi
    echo "$key" >"$work/$name.key"
fi
echo "$work/$name"
