# Sourced. apt_need PACKAGE…: installs what is missing, as root; otherwise prints the line to run and returns 1.
# Daemons are never started: a policy-rc.d forbids it while apt runs, and what stood there before comes back.

apt_missing() {
    for p in "$@"; do
        case "$(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null)" in ii*) ;; *) printf '%s ' "$p" ;; esac
    done
}

apt_need() {
    missing=$(apt_missing "$@")
    [ -z "$missing" ] && return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "missing packages; as root: apt-get install --no-install-recommends $missing" >&2
        return 1
    fi
    (
        export DEBIAN_FRONTEND=noninteractive
        exec 8>/run/lock/bootlace-apt && flock 8
        policy=/usr/sbin/policy-rc.d
        saved=
        if [ -e "$policy" ] || [ -L "$policy" ]; then saved=$policy.bootlace-saved; mv "$policy" "$saved"; fi
        restore() { rm -f "$policy"; if [ -n "$saved" ]; then mv "$saved" "$policy"; fi; }
        trap restore EXIT
        trap 'exit 1' INT TERM
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
        missing=$(apt_missing "$@")
        [ -z "$missing" ] && exit 0
        echo "installing: $missing"
        get="apt-get -q -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0"
        # shellcheck disable=SC2086
        $get -y install --no-install-recommends $missing >"${APT_LOG:-/dev/null}" 2>&1 ||
            { $get update && $get -y install --no-install-recommends $missing; }
    ) || { echo "apt could not install: $missing" >&2; return 1; }
}
