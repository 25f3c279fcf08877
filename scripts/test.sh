#!/usr/bin/env bash
# Runs every test, installing what is missing first. Arguments go to ./dev test:
# scripts/test.sh --name snapshot
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
# Variables of the shell, as .quorate/env sets them, are for other members than the tests'.
for name in "${!ETCDCTL_@}" "${!ETCD_@}"; do
  unset "$name"
done
exec ./dev test "$@"
