#!/usr/bin/env bash
# Runs etcd's own robustness tests against Quorate: scripts/etcd-robustness.sh --help
set -euo pipefail

help() {
  cat <<'HELP'
usage: scripts/etcd-robustness.sh --source DIRECTORY [OPTIONS]

Builds the robustness tests of etcd's source (tests/robustness) and runs their scenarios one by one, with members of Quorate in the place of
etcd's: clients write, read, compact, lease and watch while members are killed or replaced, and their network is cut, slowed or lossy. Then
the tests judge what the clients saw, together with the members' logs as etcd's code reads them. Go is needed (as $GO or on the PATH).
Nothing is written to the source. Scenarios whose fault is a failpoint inside etcd's own program (gofail) are left out.

  --source DIRECTORY    a checkout of etcd 3.7
  --run PATTERN      only scenarios whose whole name matches this regular expression
  --fault NAME       draws no faults for those scenarios that draw one, and takes this one: KillFailpoint, MemberReplace,
                     BlackholePeerNetwork, BlackholeUntilSnapshot, DelayPeerNetwork or DropPeerNetwork (all but the first: three members)
  --auth             the clients are users, whose roles are enforced, while other users, roles, permissions and passwords change, and guests
                     try to read what they may not; without BlackholeUntilSnapshot, whose client could not log in
  --rounds N         runs each scenario N times (default: 1); faults and traffic are random, so each round is another history
  --minutes N        begins no further scenario after N minutes (default: no limit but that of each scenario, 10 minutes times --patience)
  --patience N       multiplies the tests' own limits of time, and divides the requests a second that they demand, for machines that are
                     slow or have other work (default: 1)
  --results DIRECTORY   keeps each scenario's output as NAME.log, and the history and data of failed ones (default: the end of the output of
                     failed ones is shown)
  --list             prints the names and runs nothing
  --help             this text

The last line counts the histories that were judged correct. The exit code is 0 if all scenarios that ran passed, else 1.
The tests take ports from 20000 on. Where a network of their own can be made (unshare), they run in one.
HELP
}

fail() { echo "etcd-robustness.sh: $*" >&2; exit 1; }

source= pattern='.*' fault= rounds=1 minutes= patience=1 results= list= auth=
while [ $# -gt 0 ]; do
  case $1 in
    --source | --fault | --rounds | --minutes | --patience | --results | --run)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in --run) pattern=$2 ;; *) declare "${1#--}=$2" ;; esac
      shift 2
      ;;
    --list) list=yes; shift ;;
    --auth) auth=yes; shift ;;
    --help | -h) help; exit 0 ;;
    *) fail "unknown: $1 (--help lists the options)" ;;
  esac
done
source_dir=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/etcd-checkout.sh
source "$source_dir/etcd-checkout.sh"
find_checkout "$patience" tests/robustness/scenarios "etcd 3.7"
tests=$source/tests/robustness
[[ $rounds =~ ^[1-9][0-9]{0,3}$ ]] || fail "--rounds is a whole number from 1 to 9999, not $rounds"
[[ -z $minutes || $minutes =~ ^[1-9][0-9]{0,3}$ ]] || fail "--minutes is a whole number from 1 to 9999, not $minutes"
case $fault in
  '' | KillFailpoint | MemberReplace | BlackholePeerNetwork | BlackholeUntilSnapshot | DelayPeerNetwork | DropPeerNetwork) ;;
  *) fail "--fault is one of those that --help names, not $fault" ;;
