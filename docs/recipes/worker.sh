#!/bin/bash
# A worker in bash. $work gets an item's data on stdin and its ID in $RWQ_ID, of which it makes the name
# of a file: / is %2F in it. If it fails, the item is tried again later, and buried in the end. Options
# of rwq work may follow: ./worker.sh --drain
work='id=${RWQ_ID//%/%25}; gzip >"done/${id//\//%2F}.gz"'
exec rwq work -q "${RWQ_QUEUE:-jobs}" -j 4 --max-time 5m --clean 1m "$@" -- bash -euc "$work"
