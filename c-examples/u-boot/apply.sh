#!/bin/sh
# apply.sh U-BOOT-TREE LIBRARY: puts the glue, the headers and the library's object into a U-Boot tree and changes its
# net/Makefile: the objects of U-Boot's own stack give way, the devices' (eth-uclass.o and the like) stay.
set -eu
tree=$1
library=$2
here=$(cd "$(dirname "$0")" && pwd)
cp "$here"/net-lace.h "$here"/net-lace*.c "$tree/net/"
cp "$here"/../../include/bootlace*.h "$tree/include/"
${AR:-ar} p "$library" bootlace.o >"$tree/net/bootlace.o_shipped"
old='arp|bootp|cdp|dhcpv6|dns|fastboot|fastboot_tcp|fastboot_udp|link_local|ndisc|net|net6|nfs|nfs-common|ping|ping6|rarp|sntp|tcp|tftp|udp|wget|wol'
sed -Ei "/^obj-.*[[:space:]]($old)\.o\$/d; /net-lace/d" "$tree/net/Makefile"
echo 'obj-$(CONFIG_NET) += net-lace.o net-lace-load.o net-lace-http.o net-lace-ask.o bootlace.o' >>"$tree/net/Makefile"