esac
[ -z "$auth" ] || [ "$fault" != BlackholeUntilSnapshot ] || fail "--auth runs without BlackholeUntilSnapshot"
work=$(mktemp -d "${TMPDIR:-/tmp}/quorate-etcd-robustness.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/tmp" "$work/changed"
[ -n "$results" ] || results=$work/results
mkdir -p "$results"
results=$(realpath "$results")

find_version "$here/bin/quorate.js"
ln -s "$here/bin/quorate.js" "$work/bin/etcd"

# Some files are compiled from changed copies, the source stays as it is.
overlay=$work/overlay.json
printf '{"Replace":{' > "$overlay"
changes=0
change() { # FILE (of tests/robustness) SED-EXPRESSION...: each expression must change something
  local file=$tests/$1 copy=$work/changed/$changes.go next=$work/changed/next.go expression
  shift
  [ -f "$file" ] || fail "$file is not there: is $source a checkout of etcd 3.7?"
  file=$(realpath "$file")
  cp "$file" "$copy"
  for expression in "$@"; do
    sed -E "$expression" "$copy" > "$next"
    ! cmp -s "$copy" "$next" || fail "$file is not as in etcd 3.7: nothing matches $expression"
    mv "$next" "$copy"
  done
  printf '"%s":"%s",' "$file" "$copy" >> "$overlay"
  changes=$((changes + 1))
}

# Random faults are drawn from those that need no failpoint; else the tests skip a scenario whose
# member has none.
change scenarios/scenarios.go '/^func Exploratory/,/^}/s/WithGoFailEnabled\(true\)/WithGoFailEnabled(false)/'
# The proxy between members stops accepting after 16 failed dials in its life, because no reader
# takes its errors: that is a member that takes some seconds to start. Then no member reaches that
# one any more, and the test waits in vain.
change ../../pkg/proxy/server.go 's/make\(chan error, 16\)/make(chan error, 1<<16)/'
faults=() main=() own=$here/scripts/etcd-robustness
[ -z "$fault" ] || faults+=("s/^var allFailpoints = \[\]Failpoint\{/var allFailpoints = []Failpoint{$fault}\n\nvar _ = []Failpoint{/")
if [ "$patience" != 1 ]; then
  change traffic/traffic.go "s/(RequestTimeout += )/\1$patience * /" "s/(WatchTimeout += )/\1$patience * /" \
    "s/(MinimalQPS: +)([0-9]+),/\1\2.0 \/ $patience,/"
  faults+=("s/(triggerTimeout = )/\1$patience * /")
  main+=("s/5\*time\.Minute/$patience*5*time.Minute/")
fi
if [ -n "$auth" ]; then
  # Each file that makes clients, once: as a user who may use all keys, or as root for what only
  # root may do.
  new='clientv3\.New\(clientv3\.Config\{'
  as() { echo "s/$new/clientv3.New(clientv3.Config{Username: \"$1\", Password: \"$1\",/"; }
  change client/client.go "$(as traffic)"
  change client/kvhash.go "$(as root)"
  change failpoint/cluster.go "$(as root)"
  faults+=("$(as root)" "s/ BlackholeUntilSnapshot,//")
  change report/wal.go 's/^(\tfor _, e := range entries \{)$/\tauth := authLog{}\n\1/' \
    '/for _, e := range entries/,/parseEntryNormal/s/e\.GetType\(\) != raftpb\.EntryNormal/& || auth.skips(e)/'
  # Each client logs in when it is made, and all are to be made before a member is killed.
  main+=("s/(WaitBeforeFailpoint = )/\\1$((2 + patience)) * /")
  main+=('s/(.*)NewEtcdProcessCluster\(/\t\t\ts.Cluster.ServerConfig.BcryptCost = 4\n&/'
    '/^func runScenario/,/^}/s/^\tg := errgroup.Group\{\}$/\tauth := startAuth(ctx, t, clus.EndpointsGRPC())\n&/'
    '/^func runScenario/,/^}/s/^\terr = client\.CheckEndOfTestHashKV/\tauth.end(lg)\n&/')
  printf '"%s":"%s","%s":"%s",' "$tests/quorate_auth_test.go" "$own/auth_test.go" \
    "$tests/report/quorate_auth_log.go" "$own/auth_log.go" >> "$overlay"
fi
[ ${#faults[@]} = 0 ] || change failpoint/failpoint.go "${faults[@]}"
[ ${#main[@]} = 0 ] || change main_test.go "${main[@]}"
cat > "$work/changed/names_test.go" <<'GO'
package robustness

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/tests/v3/robustness/scenarios"
)

// TestQuorateNames prints each scenario: its test, whether it needs failpoints, its name.
func TestQuorateNames(t *testing.T) {
	for _, s := range scenarios.Exploratory(t) {
		fmt.Println("name:", "TestRobustnessExploratory", s.Cluster.GoFailEnabled, s.Name)
	}
	for _, s := range scenarios.Regression(t) {
		fmt.Println("name:", "TestRobustnessRegression", s.Cluster.GoFailEnabled, s.Name)
	}
}
GO
printf '"%s":"%s"}}\n' "$tests/quorate_names_test.go" "$work/changed/names_test.go" >> "$overlay"
"$go" test -C "$tests" -c -overlay "$overlay" -ldflags "-X go.etcd.io/etcd/api/v3/version.Version=$version" -o "$work/tests" .

cd "$tests"
scenarios=$("$work/tests" -test.run '^TestQuorateNames$' -bin-dir "$work/bin" | sed -n 's/^name: //p')
[ -n "$scenarios" ] || fail "the tests name no scenario"
scenarios=$(awk -v pattern="^($pattern)\$" '$3 ~ pattern' <<< "$scenarios")
# Their fault is the one whose client could not log in.
[ -z "$auth" ] || scenarios=$(awk '$3 != "Issue20221" && $3 != "Issue15271"' <<< "$scenarios")
[ -n "$scenarios" ] || fail "no scenario is called $pattern (--list prints their names)"
if [ -n "$list" ]; then
  awk '{ print $3 ($2 == "true" ? "  (left out: needs failpoints in the program of etcd)" : "") }' <<< "$scenarios"
  exit 0
fi

network=()
if unshare -rn true 2> /dev/null; then network=(unshare -rn sh -c 'ip link set lo up; exec "$@"' sh); fi

passed=0 failed=() skipped=0 operations=0 ended=
limit=$((600 * patience))
# What the test logged of a figure, such as successes; 0 where it did not come so far.
figure() { sed -n "s/.*Reporting complete $2.*\"$3\": \([0-9]*\).*/\1/p" "$1" | tail -n 1 | grep . || echo 0; }

# A test passes, too, where it found no entries in the logs and so judged neither watches nor reads
# of the past: that is not enough here.
is_judged() {
  local what
  for what in Linearization "Watch validation" "Serializable validation"; do grep -q "$what success" "$1" || return 1; done
  ! grep -q 'Failed to read WAL' "$1"
}

run_one() { # TEST NAME ROUND
  local run=^$1\$/^${2//\//\$/^}\$ started=$SECONDS log=$results/${2//\//-}-$3.log code=0 happened count events
  EXPECT_DEBUG=true RESULTS_DIR=$results TMPDIR=$work/tmp timeout -k 5 $((limit + 10)) "${network[@]}" \
    "$work/tests" -test.v -test.timeout ${limit}s -test.run "$run" -bin-dir "$work/bin" > "$log" 2>&1 || code=$?
  happened=$(sed -n 's/.*Triggering failpoint.*"failpoint": "\([^"]*\)".*/\1/p' "$log" | head -n 1)
  count=$(figure "$log" traffic successes)
  events=$(figure "$log" watch events)
  [ -z "$auth" ] || happened+="; users changed $(figure "$log" auth changes) times, $(figure "$log" auth refused) calls refused"
  rm -rf "$work/tmp" && mkdir "$work/tmp"
  rmdir "$results"/TestRobustness* 2> /dev/null || true # what a test that passed leaves is empty
  if [ $code = 0 ] && grep -q '^ *--- SKIP' "$log"; then
    echo "skipped   $2: $(sed -n 's/^ *cluster.go:[0-9]*: //p' "$log" | tail -n 1)"
    skipped=$((skipped + 1))
  elif [ $code = 0 ] && [ "$count" -gt 0 ] && is_judged "$log"; then
    echo "passed    $2 ($happened; $count requests, $events watch events, $((SECONDS - started)) s)"
    passed=$((passed + 1)) operations=$((operations + count))
  else
    echo "FAILED    $2 ($happened; $((SECONDS - started)) s); of $log:"
    [ $code != 0 ] || echo "    the test passed, but has not judged all that there is to judge"
    { grep -Ev '	(INFO|DEBUG|WARN)	|^/|^=== ' "$log" || true; } | tail -n 25 | cut -c 1-300 | sed 's/^/    /'
    failed+=("$2")
  fi
}

while read -r test needs_failpoints name; do
  if [ "$needs_failpoints" = true ]; then
    echo "left out  $name: needs failpoints in the program of etcd"
    skipped=$((skipped + 1))
  fi
done < <(awk '{ print $1, $2, $3 }' <<< "$scenarios")
for ((round = 1; round <= rounds && ${#ended} == 0; round++)); do
  while read -r test needs_failpoints name <&3; do
    [ "$needs_failpoints" = false ] || continue
    if [ -n "$minutes" ] && [ $SECONDS -ge $((60 * minutes)) ]; then ended=" ($minutes minutes were over)"; break; fi
    run_one "$test" "$name" "$round"
  done 3<<< "$scenarios"
done
echo "$passed histories judged correct ($operations requests), ${#failed[@]} failed, $skipped scenarios left out$ended"
[ ${#failed[@]} = 0 ] || fail "failed: ${failed[*]}"
