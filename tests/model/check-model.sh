#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Verifies the protocol models exhaustively within their bounds and shows that each broken variant fails. Prints TAP.
#
# BUILD (or O): build directory, default build; JOBS: searches at once, default the number of processors; ONLY: a pattern
# of names, those searches only.

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

# name | model and knobs | "holds" and what the search must have met, or "fails" and the assertions that may show it | title
lane='ok timeout unknown duplicate-answered below-floor stale-unknown-lane stale-known-lane stale-same-epoch'
lane+=' stale-new-epoch busy forgotten given-up node-reset confirm-created-lane confirm-acknowledged'
lane+=' executed-after-timeout'
# What searches of chains must have met.
seen='timeout executed-after-timeout confirm-created-lane confirm-acknowledged busy ok'
lost='unknown stale-unknown-lane stale-same-epoch stale-new-epoch forgotten given-up node-reset'
late='below-floor stale-known-lane'
tour='tour-home confirm-created-lane confirm-acknowledged'
moved='tour-stale stale-unknown-lane stale-same-epoch stale-new-epoch forgotten node-reset'
reads='-DOP0=LOAD -DOP1=LOAD -DOP2=LOAD'        # LOAD_REDUCE is a LOAD here
cases=(
"two|lane.pml -DN0=2 -DN1=1 -DG=3|holds $lane forgotten-together|two requesters, three generations"
"refusals|lane.pml -DN0=3 -DG=3 -DKEYS=1|holds $lane refused|three requests, refusals"
"two-add|lane.pml -DN0=2 -DN1=1 -DG=2 -DVALUES=1|holds $lane|two requesters, both fetch-and-add, cached replies"
"two-write|lane.pml -DN0=2 -DN1=1 -DG=2 -DVALUES=2|holds $lane|two requesters, fetch-and-add and WRITE against WRITE"
"two-forgotten|lane.pml -DN0=1 -DN1=1 -DG=3 -DVALUES=1|holds $lane forgotten-together|two requesters with values, lanes forgotten in a batch"
"successor|lane.pml -DN0=2 -DN1=1 -DG=3 -DSUCCESSOR=1|holds $lane flushed executed-after-flush|requester reset, new context"
"read-generations|lane.pml -DN0=1 -DNR=1 -DG=3 -DVALUES=1|holds $lane read-done read-by-lane read-stale read-late-dropped|READ beside a modification, three generations"
"read-two|lane.pml -DN0=1 -DNR=2 -DG=2 -DVALUES=1|holds $lane read-done read-stale read-late-dropped|two READs beside a modification"
"read-lane|lane.pml -DN0=2 -DNR=1 -DG=2 -DVALUES=1|holds $lane read-done read-by-lane read-stale|READ beside two modifications"
"progress|lane.pml -DN0=2 -DG=3 -DKEYS=1 -DCALM=3|holds $lane refused calm-done|progress: done within 3 exchanges, one requester, refusals"
"progress-two|lane.pml -DN0=1 -DN1=1 -DG=3 -DCALM=3|holds $lane calm-done|progress: done within 3 exchanges, two requesters"
"progress-read|lane.pml -DN0=1 -DNR=1 -DG=3 -DVALUES=1 -DCALM=3|holds $lane calm-done|progress: a READ done within 3 exchanges"
"progress-beside-read|lane.pml -DN0=1 -DNR=1 -DG=3 -DVALUES=1 -DCALM=3 -DCALM_WRITE|holds $lane calm-done|progress: a modification beside a READ done within 3 exchanges"
"known-stale|lane.pml -DN0=1 -DNR=1 -DG=3 -DVALUES=1 -DCALM=3 -DKNOWN_STALE_NAMES_NODE|holds $lane calm-done|examined: STALE for a known lane may name the node's generation"
"no-bitmap|lane.pml -DN0=2 -DG=3 -DBROKEN_NO_BITMAP|fails inv2_exactly_once inv5_copy_after_completion|floor without bitmap"
"any-generation|lane.pml -DN0=2 -DG=3 -DBROKEN_ANY_GENERATION|fails inv2_exactly_once inv5_copy_after_completion inv9_sent_before_reset|a known lane executes any generation"
"stale-one|lane.pml -DN0=2 -DG=3 -DBROKEN_STALE_ONE|fails inv2_exactly_once|STALE applied to the answered request only"
"resend-across-epoch|lane.pml -DN0=2 -DG=3 -DBROKEN_RESEND_ACROSS_EPOCH|fails inv2_exactly_once|a WRITE sent again across an epoch"
"no-echo|lane.pml -DN0=2 -DG=3 -DCALM=20 -DBROKEN_NO_ECHO|fails claim_progress|STALE without echo: not done within 20 exchanges"
"refusal-no-trace|lane.pml -DN0=2 -DG=2 -DKEYS=1 -DBROKEN_REFUSAL_NO_TRACE|fails inv3_refused_not_applied|a refusal leaves no trace"
"wrap|lane.pml -DN0=3 -DG=2 -DBROKEN_WRAP|fails inv2_exactly_once inv3_fence inv5_copy_after_completion|numbers that wrap (modulo 4, window 2)"
"refusal-no-lane|lane.pml -DN0=2 -DG=2 -DKEYS=1 -DBROKEN_REFUSAL_NO_LANE|fails inv3_refused_not_applied|a refusal does not create the lane it needs to be remembered in"
"busy-is-refusal|lane.pml -DN0=2 -DG=2 -DBROKEN_BUSY_IS_REFUSAL|fails inv3_refused_not_applied|BUSY completes a request as if it were refused"
"confirm-no-lane|lane.pml -DN0=2 -DG=2 -DBROKEN_CONFIRM_NO_LANE|fails inv3_fence|a CONFIRM is acknowledged without creating the lane"
"no-cached-reply|lane.pml -DN0=2 -DN1=1 -DG=2 -DVALUES=1 -DBROKEN_NO_CACHED_REPLY|fails inv7_value|a copy of a fetch-and-add is answered with the present value"
"same-context|lane.pml -DN0=2 -DN1=1 -DG=2 -DSUCCESSOR=1 -DBROKEN_SAME_CONTEXT|fails inv2_exactly_once|a reset requester keeps its context id"
"read-tag|lane.pml -DN0=1 -DNR=2 -DG=2 -DVALUES=1 -DBROKEN_READ_TAG|fails inv6_own_buffer|READs named by a slot that is used again"
"read-node-epoch|lane.pml -DN0=1 -DNR=1 -DG=3 -DVALUES=1 -DBROKEN_READ_NODE_EPOCH|fails claim_unknown_only_if_lane_lost|a READ needs the node's epoch though its lane lives in an older one"
"read-node-epoch-progress|lane.pml -DN0=1 -DNR=1 -DG=3 -DVALUES=1 -DCALM=20 -DBROKEN_READ_NODE_EPOCH|fails claim_progress|the same: READ not done within 20 exchanges"
"chain-two|chain.pml -DN0=2 -DBUDGET=2 -DKEYS=3|holds $seen $lost passed-on-again refused-again refused refused-later-hop|two chains that store at two hops, refusals at both"
"chain-generations|chain.pml -DN0=2 -DG=3 -DBUDGET=2 -DOTHERS=1|holds $seen $lost passed-on-again|two such chains, generations changed by others too"
"chain-first|chain.pml -DN0=2 -DG=3 -DBUDGET=1 -DFIRST=1|holds $seen $lost passed-on-again first-contact|two such chains, from first contact on"
"chain-sparse|chain.pml -DN0=2 -DBUDGET=2 -DKEYS=2 -DSPARSE=1|holds $seen $lost passed-on-again refused refused-later-hop|a second chain that passes by the first node"
"chain-contexts|chain.pml -DN0=1 -DN1=1 -DBUDGET=2|holds $seen $lost passed-on-again|two requesters with a chain each over the same nodes"
"chain-three|chain.pml -DH=3 -DN0=1 -DBUDGET=2 -DKEYS=7 -DOTHERS=1|holds $seen $lost passed-on-again refused-again refused refused-later-hop|a chain that stores at three hops, refusals at all"
"chain-three-two|chain.pml -DH=3 -DN0=2 -DBUDGET=1 -DKEYS=2|holds $seen $lost passed-on-again refused-again refused-later-hop|two chains that store at three hops"
"chain-kept|chain.pml -DN0=2 -DBUDGET=1 -DKEYS=2 -DKEEP_ALL|holds $seen $lost $late passed-on-again refused-later-hop|two chains, nothing taken out of the network"
"load-store|chain.pml -DN0=2 -DV=2 -DOP0=LOAD -DKEYS=1 -DBUDGET=1|holds $seen $lost passed-on-again read-again dropped-again refused-again refused|LOAD, then WRITE; the region that is read goes away"
"load-store-both|chain.pml -DN0=1 -DV=2 -DOP0=LOAD -DKEYS=3 -DBUDGET=2|holds $seen $lost passed-on-again read-again dropped-again refused-again refused refused-later-hop|LOAD, then WRITE; both regions go away"
"load-store-kept|chain.pml -DN0=1 -DV=2 -DOP0=LOAD -DKEYS=1 -DBUDGET=1 -DKEEP_ALL|holds $seen $lost $late read-again dropped-again|LOAD, then WRITE; nothing taken out of the network"
"load-load-store|chain.pml -DH=3 -DN0=1 -DV=2 -DOP0=LOAD -DOP1=LOAD -DKEYS=3 -DBUDGET=1|holds $seen $lost read-again dropped-again refused refused-later-hop|LOAD, LOAD_REDUCE, then WRITE; the first is followed"
"load-load-store-second|chain.pml -DH=3 -DN0=1 -DV=2 -DOP0=LOAD -DOP1=LOAD -DTRACK=1 -DKEYS=3 -DBUDGET=1|holds $seen $lost read-again dropped-again refused refused-later-hop|LOAD, LOAD_REDUCE, then WRITE; the second is followed"
"compare-store|chain.pml -DN0=2 -DV=2 -DOP0=COMPARE -DKEYS=1 -DBUDGET=1|holds $seen $lost passed-on-again unequal refused-again refused|COMPARE, then WRITE"
"compare-store-store|chain.pml -DH=3 -DN0=1 -DV=2 -DOP0=COMPARE -DKEYS=2 -DBUDGET=2|holds $seen $lost passed-on-again unequal refused refused-later-hop|COMPARE, then WRITE twice"
"load-compare-store|chain.pml -DH=3 -DN0=1 -DV=2 -DOP0=LOAD -DOP1=COMPARE -DKEYS=1 -DBUDGET=1|holds $seen $lost read-again dropped-again unequal refused refused-later-hop|LOAD, COMPARE with what was read, then WRITE"
"store-load|chain.pml -DN0=2 -DV=2 -DOP1=LOAD -DTRACK=1 -DKEYS=2 -DBUDGET=1 -DOTHERS=1|holds $seen $lost passed-on-again without-lane refused-later-hop|WRITE, then LOAD without lane"
"store-compare|chain.pml -DN0=1 -DV=2 -DOP1=COMPARE -DKEYS=2 -DBUDGET=2|holds $seen $lost passed-on-again without-lane refused-later-hop|WRITE, then COMPARE without lane"
"tour-first|chain.pml -DH=3 -DN0=0 -DNR=1 -DV=2 -DKEYS=2 -DBUDGET=1 $reads|holds $tour $moved tour-refused|a tour of three hops; the first hop's value"
"tour-second|chain.pml -DH=3 -DN0=0 -DNR=1 -DV=2 -DTRACK=1 -DBUDGET=2 $reads|holds $tour $moved|a tour of three hops; the second hop's value"
"tour-third|chain.pml -DH=3 -DN0=0 -DNR=1 -DV=2 -DTRACK=2 -DKEYS=4 -DBUDGET=1 $reads|holds $tour $moved tour-refused|a tour of three hops; the third hop's value"
"tour-buffer|chain.pml -DH=3 -DN0=0 -DNR=2 -DV=2 -DKEYS=2 -DBUDGET=1 $reads|holds $tour $moved tour-refused|two tours through one buffer"
"tour-kept|chain.pml -DH=3 -DN0=0 -DNR=2 -DV=2 -DG=1 -DBUDGET=0 -DKEEP_ALL $reads|holds $tour tour-late-dropped|two tours through one buffer, nothing taken out of the network"
"tour-beside|chain.pml -DN0=1 -DNR=1 -DV=2 -DG=3 -DBUDGET=2 -DOTHERS=1|holds $seen $lost $tour $moved tour-by-lane passed-on-again|a tour beside a chain that stores"
"chain-progress|chain.pml -DN0=2 -DG=3 -DBUDGET=2 -DOTHERS=1 -DCALM=3|holds $seen $lost calm-done|progress: done within 3 exchanges, one more than changes of generation"
"chain-progress-three|chain.pml -DH=3 -DN0=1 -DBUDGET=2 -DKEYS=4 -DCALM=3|holds $seen $lost calm-done refused-later-hop|progress: the same with three hops and refusals"
"chain-progress-load|chain.pml -DN0=1 -DV=2 -DOP0=LOAD -DBUDGET=2 -DCALM=3|holds $seen $lost calm-done read-again|progress: LOAD, then WRITE"
"not-passed-on|chain.pml -DN0=1 -DBUDGET=0 -DCALM=20 -DBROKEN_NOT_PASSED_ON|fails claim_progress|a hop that has executed does not pass on: not done within 20 exchanges"
"one-generation|chain.pml -DN0=1 -DBUDGET=1 -DCALM=20 -DBROKEN_ONE_GENERATION|fails claim_progress|one generation for the whole chain: not done within 20 exchanges"
"read-no-lane|chain.pml -DN0=1 -DV=2 -DOP0=LOAD -DKEYS=1 -DBUDGET=0 -DBROKEN_READ_NO_LANE|fails inv5_copy_after_completion claim_refusal_stops_the_chain|reads of a storing chain need no lane: a late copy stores though the chain was refused"
"read-again-refuses|chain.pml -DN0=1 -DV=2 -DOP0=LOAD -DKEYS=1 -DBUDGET=0 -DBROKEN_READ_AGAIN_REFUSES|fails inv5_copy_after_completion claim_refusal_stops_the_chain|a repeated read is refused, not dropped"
"hop-no-echo|chain.pml -DN0=1 -DG=3 -DBUDGET=2 -DBROKEN_NO_ECHO|fails claim_unknown_only_if_lane_lost|STALE of a hop without echo"
"middle-acknowledges|chain.pml -DN0=1 -DBUDGET=0 -DBROKEN_MIDDLE_ACKNOWLEDGES|fails inv2_exactly_once|a hop in the middle acknowledges"
"two-stores|chain.pml -DH=3 -DN0=1 -DV=2 -DOP0=LOAD -DBUDGET=0 -DBROKEN_TWO_STORES|fails claim_one_value|two stores behind a read"
"compare-not-again|chain.pml -DH=3 -DN0=1 -DV=2 -DOP0=LOAD -DOP1=COMPARE -DBUDGET=0 -DBROKEN_COMPARE_NOT_AGAIN|fails inv7_value|a COMPARE behind a read passes on what it has not compared"
"same-node|chain.pml -DH=3 -DN0=1 -DBUDGET=0 -DBROKEN_SAME_NODE|fails inv2_exactly_once|a node twice in a storing chain"
"hop-resend-across-epoch|chain.pml -DN0=1 -DBUDGET=1 -DBROKEN_RESEND_ACROSS_EPOCH|fails inv2_exactly_once|a chain sent again across a hop's epoch"
"stale-first-hop|chain.pml -DN0=1 -DBUDGET=1 -DBROKEN_STALE_FIRST_HOP|fails inv2_exactly_once|the same, for the epochs of later hops only"
"hop-refusal-no-trace|chain.pml -DN0=1 -DKEYS=2 -DBUDGET=0 -DBROKEN_REFUSAL_NO_TRACE|fails inv3_refused_not_applied|a hop's refusal leaves no trace"
"refused-after-execution|chain.pml -DN0=1 -DKEYS=1 -DBUDGET=0 -DBROKEN_REFUSED_AFTER_EXECUTION|fails inv3_refused_not_applied|a hop refuses what it has executed, since its configuration has changed"
"confirm-no-node|chain.pml -DFIRST=1 -DN0=1 -DBUDGET=1 -DBROKEN_CONFIRM_NO_NODE|fails inv3_fence claim_unknown_only_if_lane_lost|answers to a CONFIRM that do not name their node"
"one-name|chain.pml -DN0=1 -DNR=1 -DV=2 -DKEYS=1 -DBUDGET=0 -DBROKEN_ONE_NAME|fails inv3_refused_not_applied claim_refusal_stops_the_chain|a refusal that does not tell tour and storing chain of one number apart"
"tour-tag|chain.pml -DH=3 -DN0=0 -DNR=2 -DV=2 -DG=1 -DBUDGET=0 $reads -DBROKEN_TOUR_TAG|fails inv6_own_buffer|tours named by their buffer"
"tour-node-epoch|chain.pml -DN0=1 -DNR=1 -DV=2 -DG=3 -DBUDGET=2 -DOTHERS=1 -DBROKEN_TOUR_NODE_EPOCH|fails claim_unknown_only_if_lane_lost|a tour needs the node's epoch though its lane lives in an older one"
)

