#!/usr/bin/env bash
# Fetches Keycloak with Maven once into the cache, and prints its directory. If KEYCLOAK_HOME is set, prints it instead.
set -euo pipefail

version=26.4.0
if [ -n "${KEYCLOAK_HOME:-}" ]; then
  echo "$KEYCLOAK_HOME"
  exit 0
fi
cache="${DECLAREST_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/declarest}/keycloak"
home="$cache/$version"
if [ ! -d "$home" ]; then
  for program in mvn java unzip; do
    command -v "$program" >/dev/null || {
      echo "hack/keycloak.sh needs $program; or set KEYCLOAK_HOME to the directory of Keycloak $version" >&2
      exit 1
    }
  done
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/part.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching Keycloak $version (once, 160 MB)" >&2
  mvn -q -B dependency:copy -Dartifact="org.keycloak:keycloak-quarkus-dist:$version:zip" \
    -DoutputDirectory="$work" >&2
  unzip -q "$work/keycloak-quarkus-dist-$version.zip" -d "$work"
  # The first start with these options takes half a minute longer than all others.
  "$work/keycloak-$version/bin/kc.sh" start-dev --db=dev-mem --cache=local --http-host=127.0.0.1 --http-port=0 \
    --http-management-port=0 >"$work/log" 2>&1 &
  server=$!
  for _ in $(seq 300); do
    grep -q 'started in' "$work/log" && break
    kill -0 "$server" 2>/dev/null || break
    sleep 1
  done
  kill "$server" 2>/dev/null || true
  wait "$server" || true
  grep -q 'started in' "$work/log" || {
    cat "$work/log" >&2
    exit 1
  }
  mv "$work/keycloak-$version" "$home"
fi
echo "$home"
