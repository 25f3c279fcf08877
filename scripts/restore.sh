#!/usr/bin/env bash
# Saves the local cluster, takes its data away, restores all members from the file, and reads back
# (--help for more).
set -euo pipefail
if [ "${1:-}" = "--help" ] || [ "${1:-}" = "-h" ]; then
  cat <<'HELP'
usage: scripts/restore.sh [SNAPSHOT]

Does with the local cluster of three members what an operator does after a disaster:
  1. saves a snapshot of the running cluster to .quorate/snapshots (not if a SNAPSHOT file of Quorate or etcd is named)
  2. stops all members and moves their data aside
  3. restores every member from the file (quorateutl snapshot restore)
  4. starts them and compares the hash of all keys on each with that before
If anything goes wrong the old data are put back. Writes after step 1 are lost, as they would be in a disaster.
HELP
  exit 0
fi
# A file is named from where the caller stands.
if [ $# -eq 1 ]; then set -- "$(realpath -- "$1")"; fi
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
exec node scripts/cluster.ts restore "$@"
