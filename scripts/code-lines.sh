#!/bin/sh
# Counts the lines of C on standard input that are neither blank nor comments alone.
awk '{ l = $0; if (inside) { if (sub(/.*\*\//, "", l)) inside = 0; else next }
    while (match(l, /\/\*[^*]*(\*+[^*\/][^*]*)*\*+\//)) l = substr(l, 1, RSTART - 1) substr(l, RSTART + RLENGTH)
    if (match(l, /\/\*/)) { l = substr(l, 1, RSTART - 1); inside = 1 }
    sub(/\/\/.*/, "", l); if (l ~ /[^ \t]/) n++ } END { print n + 0 }'
