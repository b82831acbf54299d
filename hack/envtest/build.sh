#!/usr/bin/env bash
# Builds etcd, kube-apiserver and kubectl once into the cache and prints the directory that holds them.
# KUBEBUILDER_ASSETS, when set, wins: its directory is printed and nothing is built.
set -euo pipefail
cd "$(dirname "$0")"
source ../cached.sh

given KUBEBUILDER_ASSETS
needs_go envtest "build kube-apiserver; or set KUBEBUILDER_ASSETS to a directory with etcd, kube-apiserver and kubectl"
# They state the versions.
cached envtest go.mod go.sum
build etcd go.etcd.io/etcd/server/v3 "a few minutes"
build kubectl k8s.io/kubernetes/cmd/kubectl "a few minutes"
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "a few minutes"
echo "$dir"
