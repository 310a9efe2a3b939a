#!/bin/sh
# demo.sh: builds and runs the demo: DHCP, ping and TFTP of a file over an Ethernet segment inside the process (libslirp).
# No privileges. Its last line is `demo: OK BYTES bytes sha256 HEX`.
set -eu
cd "$(dirname "$0")/.."
. scripts/examples.sh
build_examples demo
exec target/examples/demo "$@"
