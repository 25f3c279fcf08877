#!/bin/sh
# Takes the members of pods above a number of replicas out of the cluster, the highest first:
# shrink.sh REPLICAS. helm upgrade runs it before the StatefulSet changes, so that a pod goes only
# when its member has left, and once more after it.
#
# From the environment: SET_NAME, LIMIT_SECONDS, and ETCDCTL_* for quoratectl.
set -eu

replicas=$1
ctl=/opt/quorate/bin/quoratectl
end=$(($(date +%s) + LIMIT_SECONDS))

say() { echo "shrink.sh: $*" >&2; }
out_of_time() { [ "$(date +%s)" -ge "$end" ]; }

# By a majority; by any member where there is none, which is enough to see that no member has to
# leave.
until "$ctl" member list --command-timeout=5s >/tmp/members 2>/tmp/members.log ||
  "$ctl" member list --consistency=s --command-timeout=5s >/tmp/members 2>/tmp/members.log; do
  if out_of_time; then
    say "no member responds, so none is removed: $(tail -n 1 /tmp/members.log)"
    exit 0
  fi
  sleep 2
done

# "POD ID" of the members that are to leave; the pod's number is in its peer URL.
while IFS=', ' read -r id _status _name url _rest; do
  pod=${url#*://"$SET_NAME"-}
  [ "$pod" = "$url" ] && continue
  pod=${pod%%.*}
  [ "$pod" -ge "$replicas" ] && echo "$pod $id"
done </tmp/members >/tmp/unsorted || true
sort -rn /tmp/unsorted >/tmp/leaving

while read -r pod id; do
  until "$ctl" member remove "$id" --idempotent --command-timeout=10s 2>/tmp/remove.log; do
    if out_of_time; then
      say "$SET_NAME-$pod could not be removed in time: $(tail -n 1 /tmp/remove.log)"
      exit 1
    fi
    sleep 2
  done
  say "$SET_NAME-$pod has left the cluster"
done </tmp/leaving
