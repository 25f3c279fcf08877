#!/usr/bin/env bash
# Makes the archives and Debian packages of a release: scripts/release.sh --help
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
exec node scripts/release.ts "$@"
