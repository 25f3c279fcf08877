#!/bin/sh
# Installs Quorate from the unpacked archive that this file lies in. Needs nothing but a shell and
# the usual small tools; no network.
set -eu

prefix=/opt/quorate
bin=/usr/local/bin
share=/usr/local/share
etc=/etc/quorate
units=/etc/systemd/system
user=quorate
action=install
system=auto

help() {
  cat <<'HELP'
use: ./install.sh [OPTIONS]

Installs the programs of this archive: quorate, quoratectl, quorateutl, quorate-cluster and quorate-certs. Run again, it brings an
installation to this archive's version; settings and data stay. As root it also makes the user quorate, installs the systemd units
(without starting them) and examples of their settings in /etc/quorate.

  --prefix DIRECTORY   where everything goes (default: /opt/quorate)
  --bin DIRECTORY      where the links to the programs go (default: /usr/local/bin)
  --share DIRECTORY    where man pages and completions go (default: /usr/local/share)
  --no-system       no user, no units, no settings (the default for others than root)
  --uninstall       removes what was installed; keeps settings, data and the user, and says where they are
  --help            this text
HELP
}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --prefix | --bin | --share)
      [ $# -ge 2 ] && [ -n "$2" ] || fail "$1 needs a directory"
      case $2 in /*) directory=$2 ;; *) directory=$PWD/$2 ;; esac
      directory=${directory%/}
      case $1 in --prefix) prefix=$directory ;; --bin) bin=$directory ;; --share) share=$directory ;; esac
      shift 2
      ;;
    --no-system) system=no; shift ;;
    --uninstall) action=uninstall; shift ;;
    --help | -h) help; exit 0 ;;
    *) fail "unknown: $1 (--help lists the options)" ;;
  esac
done

here=$(cd -P "$(dirname "$0")" && pwd)
if [ "$system" = auto ]; then
  system=no
  if [ "$(id -u)" = 0 ] && [ "$(uname -s)" = Linux ]; then system=yes; fi
fi
has_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null; }

# Removes the links in a directory that lead into the prefix.
unlink_ours() {
  [ -d "$1" ] || return 0
  for link in "$1"/*; do
    [ -h "$link" ] || continue
    case $(readlink "$link") in "$prefix"/*) rm -f "$link" ;; esac
  done
}

unlink_all() {
  unlink_ours "$bin"
  for directory in man/man1 man/man8 bash-completion/completions zsh/vendor-completions zsh/site-functions fish/vendor_completions.d; do
    unlink_ours "$share/$directory"
  done
}

uninstall() {
  case $here in "$prefix" | "$prefix"/*) cd / ;; esac
  [ -f "$prefix/VERSION" ] || fail "nothing of ours is installed in $prefix (--prefix names another directory)"
  if [ "$system" = yes ]; then
    if has_systemd; then systemctl disable --now --quiet quorate-backup.timer quorate.service 2>/dev/null || true; fi
    for unit in quorate.service quorate-backup.service quorate-backup.timer; do rm -f "$units/$unit"; done
    if has_systemd; then systemctl daemon-reload; fi
  fi
  unlink_all
  version=$(cat "$prefix/VERSION")
  rm -rf "$prefix"
  echo "removed Quorate $version from $prefix"
  for kept in "$etc" /var/lib/quorate /var/lib/quorate-backup; do
    if [ "$system" = yes ] && [ -d "$kept" ]; then echo "kept $kept"; fi
  done
}

# Compares the archive's files with their sums, where the tool for that is there.
verify() {
  [ -f "$here/SHA256SUMS" ] || fail "$here is not an unpacked archive: SHA256SUMS is missing"
  command -v sha256sum >/dev/null || return 0
  (cd "$here" && sha256sum -c SHA256SUMS >/dev/null 2>&1) ||
    fail "files of $here are not what SHA256SUMS says; unpack the archive again ((cd $here && sha256sum -c SHA256SUMS) names them)"
}

copy_files() {
  mkdir -p "$(dirname "$prefix")"
  if [ -e "$prefix" ] && [ ! -f "$prefix/VERSION" ] && [ -n "$(ls -A "$prefix")" ]; then
    fail "$prefix is there and not ours; name another directory with --prefix"
  fi
  # Beside the old one first, so that an installation is whole or not there.
  rm -rf "$prefix.new"
  mkdir "$prefix.new"
  (cd "$here" && tar -cf - .) | (cd "$prefix.new" && tar -xf -)
  if [ "$(id -u)" = 0 ]; then chown -R 0:0 "$prefix.new"; fi
  chmod -R go-w "$prefix.new"
  chmod 755 "$prefix.new"
  rm -rf "$prefix.old"
  if [ -e "$prefix" ]; then mv "$prefix" "$prefix.old"; fi
  mv "$prefix.new" "$prefix"
  rm -rf "$prefix.old"
}

link_into() { # SOURCE DIRECTORY: links all files of a directory of the prefix
  [ -d "$1" ] || return 0
  mkdir -p "$2"
  for path in "$1"/*; do
    target=$2/$(basename "$path")
    if [ -e "$target" ] && [ ! -h "$target" ]; then fail "$target is there and not ours; move it away or choose another directory"; fi
    ln -sf "$path" "$target"
  done
}

install_system() {
  if ! id "$user" >/dev/null 2>&1; then
    nologin=/usr/sbin/nologin
    [ -x "$nologin" ] || nologin=/bin/false
    if command -v useradd >/dev/null; then
      useradd --system --user-group --home-dir /var/lib/quorate --no-create-home --shell "$nologin" "$user"
    elif command -v adduser >/dev/null; then
      adduser -S -D -H -h /var/lib/quorate -s "$nologin" "$user"
    else
      fail "there is neither useradd nor adduser to make the user $user with; make it, or use --no-system"
    fi
  fi
  mkdir -p /var/lib/quorate "$etc" "$units"
  chown "$user:" /var/lib/quorate
  chmod 700 /var/lib/quorate
  for path in "$here"/systemd/*; do
    name=$(basename "$path")
    case $name in
      *.env)
        # Variables may hold passwords; systemd reads the file as root.
        if [ -e "$etc/$name" ]; then
          echo "kept $etc/$name"
          chmod o= "$etc/$name"
        else
          (umask 077 && cp "$path" "$etc/$name")
          chmod 600 "$etc/$name"
        fi
        ;;
      *)
        sed "s#/opt/quorate#$prefix#g" "$path" >"$units/$name"
        chmod 644 "$units/$name"
        ;;
    esac
  done
  if has_systemd; then systemctl daemon-reload; fi
}

if [ "$action" = uninstall ]; then
  uninstall
  exit 0
fi

verify
was=
if [ -f "$prefix/VERSION" ]; then was=$(cat "$prefix/VERSION"); fi
if [ "$here" = "$prefix" ]; then
  echo "$prefix is where this archive lies; only links and the system are set up"
else
  copy_files
fi
# Links of an earlier version to what this one does not have must not stay.
unlink_all
link_into "$prefix/bin" "$bin"
link_into "$prefix/share/man/man1" "$share/man/man1"
link_into "$prefix/share/man/man8" "$share/man/man8"
link_into "$prefix/share/bash-completion/completions" "$share/bash-completion/completions"
link_into "$prefix/share/zsh/vendor-completions" "$share/zsh/vendor-completions"
link_into "$prefix/share/fish/vendor_completions.d" "$share/fish/vendor_completions.d"
here=$prefix
if [ "$system" = yes ]; then install_system; fi

echo "installed Quorate $(cat "$prefix/VERSION") in $prefix${was:+, in place of $was}"
echo "its programs are in $bin: $(cd "$prefix/bin" && echo *)"
if [ "$system" = yes ]; then
  echo "A member for this host ($prefix/docs/operate/install.md has all steps):"
  echo "  1. certificates, once for all hosts: quorate-certs create --dir $etc/pki --owner $user --hosts ADDRESSES,127.0.0.1,localhost"
  echo "  2. settings: $etc/quorate.env"
  echo "  3. start: systemctl enable --now quorate"
  if has_systemd && systemctl is-active --quiet quorate.service; then
    echo "The member that runs is still the old one: systemctl restart quorate"
  fi
fi
echo "Three members to try, on this machine: quorate-cluster start"
