#!/usr/bin/env bash
# Builds a small Vault once into the cache and prints its path.
# VAULT_BIN, when set, wins: it is printed and nothing is built. The `vault` of a release does as well.
set -euo pipefail

if [ -n "${VAULT_BIN:-}" ]; then
  echo "$VAULT_BIN"
  exit 0
fi
cd "$(dirname "$0")"
command -v go >/dev/null || {
  echo "hack/vault needs Go to build Vault; or set VAULT_BIN to the path of a vault program" >&2
  exit 1
}
# A change of what is built gets a directory of its own.
key=$(cat go.mod go.sum main.go | sha256sum | cut -c1-12)
dir="${DECLAREST_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/declarest}/vault/$key"
mkdir -p "$dir"

if [ ! -x "$dir/vault" ]; then
  echo "building vault (once, 2 to 10 minutes)" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$dir/vault.part" . >&2
  mv "$dir/vault.part" "$dir/vault"
fi
echo "$dir/vault"
