#!/usr/bin/env bash
# Runs etcd's own end-to-end tests against Quorate: scripts/etcd-e2e.sh --help
set -euo pipefail

help() {
  cat <<'HELP'
usage: scripts/etcd-e2e.sh --source DIRECTORY [OPTIONS]

Builds the end-to-end tests of etcd's source and runs them one by one, each with members of Quorate in the place of etcd's. Go is needed
(as $GO or on the PATH). Nothing is written to the source. Tests that are known not to apply are left out: scripts/etcd-e2e.txt says why.

  --source DIRECTORY    a checkout of etcd 3.7
  --package NAME     common (every kind of cluster by etcdctl, the default) or e2e (the programs one by one)
  --tools NAME       etcd (etcdctl and etcdutl of the source, the default) or quorate (quoratectl and quorateutl in their place)
  --programs DIRECTORY  where quorate, quoratectl and quorateutl are, such as the bin directory of
                     an unpacked release (default: those of this repository)
  --run PATTERN      only tests whose whole name matches this regular expression
  --all              those of scripts/etcd-e2e.txt, too
  --patience N       multiplies the tests' own limits of time, for machines that are slow or have other work (default: 1)
  --logs DIRECTORY      keeps what each test printed, as NAME.log (default: only that of failed tests is shown)
  --results FILE     appends a line for each test: package, name, result, seconds, subtests that passed, failed and were skipped
  --list             prints the names and runs nothing
  --help             this text

The tests take ports from 20000 on. Where a network of their own can be made (unshare), they run in one.
HELP
}

fail() { echo "etcd-e2e.sh: $*" >&2; exit 1; }

source= package=common tools=etcd pattern='.*' all= patience=1 logs= list= programs= results=
while [ $# -gt 0 ]; do
  case $1 in
    --source | --package | --tools | --programs | --run | --patience | --logs | --results)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in --run) pattern=$2 ;; *) declare "${1#--}=$2" ;; esac
      shift 2
      ;;
    --all | --list) declare "${1#--}=yes"; shift ;;
    --help | -h) help; exit 0 ;;
    *) fail "unknown: $1 (--help lists the options)" ;;
  esac
done
source_dir=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/etcd-checkout.sh
source "$source_dir/etcd-checkout.sh"
case $package in common | e2e) ;; *) fail "--package is common or e2e, not $package" ;; esac
case $tools in etcd | quorate) ;; *) fail "--tools is etcd or quorate, not $tools" ;; esac
find_checkout "$patience" "tests/$package" etcd
tests=$source/tests/$package
[ -z "$results" ] || results=$(realpath "$results")

work=$(mktemp -d "${TMPDIR:-/tmp}/quorate-etcd-e2e.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/tmp" "$work/patient"
[ -n "$logs" ] || logs=$work/logs
mkdir -p "$logs"
logs=$(realpath "$logs")

# The path of one of our programs: those of a release have no suffix.
program() { # NAME
  if [ -z "$programs" ]; then echo "$here/bin/$1.js"; else realpath "$programs/$1"; fi
}

find_version "$(program quorate)"
flags="-X go.etcd.io/etcd/api/v3/version.Version=$version"
ln -s "$(program quorate)" "$work/bin/etcd"
if [ "$tools" = quorate ]; then
  ln -s "$(program quoratectl)" "$work/bin/etcdctl"
  ln -s "$(program quorateutl)" "$work/bin/etcdutl"
else
  for tool in etcdctl etcdutl; do "$go" build -C "$source/$tool" -ldflags "$flags" -o "$work/bin/$tool" .; done
fi

# Longer limits: the files are compiled from changed copies, the source stays as it is.
overlay=$work/overlay.json
printf '{"Replace":{' > "$overlay"
comma=
if [ "$patience" != 1 ]; then
  for file in "$tests"/*_test.go; do
    sed -E -e "s/(WithTimeout\((t\.Context\(\)|context\.Background\(\)), )([0-9])/\1$patience*\3/" \
      -e "s/timeout = (2\*cx\.dialTimeout \+ time\.Second|30 \* time\.Second)/timeout = $patience * (\1)/" \
      -e "s/(CloseWithTimeout\([a-z]+, )([^)]+)/\1$patience*(\2)/" \
      -e "s/time\.After\(([^()]+)\)/time.After($patience * (\1))/" \
      -e "s/time\.Sleep\(100 \* time\.Millisecond\)/time.Sleep($patience * 100 * time.Millisecond)/" \
      -e "s/watchTimeout := 1 \* time\.Second/watchTimeout := $patience * time.Second/" \
      "$file" > "$work/patient/${file##*/}"
    printf '%s"%s":"%s"' "$comma" "$file" "$work/patient/${file##*/}" >> "$overlay"
    comma=,
  done
