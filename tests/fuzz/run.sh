#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs one fuzz target, as TAP: first the kept regressions, then new inputs for FUZZ_SECONDS (20).
dir=${0%/*}
name=$(basename "$0" .t)
root=$(pwd)
seconds=${FUZZ_SECONDS:-20}
mkdir -p "$dir/corpus/$name" "$dir/crashes" "$dir/seeds/$name"
failed=0
# Every input opens a device: a small quarantine keeps its memory warm.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=4"

report() { # status, text
    if [ "$1" -eq 0 ]; then
        echo "ok $2"
    else
        echo "not ok $2"
        failed=1
    fi
}

regressions=$(find "$root/tests/fuzz/regressions" -type f -name "$name-*" 2>/dev/null | sort)
log="$dir/$name.log"
if [ -n "$regressions" ]; then
    # shellcheck disable=SC2086
    "$dir/$name" $regressions >"$log" 2>&1
    report $? "1 - $name: kept regressions"
else
    echo "ok 1 - $name: kept regressions # SKIP none yet"
fi

"$dir/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=8192 -print_final_stats=1 \
    -artifact_prefix="$dir/crashes/$name-" "$dir/corpus/$name" "$dir/seeds/$name" >"$log" 2>&1
status=$?
grep -E '^stat::(number_of_executed_units|average_exec_per_sec|new_units_added)|cov:' "$log" | tail -4 | sed 's/^/# /'
if [ $status -ne 0 ]; then
    grep -E 'fuzz: |ERROR|SUMMARY|runtime error|Test unit written' "$log" | sed 's/^/# /'
    echo "# replay: $dir/$name INPUT; log: $log; keep the input as tests/fuzz/regressions/$name-WHAT"
fi
report $status "2 - $name: new inputs for $seconds s"
echo 1..2
exit $failed
