#!/usr/bin/env bash
# Restarts the members of the local cluster one after the other; --at-once: all at the same time.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
quorate_bundle "$@"
exec node scripts/cluster.ts restart "$@"
