#!/usr/bin/env bash
# Builds a small Vault once into the cache, and prints its path.
# If VAULT_BIN is set, prints it instead and builds nothing. It can also be the `vault` of a release.
set -euo pipefail
cd "$(dirname "$0")"
source ../cached.sh

given VAULT_BIN
needs_go vault "build Vault; or set VAULT_BIN to the path of a vault program"
cached vault main.go
build vault . "2 to 10 minutes"
echo "$dir/vault"
