#!/usr/bin/env bash
# Three hosts, 10.0.0.10 to 10.0.0.12, each a root that lies over this machine's with a network of
# its own, and commands that run in them:
#
#   hosts.sh SCRIPT   runs SCRIPT with the function on HOST FILE (0 to 2, and a file of commands);
#                     only root, under unshare with
#                     --mount, --net and --pid
#
# What an installation may find or leave is hidden: /opt, /usr/local, /etc/quorate,
# /etc/systemd/system, /var/lib/quorate*, /root and /tmp are empty. Each has a systemctl that reads
# units and starts what they say, and a sudo that runs its command.
set -euo pipefail

mount --make-rprivate /
work=$(mktemp -d /tmp/quorate-hosts.XXXXXX)
mount -t tmpfs tmpfs "$work"
mount -t tmpfs tmpfs /run
mount -t proc proc /proc
ip link add br0 type bridge
ip link set br0 up
ip link set lo up

for i in 0 1 2; do
  host=$work/$i
  mkdir -p "$host"/{upper,work,root}
  mount -t overlay overlay -o "lowerdir=/,upperdir=$host/upper,workdir=$host/work" "$host/root"
  root=$host/root
  for dir in opt usr/local root tmp run etc/quorate etc/systemd/system; do
    mkdir -p "$root/$dir"
    mount -t tmpfs tmpfs "$root/$dir"
  done
  rm -rf "$root"/var/lib/quorate "$root"/var/lib/quorate-backup
  chmod 1777 "$root/tmp"
  mkdir -p "$root"/usr/local/{bin,sbin,share}
  mount --rbind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  cp "$(dirname "$0")/systemctl.sh" "$root/usr/local/sbin/systemctl"
  printf '#!/bin/sh\nif [ "$1" = -E ]; then shift; fi\nexec "$@"\n' >"$root/usr/local/sbin/sudo"
  chmod 755 "$root"/usr/local/sbin/*
  ip netns add "host$i"
  ip link add "veth$i" type veth peer name eth0 netns "host$i"
  ip link set "veth$i" master br0 up
  ip -n "host$i" addr add "10.0.0.1$i/24" dev eth0
  ip -n "host$i" link set eth0 up
  ip -n "host$i" link set lo up
done

# Runs a file of commands on a host, as an operator's shell would.
on() { # HOST FILE
  cp "$2" "$work/$1/root/tmp/commands.sh"
  ip netns exec "host$1" chroot "$work/$1/root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    bash -euo pipefail -c 'cd /root; source /tmp/commands.sh' </dev/null
}
root_of() { echo "$work/$1/root"; }

source "$1"
