# What the build scripts in the directories here share. They read it from their own directory.
# shellcheck shell=bash

# Prints the value of variable $1 and ends, if it is set: it wins, and nothing is built.
given() {
  if [ -n "${!1:-}" ]; then
    echo "${!1}"
    exit 0
  fi
}

# Ends without Go, saying what $1 needs it for and what else to do.
needs_go() {
  command -v go >/dev/null || {
    echo "hack/$1 needs Go to $2" >&2
    exit 1
  }
}

# Sets `dir` to the directory of $1 in the cache for what is built from the other files: a change of what is built gets
# a directory of its own.
cached() {
  local name=$1 key
  shift
  key=$(cat "$@" | sha256sum | cut -c1-12)
  dir="${DECLAREST_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/declarest}/$name/$key"
  mkdir -p "$dir"
}

# Builds the program $1 from the package $2, unless that was done; $3 is how long it takes.
build() {
  [ -x "$dir/$1" ] && return
  echo "building $1 (once, $3)" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$dir/$1.part" "$2" >&2
  mv "$dir/$1.part" "$dir/$1"
}
