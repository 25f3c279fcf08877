#!/usr/bin/env bash
# Starts the local cluster of three members, infra0 to infra2, with mutual TLS; installs what is
# missing first.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
quorate_bundle "$@"
exec node scripts/cluster.ts start "$@"
