# Functions that the build scripts in the subdirectories share.
# shellcheck shell=bash

# If the variable $1 is set, prints its value and exits. It takes precedence over a build.
given() {
  if [ -n "${!1:-}" ]; then
    echo "${!1}"
    exit 0
  fi
}

# If Go is missing, prints why $1 needs it and the alternative, and exits.
needs_go() {
  command -v go >/dev/null || {
    echo "hack/$1 needs Go to $2" >&2
    exit 1
  }
}

# Sets `dir` to the cache directory of $1 for builds from hack/go.mod, which states the versions, and from the other
# arguments, which are files. Each content of these files has its own directory.
cached() {
  local name=$1 key
  shift
  key=$(cat ../go.mod ../go.sum "$@" | sha256sum | cut -c1-12)
  dir="${DECLAREST_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/declarest}/$name/$key"
  mkdir -p "$dir"
}

# Builds the program $1 from the package $2, unless it is already built. $3 is the expected duration.
build() {
  [ -x "$dir/$1" ] && return
  echo "building $1 (once, $3)" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$dir/$1.part" "$2" >&2
  mv "$dir/$1.part" "$dir/$1"
}
