#!/usr/bin/env bash
# Runs a benchmark beside etcd, if that is installed; arguments go to it: scripts/bench.sh [watch |
# space | startup | leases] [OPTIONS]
set -euo pipefail
if [ "${1:-}" = "--help" ] || [ "${1:-}" = "-h" ]; then
  cat <<'HELP'
usage: scripts/bench.sh [NAME] [OPTIONS]

Runs one of the benchmarks, installing what is missing first. Without a name it is the one of requests.
  (none)     puts, gets, transactions and leases of one and of three members, beside etcd
  watch      many watchers
  space      compaction and defragmentation
  startup    how long the tools take to start
  leases     a soak of leases
"scripts/bench.sh NAME --help" lists the options.
HELP
  exit 0
fi
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
case "${1:-}" in
  watch | space | startup | leases) name=$1; shift; exec node "bench/$name.ts" "$@" ;;
  *) exec node bench/main.ts "$@" ;;
esac
