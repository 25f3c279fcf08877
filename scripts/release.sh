#!/usr/bin/env bash
# Makes the archives and Debian packages of a release.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
exec node scripts/release.ts "$@"
