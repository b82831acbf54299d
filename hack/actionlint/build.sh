#!/usr/bin/env bash
# Builds actionlint, which checks workflows, once into the cache, and prints its path.
# If ACTIONLINT is set, prints it instead and builds nothing.
set -euo pipefail
cd "$(dirname "$0")"
source ../cached.sh

given ACTIONLINT
needs_go actionlint "build actionlint; or set ACTIONLINT to the path of an actionlint program"
cached actionlint
build actionlint github.com/rhysd/actionlint/cmd/actionlint "a minute"
echo "$dir/actionlint"
