# Sourced by etcd-e2e.sh and etcd-robustness.sh, which have fail(): what both need to build the
# tests of a checkout of etcd and run them with Quorate's programs.

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")

# Sets source to the absolute path of the checkout, and go to the Go program. Arguments: the
# patience, and a directory that the checkout must have, with the name of the checkout.
find_checkout() { # PATIENCE DIRECTORY NAME
  [ -n "$source" ] || fail "--source is missing"
  [ -d "$source" ] || fail "$source is not there"
  source=$(realpath "$source")
  [[ $1 =~ ^[1-9][0-9]?$ ]] || fail "--patience is a whole number from 1 to 99, not $1"
  [ -d "$source/$2" ] || fail "$source/$2 is not there: is $source a checkout of $3?"
  go=${GO:-$(command -v go || true)}
  [ -n "$go" ] || fail "go is not installed (\$GO or the PATH)"
}

# Sets version to the version of etcd that a Quorate member reports: the tests ask the programs for
# their version, and must expect this one.
find_version() { # PROGRAM
  version=$("$1" --version | sed -n 's/^etcd Version: //p')
  [ -n "$version" ] || fail "$1 --version prints no etcd version"
}
