#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Verifies the protocol models exhaustively within their bounds and shows that each broken variant fails. Prints TAP.
#
# BUILD (or O): build directory, default build; JOBS: searches at once, default the number of processors.

set -u
cd "$(dirname "$0")" || exit 1
src=$PWD
cd ../.. || exit 1
build=${BUILD:-${O:-build}}/model
jobs=${JOBS:-$(nproc)}
seconds=900     # bounds each search; the longest takes half a minute

for tool in spin gcc; do
    if ! command -v "$tool" >/dev/null; then
        echo "Bail out! $tool is missing: apt-get install $tool"
        exit 1
    fi
done
mkdir -p "$build" || exit 1

# name | knobs | "holds" and what the search must have met, or "fails" and the assertions that may show it | title
lane='ok timeout unknown duplicate-answered below-floor stale-unknown-lane stale-known-lane stale-same-epoch'
lane+=' stale-new-epoch busy forgotten given-up node-reset confirm-created-lane confirm-acknowledged'
lane+=' executed-after-timeout'
cases=(
"two|-DN0=2 -DN1=1 -DG=3|holds $lane forgotten-together|two requesters, three generations"
"refusals|-DN0=3 -DG=3 -DKEYS=1|holds $lane refused|three requests, refusals"
"two-add|-DN0=2 -DN1=1 -DG=2 -DVALUES=1|holds $lane|two requesters, both fetch-and-add, cached replies"
"two-write|-DN0=2 -DN1=1 -DG=2 -DVALUES=2|holds $lane|two requesters, fetch-and-add and WRITE against WRITE"
"two-forgotten|-DN0=1 -DN1=1 -DG=3 -DVALUES=1|holds $lane forgotten-together|two requesters with values, lanes forgotten in a batch"
"successor|-DN0=2 -DN1=1 -DG=3 -DSUCCESSOR=1|holds $lane flushed executed-after-flush|requester reset, new context"
"read-generations|-DN0=1 -DNR=1 -DG=3 -DVALUES=1|holds $lane read-done read-by-lane read-stale read-late-dropped|READ beside a modification, three generations"
"read-two|-DN0=1 -DNR=2 -DG=2 -DVALUES=1|holds $lane read-done read-stale read-late-dropped|two READs beside a modification"
"read-lane|-DN0=2 -DNR=1 -DG=2 -DVALUES=1|holds $lane read-done read-by-lane read-stale|READ beside two modifications"
"progress|-DN0=2 -DG=3 -DKEYS=1 -DCALM=3|holds $lane refused calm-done|progress: done within 3 exchanges, one requester, refusals"
"progress-two|-DN0=1 -DN1=1 -DG=3 -DCALM=3|holds $lane calm-done|progress: done within 3 exchanges, two requesters"
"progress-read|-DN0=1 -DNR=1 -DG=3 -DVALUES=1 -DCALM=3|holds $lane calm-done|progress: a READ done within 3 exchanges"
"progress-beside-read|-DN0=1 -DNR=1 -DG=3 -DVALUES=1 -DCALM=3 -DCALM_WRITE|holds $lane calm-done|progress: a modification beside a READ done within 3 exchanges"
"known-stale|-DN0=1 -DNR=1 -DG=3 -DVALUES=1 -DCALM=3 -DKNOWN_STALE_NAMES_NODE|holds $lane calm-done|examined: STALE for a known lane may name the node's generation"
"no-bitmap|-DN0=2 -DG=3 -DBROKEN_NO_BITMAP|fails inv2_exactly_once inv5_copy_after_completion|floor without bitmap"
"any-generation|-DN0=2 -DG=3 -DBROKEN_ANY_GENERATION|fails inv2_exactly_once inv5_copy_after_completion inv9_sent_before_reset|a known lane executes any generation"
"stale-one|-DN0=2 -DG=3 -DBROKEN_STALE_ONE|fails inv2_exactly_once|STALE applied to the answered request only"
"resend-across-epoch|-DN0=2 -DG=3 -DBROKEN_RESEND_ACROSS_EPOCH|fails inv2_exactly_once|a WRITE sent again across an epoch"
"no-echo|-DN0=2 -DG=3 -DCALM=20 -DBROKEN_NO_ECHO|fails claim_progress|STALE without echo: not done within 20 exchanges"
"refusal-no-trace|-DN0=2 -DG=2 -DKEYS=1 -DBROKEN_REFUSAL_NO_TRACE|fails inv3_refused_not_applied|a refusal leaves no trace"
"wrap|-DN0=3 -DG=2 -DBROKEN_WRAP|fails inv2_exactly_once inv3_fence inv5_copy_after_completion|numbers that wrap (modulo 4, window 2)"
"refusal-no-lane|-DN0=2 -DG=2 -DKEYS=1 -DBROKEN_REFUSAL_NO_LANE|fails inv3_refused_not_applied|a refusal does not create the lane it needs to be remembered in"
"busy-is-refusal|-DN0=2 -DG=2 -DBROKEN_BUSY_IS_REFUSAL|fails inv3_refused_not_applied|BUSY completes a request as if it were refused"
"confirm-no-lane|-DN0=2 -DG=2 -DBROKEN_CONFIRM_NO_LANE|fails inv3_fence|a CONFIRM is acknowledged without creating the lane"
"no-cached-reply|-DN0=2 -DN1=1 -DG=2 -DVALUES=1 -DBROKEN_NO_CACHED_REPLY|fails inv7_value|a copy of a fetch-and-add is answered with the present value"
"same-context|-DN0=2 -DN1=1 -DG=2 -DSUCCESSOR=1 -DBROKEN_SAME_CONTEXT|fails inv2_exactly_once|a reset requester keeps its context id"
"read-tag|-DN0=1 -DNR=2 -DG=2 -DVALUES=1 -DBROKEN_READ_TAG|fails inv6_own_buffer|READs named by a slot that is used again"
"read-node-epoch|-DN0=1 -DNR=1 -DG=3 -DVALUES=1 -DBROKEN_READ_NODE_EPOCH|fails claim_unknown_only_if_lane_lost|a READ needs the node's epoch though its lane lives in an older one"
"read-node-epoch-progress|-DN0=1 -DNR=1 -DG=3 -DVALUES=1 -DCALM=20 -DBROKEN_READ_NODE_EPOCH|fails claim_progress|the same: READ not done within 20 exchanges"
)

