#!/bin/sh
# The header is what src/ffi gives, and compiles wherever a bootloader's C does.
set -u
cd "$(dirname "$0")/.."
. scripts/suite.sh
[ "${1:-test}" = test ] || { finish; exit; }
strict="-c -o /dev/null -Iinclude -Wall -Wextra -Wpedantic -Werror"
sync=
[ -e include/bootlace_sync.h ] && sync=-DWITH_SYNC

compile() { # compile COMPILER FLAGS…
    "$@" $sync $strict ffi-tests/header/twice.c
}
lines_fit() { ! awk 'length($0) > 140 { print FILENAME ": " FNR }' include/*.h | grep .; }
no_forbidden_types() { # conditional fields, bool and enum have no fixed layout
    ! sed 's,//.*,,; s,/\*.*\*/,,' include/bootlace.h | grep -nE '^[^*]*\<(bool|_Bool|enum|wchar_t|long double)\>'
}

check header_is_current scripts/header.sh check
for std in c99 c11 c17; do check "header_$std" compile cc -std=$std; done
check header_c99_hosted_flags compile cc -std=c99 -Wshadow -Wstrict-prototypes -Wundef -Wcast-qual -Wwrite-strings
for std in c++11 c++17 c++20; do check "header_$std" compile g++ -x c++ -std=$std; done
check header_freestanding compile cc -std=c99 -ffreestanding -nostdlib
check header_u_boot compile cc -std=gnu11 -nostdinc -ffreestanding -D__UBOOT__ -Iffi-tests/header/bootloader
check header_barebox compile cc -std=gnu11 -nostdinc -ffreestanding -fshort-wchar -funsigned-char -D__BAREBOX__ -Iffi-tests/header/bootloader
check header_port compile cc -std=c99 -nostdinc '-DLACE_PORT_HEADER="linux/types.h"' -Iffi-tests/header/bootloader
check header_lines_fit lines_fit
check header_fixed_types no_forbidden_types
finish
