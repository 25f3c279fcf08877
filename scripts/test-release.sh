#!/usr/bin/env bash
# Shows that a release runs on a clean system: scripts/test-release.sh --help
set -euo pipefail

help() {
  cat <<'HELP'
usage: scripts/test-release.sh [OPTIONS]

Makes a clean root, installs the archive in it, and there, without Node and without a network: starts three members, writes, reads, kills a
member, reads on, stops, uninstalls. Then the same with the Debian package in a root of its own. Root only: it needs chroot and unshare.

  --archive FILE   a quorate-VERSION-PLATFORM.tar.gz (default: one is made for this platform, and the package with it)
  --deb FILE       a quorate_VERSION_ARCH.deb
  --base DIRECTORY    a clean Debian to copy (default: debootstrap makes a minimal one)
  --bare           no Debian: a root of the C and C++ libraries, a shell and small tools of this machine; without the package
  --keep           leaves the roots where they are
  --help           this text
HELP
}

fail() { echo "test-release.sh: $*" >&2; exit 1; }
say() { printf '[%5.1f s] %s\n' "$(($(date +%s%N) / 1000000 - started_ms))e-3" "$*"; }

archive= deb= base= bare=no keep=no
while [ $# -gt 0 ]; do
  case $1 in
    --archive | --deb | --base)
      [ $# -ge 2 ] || fail "$1 needs a value"
      path=$(realpath -e -- "$2") || fail "$2 is not there"
      case $1 in --archive) archive=$path ;; --deb) deb=$path ;; --base) base=$path ;; esac
      shift 2
      ;;
    --bare) bare=yes; shift ;;
    --keep) keep=yes; shift ;;
    --help | -h) help; exit 0 ;;
    *) fail "unknown: $1 (--help lists the options)" ;;
  esac
done

started_ms=$(($(date +%s%N) / 1000000))
[ "$(id -u)" = 0 ] || fail "only root can chroot"
unshare --mount --pid --net --fork true 2>/dev/null || fail "unshare is not allowed here"
for tool in ip chroot; do command -v $tool >/dev/null || fail "$tool is not installed (Debian: apt-get install iproute2 coreutils)"; done
if [ $bare = no ] && [ -z "$base" ] && ! command -v debootstrap >/dev/null; then
  fail "debootstrap is not installed; install it, or use --base or --bare"
fi

work=$(mktemp -d /tmp/quorate-release.XXXXXX)
clean() { if [ $keep = yes ]; then echo "kept $work"; else rm -rf --one-file-system "$work"; fi; }
trap clean EXIT

