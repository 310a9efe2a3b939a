# Sourced. Sets CARGO to a cargo that is new enough for Cargo.toml's rust-version; installs Debian's where none is (root).
# The PATH's own cargo comes first, so that a rustup installation is never shadowed.

rust_version=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)

new_enough() { # new_enough CARGO
    have=$("$1" --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p')
    [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$rust_version" "$have" | sort -V | head -1)" = "$rust_version" ]
}

find_cargo() {
    for c in ${CARGO:+"$CARGO"} cargo "$HOME/.cargo/bin/cargo" /usr/bin/cargo; do
        if command -v "$c" >/dev/null && new_enough "$c"; then CARGO=$c; export CARGO; return 0; fi
    done
    return 1
}

if ! find_cargo; then
    . scripts/apt.sh
    apt_need cargo-web rustc-web && find_cargo || {
        echo "no cargo of version $rust_version or later: as root, apt-get install --no-install-recommends cargo-web rustc-web" >&2
        exit 1
    }
fi
