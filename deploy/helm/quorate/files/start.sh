#!/bin/sh
# Starts the member of a pod; its arguments are the member's flags but for those that say which
# cluster it belongs to.
#
#   what the volume has   what the cluster says            what happens
#   data                  the pod is a member, or no       the member starts with its data
#                         member responds
#   data                  it is none                       a new pod: the data of the removed member
#                                                          are moved aside, and it joins;
#                                                          the pod that was removed: waits until it
#                                                          is deleted
#   nothing               nothing of this pod              joins as a learner, when no other pod is
#                                                          joining; becomes a voter by itself
#   nothing               it is a started member           its data are lost: that member is
#                                                          removed, and the pod joins as a new one
#   nothing, pod 0        no member responds, and the      begins a new cluster of one, which the
#                         state is "new"                   others join
#
# From the environment: POD_NAME, SET_NAME, SCHEME, DOMAIN (of the pods' names), and ETCDCTL_* for
# quoratectl.
set -eu

bin=/opt/quorate/bin
volume=/var/lib/quorate
data=$volume/data
plan=$volume/plan                  # the cluster when this member first joined
here=/tmp/member-of-this-pod       # in the pod's own memory: a member of this very pod has run
state=/etc/quorate/scripts/state
own=$SCHEME://$POD_NAME.$DOMAIN:2380
highest_pod=6                      # values.schema.json: seven members at most

say() { echo "start.sh: $*" >&2; }

# Container runtimes start this as process 1, which ends by a signal only if it says so.
trap 'exit 0' TERM INT

# The list of members, by a majority; false if there is none.
members() { "$bin/quoratectl" member list --command-timeout=5s >/tmp/members 2>/tmp/members.log; }

# "ID STATUS" of the member with this pod's peer URL, or nothing.
own_member() {
  while IFS=', ' read -r id status _name url _rest; do
    [ "$url" = "$own" ] && echo "$id $status"
  done </tmp/members
  true
}

# Whether any pod belongs to a cluster, with or without a majority.
any_cluster() {
  pods=
  for i in $(seq 0 $highest_pod); do
    [ "$SET_NAME-$i" = "$POD_NAME" ] || pods="$pods${pods:+,}$SCHEME://$SET_NAME-$i.$DOMAIN:2379"
  done
  ETCDCTL_ENDPOINTS=$pods "$bin/quoratectl" member list --consistency=s --command-timeout=5s >/dev/null 2>&1
}

# Starts the member as the plan says. @ its flags
run() {
  { read -r cluster && read -r cluster_state; } <"$plan"
  touch "$here"
  exec "$bin/quorate" "$@" --initial-cluster="$cluster" --initial-cluster-state="$cluster_state" --auto-promote
}

# Writes the plan whole or not at all. CLUSTER STATE
plan() {
  printf '%s\n%s\n' "$1" "$2" >"$plan.new"
  mv "$plan.new" "$plan"
}

pause() {
  sleep "$1" &
  wait $!
}

if [ -d "$data/member/wal" ]; then
  [ -e "$plan" ] || plan "$POD_NAME=$own" existing
  if ! members || [ -n "$(own_member)" ]; then run "$@"; fi
  if [ -e "$here" ]; then
    say "$POD_NAME was removed from the cluster; to let it join again, delete the pod"
    while :; do pause 3600; done
  fi
  aside=$volume/removed
  say "the data are of a member that was removed: moving them to $aside"
  rm -rf "$aside"
  mv "$data" "$aside"
  rm -f "$plan"
fi

[ -e "$plan" ] && [ -d "$data" ] && run "$@"

while :; do
  if members; then
    found=$(own_member)
    case $found in
      *" started")
        say "the data of this member are lost: removing it, to join as a new one"
        "$bin/quoratectl" member remove "${found%% *}" --idempotent || true
        ;;
      *)
        if "$bin/quoratectl" member add "$POD_NAME" --learner --peer-urls="$own" >/tmp/added 2>/tmp/added.log; then
          say "joining: $(sed -n 1p /tmp/added)"
          plan "$(sed -n 's/^ETCD_INITIAL_CLUSTER="\(.*\)"$/\1/p' /tmp/added)" existing
          run "$@"
        fi
        # Another pod is joining, or the cluster is not healthy yet.
        say "not yet: $(tail -n 1 /tmp/added.log)"
        ;;
    esac
  elif [ "$POD_NAME" != "$SET_NAME-0" ]; then
    say "waiting for the cluster: $(tail -n 1 /tmp/members.log)"
  elif any_cluster; then
    say "waiting for a majority of the cluster"
  elif [ "$(cat $state)" = new ]; then
    say "no member responds, and cluster.state is new: beginning a new cluster"
    plan "$POD_NAME=$own" new
    run "$@"
  else
    say "no member responds; if there is no cluster yet, run helm upgrade with --set cluster.state=new"
  fi
  pause 2
done
