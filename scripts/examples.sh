# Sourced. build_examples: the library for this machine, and the C examples into target/examples.

build_examples() {
    scripts/lib.sh host
    mkdir -p target/examples
    # Not asked of pkg-config, which would want glib's headers as well.
    [ -e /usr/include/slirp/libslirp.h ] || {
        . scripts/apt.sh
        apt_need gcc libc6-dev libslirp-dev
    }
    flags="-std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -Iinclude -Ic-examples -DWITH_SLIRP"
    common="c-examples/linux_nic.c c-examples/sha256.c"
    libs="target/dist/host/libbootlace.a -lslirp"
    # shellcheck disable=SC2086
    for program in "$@"; do
        set -- "c-examples/$program".c
        [ "$program" = lace ] && set -- c-examples/lace*.c
        ${CC:-cc} $flags "$@" $common $libs -o "target/examples/$program"
    done
}
