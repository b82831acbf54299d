#!/usr/bin/env bash
# Builds Helm once into the cache, and prints its path. If HELM is set, prints it instead and builds nothing.
set -euo pipefail
cd "$(dirname "$0")"
source ../cached.sh

given HELM
needs_go helm "build Helm; or set HELM to the path of a helm program"
cached helm
build helm helm.sh/helm/v4/cmd/helm "1 to 3 minutes"
echo "$dir/helm"
