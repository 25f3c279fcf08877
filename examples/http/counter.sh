#!/bin/sh
# Increments a counter by compare-and-swap, with curl alone. Any number of these may run at once.
#
#   counter.sh http://127.0.0.1:2379 visits 10
set -eu
server=$1
key=$2
times=${3:-1}
head=$(mktemp)
trap 'rm -f "$head"' EXIT

etag() { sed -n 's/^[Ee][Tt]ag: \(.*\)\r$/\1/p' "$head"; }

# 201 if this program has created the counter, 412 if another one has.
curl -s -o /dev/null -X PUT "$server/kv/$key" -H 'If-None-Match: *' -d 0

while [ "$times" -gt 0 ]; do
  value=$(curl -sf -D "$head" "$server/kv/$key")
  status=$(curl -s -o /dev/null -w '%{http_code}' -X PUT "$server/kv/$key" \
    -H "If-Match: $(etag)" -d $((value + 1)))
  case $status in
    204) times=$((times - 1)) ;;
    412) ;; # Another program was faster: read again.
    *) echo "counter.sh: $server responds with $status" >&2; exit 1 ;;
  esac
done
