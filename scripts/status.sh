#!/usr/bin/env bash
# Shows the members of the local cluster; the exit code is 0 if all are healthy.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
exec node scripts/cluster.ts status "$@"
