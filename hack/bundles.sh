#!/usr/bin/env bash
# Packs each directory of bundles/ as an archive and as an OCI image layout below the directory $1. The same files
# always result in the same bytes, so digests show whether a bundle has changed.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
mkdir -p "$out"

# Prints the media type, digest and size of the file $2 as a descriptor of type $1, and adds it to the layout $layout.
descriptor() {
  local digest
  digest=$(sha256sum "$2" | cut -d' ' -f1)
  cp "$2" "$layout/blobs/sha256/$digest"
  printf '{"mediaType":"%s","digest":"sha256:%s","size":%d}' "$1" "$digest" "$(stat -c %s "$2")"
}

for directory in bundles/*/; do
  name=$(basename "$directory")
  version=$(sed -n 's/^version: //p' "$directory/bundle.yaml")
  archive="$out/$name-$version.tar.gz"
  tar --create --directory "$directory" --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX . | gzip --no-name --best >"$archive"

  layout="$out/$name-$version.oci"
  rm -rf "$layout"
  mkdir -p "$layout/blobs/sha256"
  part=$(mktemp)
  printf '{}' >"$part"
  config=$(descriptor application/vnd.oci.empty.v1+json "$part")
  layer=$(descriptor application/vnd.declarest.bundle.v1.tar+gzip "$archive")
  manifest=application/vnd.oci.image.manifest.v1+json
  printf '{"schemaVersion":2,"mediaType":"%s","artifactType":"%s","config":%s,"layers":[%s]}' "$manifest" \
    application/vnd.declarest.bundle.v1 "$config" "$layer" >"$part"
  entry=$(descriptor "$manifest" "$part")
  printf '{"schemaVersion":2,"manifests":[%s,"annotations":{"org.opencontainers.image.ref.name":"%s"}}]}' \
    "${entry%\}}" "$version" >"$layout/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
  rm "$part"
  echo "$archive"
done
