#!/usr/bin/env bash
# Stands for systemctl where systemd does not run: reads a unit and starts what it says, as its
# user, with its variables and directories.
set -euo pipefail

command=${1:?}
shift
unit=
for word in "$@"; do
  case $word in --*) ;; *) unit=${word%.service} ;; esac
done

file_of() {
  local directory
  for directory in /etc/systemd/system /usr/lib/systemd/system; do
    if [ -e "$directory/$1" ]; then echo "$directory/$1"; return; fi
  done
  echo "Unit $1 could not be found." >&2
  return 1
}

setting() { # FILE NAME: the last value
  sed -n "s/^$2=//p" "$1" | tail -1
}

# Runs one of a unit's commands in the place of this shell.
as_unit() { # FILE COMMAND
  local file=$1 user directory line variables=()
  user=$(setting "$file" User)
  while read -r line; do variables+=("$line"); done < <(sed -n 's/^Environment=//p' "$file")
  while read -r line; do
    local path=${line#-}
    if [ ! -e "$path" ] && [ "$line" != "$path" ]; then continue; fi
    # systemd reads it as root.
    while read -r line; do variables+=("$line"); done < <(grep -E '^[A-Za-z_]+=' "$path")
  done < <(sed -n 's/^EnvironmentFile=//p' "$file")
  directory=$(setting "$file" StateDirectory)
  if [ -n "$directory" ]; then
    install -d -o "$user" -g "$(setting "$file" Group)" -m "$(setting "$file" StateDirectoryMode)" "/var/lib/$directory"
    variables+=("STATE_DIRECTORY=/var/lib/$directory")
  fi
  umask "$(setting "$file" UMask)"
  cd "$(setting "$file" WorkingDirectory | grep . || echo /)"
  eval "exec setpriv --reuid=$user --regid=$(setting "$file" Group) --clear-groups --no-new-privs --bounding-set=-all \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \"\${variables[@]}\" ${2//%%/%}"
}

start() {
  local file type
  case $unit in *.timer) file_of "$unit" >/dev/null; return ;; esac
  file=$(file_of "$unit.service")
  type=$(setting "$file" Type)
  if [ "$type" = oneshot ]; then
    (as_unit "$file" "$(setting "$file" ExecStart)")
    local after
    after=$(setting "$file" ExecStartPost)
    if [ -n "$after" ]; then (as_unit "$file" "$after"); fi
    return
  fi
  (as_unit "$file" "$(setting "$file" ExecStart)") >"/run/$unit.log" 2>&1 &
  echo $! >"/run/$unit.pid"
}

case $command in
  enable | start) start ;;
  stop) kill "$(cat "/run/$unit.pid")" ;;
  reload) kill -HUP "$(cat "/run/$unit.pid")" ;;
  is-active) [ -e "/run/$unit.pid" ] && kill -0 "$(cat "/run/$unit.pid")" ;;
  daemon-reload) ;;
  *) echo "systemctl $command is not known here" >&2; exit 1 ;;
esac
