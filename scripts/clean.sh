#!/usr/bin/env bash
# Stops the local cluster and removes its data, logs and certificates (--keep-certs keeps those).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
exec node scripts/cluster.ts clean "$@"
