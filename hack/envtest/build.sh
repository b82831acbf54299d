#!/usr/bin/env bash
# Builds etcd, kube-apiserver and kubectl once into the cache, and prints their directory.
# If KUBEBUILDER_ASSETS is set, prints it instead and builds nothing.
set -euo pipefail
cd "$(dirname "$0")"
source ../cached.sh

given KUBEBUILDER_ASSETS
needs_go envtest "build kube-apiserver; or set KUBEBUILDER_ASSETS to a directory with etcd, kube-apiserver and kubectl"
cached envtest
build etcd go.etcd.io/etcd/server/v3 "a few minutes"
build kubectl k8s.io/kubernetes/cmd/kubectl "a few minutes"
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "a few minutes"
echo "$dir"
