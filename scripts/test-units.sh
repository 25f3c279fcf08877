#!/usr/bin/env bash
# Shows that the systemd units work under a real systemd: scripts/test-units.sh --help
set -euo pipefail

help() {
  cat <<'HELP'
usage: scripts/test-units.sh --deb FILE [OPTIONS]

Installs the Debian package in a clean Debian, boots systemd there as the first process of namespaces of its own (no network but the
loopback), and starts quorate.service: ready, reloaded, killed, frozen until the watchdog acts, backed up, stopped. Root only.

  --deb FILE       a quorate_VERSION_ARCH.deb (./dev release)
  --base DIRECTORY    a Debian with systemd, dbus and libatomic1 to copy (default: debootstrap makes one)
  --help           this text
HELP
}

fail() { echo "test-units.sh: $*" >&2; exit 1; }
say() { printf '[%5.1f s] %s\n' "$(($(date +%s%N) / 1000000 - started_ms))e-3" "$*"; }

deb= base=
while [ $# -gt 0 ]; do
  case $1 in
    --deb | --base)
      [ $# -ge 2 ] || fail "$1 needs a value"
      path=$(realpath -e -- "$2") || fail "$2 is not there"
      case $1 in --deb) deb=$path ;; --base) base=$path ;; esac
      shift 2
      ;;
    --help | -h) help; exit 0 ;;
    *) fail "unknown: $1 (--help lists the options)" ;;
  esac
done
started_ms=$(($(date +%s%N) / 1000000))
[ -n "$deb" ] || fail "--deb is missing"
[ "$(id -u)" = 0 ] || fail "only root can do this"
for tool in ip unshare nsenter pivot_root; do command -v $tool >/dev/null || fail "$tool is not installed"; done

work=$(mktemp -d /tmp/quorate-units.XXXXXX)
root=$work/root
first=
clean() {
  if [ -n "$first" ]; then kill -9 "$first" 2>/dev/null || true; fi
  wait
  rm -rf --one-file-system "$work"
}
trap clean EXIT

if [ -n "$base" ]; then
  cp -a "$base" "$root"
else
  debootstrap --variant=minbase --include=systemd,dbus,libatomic1 stable "$root" >"$work/debootstrap.log" 2>&1 || fail "debootstrap failed"
  say "debootstrap made a Debian with systemd"
fi
cp "$deb" "$root/root/quorate.deb"
chroot "$root" dpkg -i /root/quorate.deb >/dev/null
cat >"$root/etc/quorate/quorate.env" <<'SETTINGS'
ETCD_NAME=solo
ETCD_DATA_DIR=/var/lib/quorate/solo
ETCD_LISTEN_PEER_URLS=http://127.0.0.1:2380
ETCD_INITIAL_ADVERTISE_PEER_URLS=http://127.0.0.1:2380
ETCD_LISTEN_CLIENT_URLS=http://127.0.0.1:2379
ETCD_ADVERTISE_CLIENT_URLS=http://127.0.0.1:2379
ETCD_INITIAL_CLUSTER=solo=http://127.0.0.1:2380
SETTINGS
echo ETCDCTL_ENDPOINTS=http://127.0.0.1:2379 >"$root/etc/quorate/backup.env"
# A system without an id asks for its settings on the console when it boots first.
[ -s "$root/etc/machine-id" ] || head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$root/etc/machine-id"
# From 256 on (Debian 13) systemd refuses cgroups of version 1, and 258 has no code for them.
version=$(chroot "$root" systemctl --version | awk 'NR == 1 { print int($2) }')

# In namespaces of its own: mounts as systemd expects them in a container, then
# the root becomes the only one.
cat >"$work/boot.sh" <<'BOOT'
set -e
cd "$1"
version=$2
ip link set lo up
mount --make-rprivate /
mount --rbind . .
cd "$1"
mount -t proc proc proc
mount -t sysfs sysfs sys
for directory in run tmp dev; do mount -t tmpfs tmpfs $directory; done
for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
  IFS=: read -r name major minor <<<"$node"
  mknod -m 666 "dev/$name" c "$major" "$minor"
done
mkdir dev/shm dev/pts old-root
ln -s pts/ptmx dev/ptmx
# Version 2 without a controller is enough for what knows nothing else.
if mount -t cgroup2 cgroup2 sys/fs/cgroup && { [ "$version" -ge 256 ] || [ -s sys/fs/cgroup/cgroup.controllers ]; }; then
  :
