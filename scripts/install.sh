# Sourced by the other scripts: goes to the repository's root, installs dependencies where they are
# missing or older than the lock file, and puts the pinned Node first on PATH. Needs npm (and so any
# Node from 20 on), nothing else.
script=$(realpath -- "$0")
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

quorate_install() {
  # A test goes by what is installed: an exchange would take the programs away from under the tests
  # that run beside it.
  if [ -n "${NODE_TEST_CONTEXT:-}" ]; then
    return
  fi
  if [ node_modules/.package-lock.json -nt package-lock.json ] && [ -x node_modules/.bin/node ]; then
    return
  fi
  case ${1:-} in
    --help | -h)
      # The script's own head; its program has more to say, and cannot run yet.
      sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$script"
      echo
      echo "The dependencies are not installed yet. Once they are, --help lists the options."
      exit 0
      ;;
  esac
  if ! command -v npm >/dev/null; then
    echo "npm is not on PATH: install Node 20 or newer, which brings it" >&2
    exit 1
  fi
  echo "Installing dependencies (npm ci) ..." >&2
  if ! npm ci --no-audit --no-fund --loglevel=error >&2; then
    echo "npm ci failed; its words are above" >&2
    exit 1
  fi
  # npm keeps the time of the files that it unpacked; the mark must be newer than the lock file.
  touch node_modules/.package-lock.json
}

quorate_install "$@"
PATH="$PWD/node_modules/.bin:$PATH"
export PATH

# Bundles the programs where their sources have changed: members start in half the time, with a
# fifth less memory. Without the bundle they run from the sources.
quorate_bundle() {
  case " $* " in
    *" --help "* | *" -h "*) return ;;
  esac
  if [ -n "${NODE_TEST_CONTEXT:-}" ]; then
    return
  fi
  node scripts/bundle-programs.ts || echo "the programs are not bundled; they run from the sources" >&2
}
