#!/usr/bin/env bash
# Makes, checks and rotates a directory of certificates, also under a running cluster.
set -euo pipefail
caller=$PWD
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
# Directories are named from where the caller stands.
script="$PWD/scripts/certs/main.ts"
cd "$caller"
exec node "$script" "$@"
