#!/bin/sh
# The sizes stay within ffi-tests/sizes/budgets.tsv. Only in `long`: it builds several libraries.
set -u
cd "$(dirname "$0")/.."
. scripts/suite.sh
[ "${1:-test}" = long ] || { finish; exit; }
targets=$(grep -v '^#' ffi-tests/sizes/budgets.tsv | cut -f1 | sort -u)
SIZE_TARGETS=$targets SIZE_OUT=target/size/suite.tsv
export SIZE_TARGETS SIZE_OUT
mkdir -p target/size
check size_measured scripts/size.sh
within() { # within TARGET FEATURES COLUMN MOST
    awk -F'\t' -v t="$1" -v f="$2" -v c="$3" -v most="$4" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) col = i }
        $1 == t && $2 == f { v = $col; print t, f, c, v " of " most; ok = (v ~ /^[0-9]+$/ && v + 0 <= most) }
        END { exit !ok }' "$SIZE_OUT"
}
grep -v '^#' ffi-tests/sizes/budgets.tsv >target/budgets
while IFS='	' read -r t f c most goal; do
    case " $(echo $targets) " in *" $t "*) ;; *) continue ;; esac
    grep -q "^$t	$f	" "$SIZE_OUT" || continue # a feature that is not there yet
    check "${c}_${t}_$(echo "$f" | tr , _)" within "$t" "$f" "$c" "$most"
    echo "$(within "$t" "$f" "$c" "$most"), goal $goal"
done <target/budgets
finish
