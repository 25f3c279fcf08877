#!/usr/bin/env bash
# Installs the clients from PyPI that tests run where they are installed (Patroni, psycopg, etcd3gw)
# into a virtual environment outside of the repository. Needs Python 3 with venv; does nothing where
# the environment has what test/interop/clients.txt names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wanted=test/interop/clients.txt
if [ -n "${QUORATE_TEST_CLIENTS:-}" ]; then
  environment=$QUORATE_TEST_CLIENTS
elif [ "$(id -u)" = 0 ]; then
  # Not root's home: PostgreSQL's user starts Patroni from here.
  environment=/usr/local/lib/quorate-test-clients
else
  environment=$HOME/.cache/quorate-test-clients
fi
if cmp -s "$wanted" "$environment/installed.txt"; then exit 0; fi

python3=/usr/bin/python3
if [ ! -x "$python3" ]; then python3=python3; fi
"$python3" -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-input -r "$wanted"
cp "$wanted" "$environment/installed.txt"
echo "installed in $environment: $(grep -v '^#' "$wanted" | tr '\n' ' ')"
