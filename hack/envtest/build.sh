#!/usr/bin/env bash
# Builds etcd, kube-apiserver and kubectl once into the cache and prints the directory that holds them.
# KUBEBUILDER_ASSETS, when set, wins: its directory is printed and nothing is built.
set -euo pipefail

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  echo "$KUBEBUILDER_ASSETS"
  exit 0
fi
cd "$(dirname "$0")"
command -v go >/dev/null || {
  echo "hack/envtest needs Go to build kube-apiserver; or set KUBEBUILDER_ASSETS to a directory with etcd, kube-apiserver and kubectl" >&2
  exit 1
}
# A change of go.mod or go.sum is a change of version, so it gets a directory of its own.
key=$(cat go.mod go.sum | sha256sum | cut -c1-12)
dir="${DECLAREST_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/declarest}/envtest/$key"
mkdir -p "$dir"

build() {
  [ -x "$dir/$1" ] && return
  echo "building $1 (once, a few minutes)" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$dir/$1.part" "$2" >&2
  mv "$dir/$1.part" "$dir/$1"
}
build etcd go.etcd.io/etcd/server/v3
build kubectl k8s.io/kubernetes/cmd/kubectl
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
echo "$dir"
