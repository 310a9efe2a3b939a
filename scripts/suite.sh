# Sourced by test suites written in shell. A suite prints one line a test and ends with its closing line, which
# scripts/test.sh adds up: `N passed, N failed, N skipped`. In CI (CI=true) a skip counts as a failure.
# Use:  . scripts/suite.sh; check NAME COMMAND…; pass NAME; fail NAME WHY; skip NAME WHY; finish

suite_passed=0 suite_failed=0 suite_skipped=0

pass() { suite_passed=$((suite_passed + 1)); echo "pass $1"; }
fail() { suite_failed=$((suite_failed + 1)); echo "FAIL $1: $2"; }
skip() {
    if [ "${CI:-}" = true ]; then fail "$1" "skipped: $2"; return; fi
    suite_skipped=$((suite_skipped + 1)); echo "skip $1: $2"
}
check() { # check NAME COMMAND…: passes when the command does; its output is shown when it does not
    suite_name=$1; shift
    if suite_out=$("$@" 2>&1); then pass "$suite_name"; else fail "$suite_name" "$* said"; echo "$suite_out" | tail -40; fi
}
finish() {
    echo "$suite_passed passed, $suite_failed failed, $suite_skipped skipped"
    [ "$suite_failed" = 0 ]
}
