#!/usr/bin/env bash
# Builds a small Vault once into the cache and prints its path.
# VAULT_BIN, when set, wins: it is printed and nothing is built. The `vault` of a release does as well.
set -euo pipefail
cd "$(dirname "$0")"
source ../cached.sh

given VAULT_BIN
needs_go vault "build Vault; or set VAULT_BIN to the path of a vault program"
cached vault go.mod go.sum main.go
build vault . "2 to 10 minutes"
echo "$dir/vault"
