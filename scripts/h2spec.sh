#!/usr/bin/env bash
# Runs h2spec's generic, HTTP/2 and HPACK cases, strict ones too, against the client port's engine,
# in plain text and over TLS. It is looked for as $H2SPEC or on the PATH; to build it outside of the
# repository:
#   GOBIN=~/bin go install github.com/summerwind/h2spec/cmd/h2spec@latest
# Arguments go to h2spec: scripts/h2spec.sh http2/6.9
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
h2spec=${H2SPEC:-$(command -v h2spec || true)}
if [ -z "$h2spec" ]; then
  echo "h2spec is not installed: nothing was run"
  exit 0
fi
ports=$(mktemp)
node scripts/h2spec-server.ts > "$ports" &
server=$!
trap 'kill "$server" 2> /dev/null; rm -f "$ports"' EXIT
until [ -s "$ports" ]; do
  kill -0 "$server"
  sleep 0.1
done
read -r plain secure < "$ports"
"$h2spec" -h 127.0.0.1 -p "$plain" --strict --timeout 5 "$@"
"$h2spec" -h 127.0.0.1 -p "$secure" --tls --insecure --strict --timeout 5 "$@"
