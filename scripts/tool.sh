#!/bin/sh
# tool.sh: builds the `lace` tool (c-examples/lace.c): target/examples/lace. Without arguments it says what it can do.
set -eu
cd "$(dirname "$0")/.."
. scripts/examples.sh
build_examples lace
echo target/examples/lace