elif [ "$version" -ge 256 ]; then
  echo "systemd $version needs cgroups of version 2, and they cannot be mounted here" >&2
  exit 1
else
  umount sys/fs/cgroup || true
  mount -t tmpfs tmpfs sys/fs/cgroup
  mkdir sys/fs/cgroup/systemd sys/fs/cgroup/unified
  mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
  mount -t cgroup2 cgroup2 sys/fs/cgroup/unified || true
fi
pivot_root . old-root
umount -l /old-root
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=journal --show-status=no </dev/null
BOOT
# The shell that unshare starts is the first process there; its id here is unshare's only child.
unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child bash "$work/boot.sh" "$root" "$version" >"$work/boot.log" 2>&1 &
parent=$!
run() { nsenter -t "$first" -m -p -n -u -i -r env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
for ((i = 0; ; i++)); do
  first=$(cat "/proc/$parent/task/$parent/children" 2>/dev/null | tr -d ' ') || true
  state=
  [ -z "$first" ] || state=$(run systemctl is-system-running 2>/dev/null) || true
  if [ "$state" = running ]; then break; fi
  # A unit of the base that finds no hardware here is none of ours.
  if [ "$state" = degraded ]; then
    say "failed beside what is tested: $(run systemctl --failed --plain --no-legend | awk '{ print $1 }' | xargs)"
    break
  fi
  kill -0 "$parent" 2>/dev/null || { cat "$work/boot.log"; fail "systemd has ended"; }
  [ $i -lt 300 ] || { cat "$work/boot.log"; fail "systemd did not come up (${state:-no answer}); it needs cgroups that can be mounted"; }
  sleep 0.2
done
say "systemd $(run systemctl --version | head -1 | cut -d' ' -f2) is running"

of() { run systemctl show --value -p "$1" quorate.service; }
wait_for() { # WHAT COMMAND...: until the command succeeds
  local what=$1 i
  shift
  for ((i = 0; i < 300; i++)); do
    if "$@" >/dev/null 2>&1; then say "$what"; return; fi
    sleep 0.2
  done
  run journalctl -u quorate --no-pager | tail -20
  fail "not within a minute: $what"
}
serves() { [ "$(run quoratectl get greeting --print-value-only)" = hello ]; }
is_another() { [ "$(of MainPID)" != "$1" ] && [ "$(of ActiveState)" = active ] && serves; }

[ "$(run systemctl is-enabled quorate.service || true)" = disabled ] || fail "the package must not enable the member"
run systemctl start quorate.service
[ "$(of StatusText)" = "serving clients" ] || fail "started, but its status is $(of StatusText)"
run quoratectl put greeting hello >/dev/null
wait_for "the member started, reported that it is ready, and serves ($(of MemoryCurrent) bytes)" serves
run systemctl reload quorate.service || { run journalctl --no-pager | tail -30; fail "a reload fails"; }
[ "$(of ActiveState)" = active ] || fail "a reload ended it"
say "it was reloaded"
pid=$(of MainPID)
run sh -c "kill -9 $pid"
wait_for "it was killed and started again" is_another "$pid"
run mkdir -p /run/systemd/system/quorate.service.d
run sh -c 'printf "[Service]\nWatchdogSec=3\n" >/run/systemd/system/quorate.service.d/watchdog.conf; systemctl daemon-reload'
run systemctl restart quorate.service
pid=$(of MainPID)
run sh -c "kill -STOP $pid"
wait_for "it was frozen; the watchdog killed it and started it again" is_another "$pid"
run systemctl start quorate-backup.service
[ "$(run sh -c 'ls /var/lib/quorate-backup/*.db | wc -l')" = 1 ] || fail "the backup is not there"
run sh -c 'quorateutl snapshot status /var/lib/quorate-backup/*.db' >/dev/null
say "quorate-backup.service saved a snapshot"
before=$(date +%s%N)
run systemctl stop quorate.service
[ "$(of Result)" = success ] || fail "it did not stop in order: $(of Result)"
say "it stopped in order within $((($(date +%s%N) - before) / 1000000)) ms"
say "$(run systemd-analyze security quorate.service --no-pager | tail -1 | sed 's/^[^O]*//')"
