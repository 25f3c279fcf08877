#!/usr/bin/env bash
# Runs every test, installing what is missing first. Arguments go to Node's test runner:
# scripts/test.sh --test-name-pattern=snapshot
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
exec npm test -- "$@"
