#!/usr/bin/env bash
# Stops the local cluster: SIGTERM to each member, then waits for them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
exec node scripts/cluster.ts stop "$@"