if [ -n "${ONLY:-}" ]; then
    for case in "${cases[@]}"; do
        # shellcheck disable=SC2053 # a pattern
        [[ ${case%%|*} = $ONLY ]] && chosen+=("$case")
    done
    cases=("${chosen[@]}")
fi

# One search, in its own directory; everything it prints goes to files there. Broken variants end soon: there the
# compiler's time counts, elsewhere the search's, for which -O2 does no more than -O1.
search() {
    local dir=$build/$1 model=$2 optimize=-O1 start
    shift 2
    [[ $* = *BROKEN* ]] && optimize=-O0
    rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || return 1
    cp "$src"/*.pml . && spin "$@" -a "$model" >spin.log 2>&1 || return 1
    gcc $optimize -w -DSAFETY -DNOREDUCE -DMEMLIM=2800 -o pan pan.c >gcc.log 2>&1 || return 1
    start=$(date +%s%3N)
    timeout "$seconds" nice ./pan -m100000 -w22 >pan.log 2>&1
    echo $? >pan.rc
    echo $(($(date +%s%3N) - start)) >pan.ms
}

# Judges one search: one TAP line, and why not.
judge() {
    local number=$1 name knobs expect title log states depth ms failed why='' what
    IFS='|' read -r name knobs expect title <<<"$2"
    log=$build/$name/pan.log
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$log" 2>/dev/null)
    depth=$(sed -n 's/.*depth reached \([0-9]*\).*/\1/p' "$log" 2>/dev/null)
    ms=$(cat "$build/$name/pan.ms" 2>/dev/null)
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
        what="verified: $title # $states states, depth $depth, $ms ms, $knobs"
    else
        what="broken, must fail: $title # $failed after $states states, $ms ms, $knobs"
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
