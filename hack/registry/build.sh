#!/usr/bin/env bash
# Builds an OCI registry once into the cache, and prints its path.
# If REGISTRY_BIN is set, prints it instead and builds nothing.
set -euo pipefail
cd "$(dirname "$0")"
source ../cached.sh

given REGISTRY_BIN
needs_go registry "build a registry; or set REGISTRY_BIN to the path of this program"
cached registry main.go
build registry . "10 seconds"
echo "$dir/registry"
