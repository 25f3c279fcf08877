#!/usr/bin/env bash
# Stops the local cluster and starts it again on the same data.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
exec node scripts/cluster.ts restart "$@"