fi
printf '}}\n' >> "$overlay"
"$go" test -C "$tests" -c -tags e2e -overlay "$overlay" -ldflags "$flags" -o "$work/tests" .

left_out=$here/scripts/etcd-e2e.txt
names=$("$work/tests" -test.list . | grep -Ex -- "$pattern" || true)
[ -n "$names" ] || fail "no test of $package is called $pattern"
if [ -n "$list" ]; then echo "$names"; exit 0; fi

network=()
if unshare -rn true 2> /dev/null; then network=(unshare -rn sh -c 'ip link set lo up; exec "$@"' sh); fi
# The tests' programs run on a terminal, where a member of Quorate logs text and etcd JSON.
export ETCD_LOG_FORMAT=json
cd "$tests"
passed=0 skipped=0 left=0 failed=()
note() { # RESULT NAME SECONDS
  [ -n "$results" ] || return 0
  local log=$logs/$2.log
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$package" "$2" "$1" "$3" "$(count PASS "$log")" "$(count FAIL "$log")" \
    "$(count SKIP "$log")" >> "$results"
}
count() { # RESULT LOG
  grep -c "^ *--- $1: " "$2" || true
}
for name in $names; do
  if [ -z "$all" ] && why=$(awk -v name="$name" -v tools="$tools" '
    /^[^#]/ && name ~ "^(" $1 ")$" && ($2 == "any" || $2 == tools) { sub(/^[^ ]+ +[^ ]+ +/, ""); print; found = 1; exit }
    END { exit !found }' "$left_out"); then
    echo "left out  $name: $why"
    left=$((left + 1))
    continue
  fi
  started=$(date +%s)
  limit=$((300 * patience))
  status=0
  EXPECT_DEBUG=true TMPDIR=$work/tmp timeout -k 5 $((limit + 10)) "${network[@]}" \
    "$work/tests" -test.v -test.timeout ${limit}s -test.run "^$name\$" -bin-dir "$work/bin" > "$logs/$name.log" 2>&1 || status=$?
  # The search for threads behind the last test is for a run of all: alone, a test that does not
  # wait for the end of its members fails in it with etcd's members, too.
  if [ $status = 1 ] && grep -qx PASS "$logs/$name.log" && grep -q "^Unexpected goroutines" "$logs/$name.log"; then status=0; fi
  if [ $status = 0 ]; then
    seconds=$(($(date +%s) - started))
    if grep -q "^--- SKIP: $name " "$logs/$name.log"; then
      echo "skipped   $name: $(grep -A 1 -e '--- SKIP' "$logs/$name.log" | tail -n 1 | sed 's/^ *//')"
      note skipped "$name" $seconds
      skipped=$((skipped + 1))
    else
      echo "passed    $name ($seconds s)"
      note passed "$name" $seconds
      passed=$((passed + 1))
    fi
  else
    seconds=$(($(date +%s) - started))
    note failed "$name" $seconds
    echo "FAILED    $name ($seconds s); the end of $logs/$name.log:"
    tail -n 40 "$logs/$name.log" | cut -c 1-300 | sed 's/^/    /'
    failed+=("$name")
  fi
done
echo "$passed passed, ${#failed[@]} failed, $skipped skipped by themselves, $left left out (scripts/etcd-e2e.txt)"
[ ${#failed[@]} = 0 ] || fail "failed: ${failed[*]}"