# One search, in its own directory; everything it prints goes to files there. Broken variants end soon: there the
# compiler's time counts, elsewhere the search's.
search() {
    local dir=$build/$1 optimize=-O2
    shift
    [[ $* = *BROKEN* ]] && optimize=-O1
    rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || return 1
    cp "$src"/*.pml . && spin "$@" -a lane.pml >spin.log 2>&1 || return 1
    gcc $optimize -w -DSAFETY -DNOREDUCE -DMEMLIM=2800 -o pan pan.c >gcc.log 2>&1 || return 1
    timeout "$seconds" nice ./pan -m100000 -w22 >pan.log 2>&1
    echo $? >pan.rc
}

# Judges one search: one TAP line, and why not.
judge() {
    local number=$1 name knobs expect title log states depth failed why='' what
    IFS='|' read -r name knobs expect title <<<"$2"
    log=$build/$name/pan.log
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$log" 2>/dev/null)
    depth=$(sed -n 's/.*depth reached \([0-9]*\).*/\1/p' "$log" 2>/dev/null)
    failed=$(sed -n 's/.*assertion violated \([a-z0-9_]*\).*/\1/p' "$log" 2>/dev/null)
    if [ -z "$states" ] || [ ! -e "$build/$name/pan.rc" ]; then
        why="no result: see $build/$name"
    elif [ "${expect%% *}" = holds ]; then
        if ! grep -q 'errors: 0$' "$log"; then
            why="violated: ${failed:-see $log}"
        elif grep -qE 'not completed|too small|out of memory|memory limit|truncated' "$log" ||
             [ "$(cat "$build/$name/pan.rc")" != 0 ]; then
            why='the search was cut short'
        else
            for what in ${expect#holds }; do
                grep -qx "reached: $what" "$log" || why="$why not met: $what;"
            done
        fi
    else
        case " ${expect#fails } " in
        *" ${failed:-nothing} "*) ;;
        *) why="expected ${expect#fails }, found ${failed:-no violation}" ;;
        esac
    fi
    if [ "${expect%% *}" = holds ]; then
        what="verified: $title # $states states, depth $depth, $knobs"
    else
        what="broken, must fail: $title # $failed after $states states, $knobs"
    fi
    if [ -z "$why" ]; then
        echo "ok $number - $what"
        return 0
    fi
    echo "not ok $number - $what"
    echo "# $why"
    return 1
}

echo "1..${#cases[@]}"
running=0
for case in "${cases[@]}"; do
    if [ "$running" -ge "$jobs" ]; then
        wait -n
        running=$((running - 1))
    fi
    IFS='|' read -r name knobs _ <<<"$case"
    # shellcheck disable=SC2086 # the knobs are words
    search "$name" $knobs &
    running=$((running + 1))
done
wait

status=0
number=0
for case in "${cases[@]}"; do
    number=$((number + 1))
    judge "$number" "$case" || status=1
done
exit "$status"