if [ -z "$archive" ] && [ -z "$deb" ]; then
  platform=linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
  (cd "$(dirname "$0")/.." && ./dev release --platform "$platform" --out "$work/dist")
  archive=$(echo "$work"/dist/*.tar.gz)
  deb=$(echo "$work"/dist/*.deb)
fi

# A program of this machine with the libraries that it needs.
bring() { # ROOT PROGRAM...
  local root=$1 path file
  shift
  for path in "$@"; do
    for file in $(readlink -f "$path") $(ldd "$path" | grep -o '/[^ ]*'); do
      [ -e "$root$file" ] || install -D "$(readlink -f "$file")" "$root$file"
    done
    [ -e "$root$path" ] || { mkdir -p "$root$(dirname "$path")"; cp -L "$path" "$root$path"; }
  done
}

bare_root() { # ROOT
  local tools tool
  mkdir -p "$1"/{etc,proc,dev,root,tmp,usr/bin,usr/sbin,usr/lib,usr/lib64,opt,var/lib}
  ln -s usr/bin usr/sbin usr/lib usr/lib64 "$1"
  local names="sh ls cat cp mv rm rmdir ln mkdir mktemp chmod chown readlink dirname basename id uname tr sed grep tar sleep date env"
  for tool in $names; do
    tools="${tools:-} $(command -v $tool)"
  done
  bring "$1" $tools
  # What Node's program is linked with; libatomic is left out, as it is on a minimal system.
  for tool in libstdc++.so.6 libgcc_s.so.1 libm.so.6 libdl.so.2 libpthread.so.0 libc.so.6; do
    file=$(ldconfig -p | sed -n "s#^\s*$tool .*x86-64.*=> ##p; s#^\s*$tool .*AArch64.*=> ##p" | awk 'NR == 1')
    [ -e "$1$file" ] || install -D "$(readlink -f "$file")" "$1$file"
  done
  echo 'root:x:0:0:root:/root:/bin/sh' >"$1/etc/passwd"
}

make_root() { # ROOT
  if [ $bare = yes ]; then
    bare_root "$1"
  else
    if [ -z "$base" ]; then
      base=$work/base
      if ! debootstrap --variant=minbase stable "$base" >"$work/debootstrap.log" 2>&1; then
        tail -5 "$work/debootstrap.log"
        fail "debootstrap failed"
      fi
      say "debootstrap made $base"
    fi
    cp -a "$base" "$1"
    rm -rf "${1:?}"/tmp/*
  fi
  mkdir -p "$1/tmp"
  [ -e "$1/dev/null" ] || mknod -m 666 "$1/dev/null" c 1 3
  [ -e "$1/dev/urandom" ] || mknod -m 666 "$1/dev/urandom" c 1 9
}

# Runs a script in the root: own mounts, processes and network (nothing but the loopback).
inside() { # ROOT SCRIPT
  unshare --mount --pid --net --fork --kill-child sh -ec '
    ip link set lo up
    mount -t proc proc "$1/proc"
    exec chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh -eu -c "$2"
  ' sh "$1" "$2"
}

# Three members: write, read, lose one, read on, write on, stop. The same for both ways of
# installing.
use='
  if command -v node >/dev/null; then echo "there is a node on this root: $(command -v node)"; exit 1; fi
  before=$(date +%s%N)
  quorate-cluster start
  echo "three members are healthy after $((($(date +%s%N) - before) / 1000000)) ms"
  certs=$HOME/.quorate/certs
  export ETCDCTL_CACERT=$certs/ca.pem ETCDCTL_CERT=$certs/client.pem ETCDCTL_KEY=$certs/client-key.pem
  ctl() { quoratectl --endpoints=127.0.0.1:3379,127.0.0.1:4379,127.0.0.1:5379 "$@"; }
  expect() { [ "$1" = "$2" ] || { echo "expected $1, got $2"; exit 1; }; }
  ctl put greeting hello
  expect hello "$(ctl get greeting --print-value-only)"
  before=$(date +%s%N)
  ctl get greeting >/dev/null
  echo "quoratectl get: $((($(date +%s%N) - before) / 1000000)) ms"
  pid=$(cat $HOME/.quorate/pids/infra1.pid)
  kill -9 $pid
  # If it led, the others elect a new leader first; a read waits for that.
  expect hello "$(ctl --command-timeout=60s get greeting --print-value-only)"
  expect OK "$(ctl --command-timeout=60s put greeting again)"
  expect again "$(ctl --command-timeout=60s get greeting --print-value-only)"
  echo "one of three was killed (pid $pid): reads and writes go on"
  quoratectl --endpoints=127.0.0.1:3379 snapshot save $HOME/backup.db >/dev/null
  quorateutl snapshot status $HOME/backup.db
  quorate-cluster start >/dev/null
  expect again "$(ctl get greeting --print-value-only)"
  quorate-cluster stop
  quorate-cluster clean >/dev/null
'

if [ -n "$archive" ]; then
  root=$work/archive-root
  make_root "$root"
  tar -xzf "$archive" -C "$root/tmp"
  name=$(basename "$archive" .tar.gz)
  say "a clean root with $(basename "$archive") ($(du -k "$archive" | cut -f1) KiB; $(du -sk "$root/tmp/$name" | cut -f1) KiB unpacked)"
  system=$([ $bare = yes ] && echo --no-system || true)
  inside "$root" "
    /tmp/$name/install.sh $system
    /tmp/$name/install.sh $system >/dev/null
    rm -rf /tmp/$name
    $use
    /opt/quorate/install.sh --uninstall $system
    if [ -e /opt/quorate ] || [ -h /usr/local/bin/quorate ]; then echo 'something is left'; exit 1; fi
  "
  say "the archive works"
fi

if [ -n "$deb" ] && [ $bare = no ]; then
  root=$work/deb-root
  make_root "$root"
  cp "$deb" "$root/tmp/quorate.deb"
  # The only dependency that a minimal Debian does not have; apt would bring it.
  (cd "$root/tmp" && apt-get download -q libatomic1 >/dev/null)
  say "a clean root with $(basename "$deb")"
  inside "$root" "
    export DEBIAN_FRONTEND=noninteractive
    dpkg -i /tmp/libatomic1_*.deb /tmp/quorate.deb
    dpkg -V quorate
    [ \"\$(ls -ld /var/lib/quorate | cut -c1-10)\" = drwx------ ]
    export HOME=/var/lib/quorate
    setpriv --reuid=quorate --regid=quorate --init-groups sh -eu -c '$use'
    dpkg -i /tmp/quorate.deb >/dev/null
    dpkg -r quorate
    if [ -e /usr/bin/quorate ]; then echo 'something is left'; exit 1; fi
    dpkg -P quorate
  "
  say "the Debian package works"
fi
