#!/usr/bin/env bash
# Runs fuzz targets, all or those named, one after the other, each until it took FUZZ_RUNS inputs or FUZZ_SECONDS
# are over. Prints a line for each and fails if one of them found something.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${FUZZ_RUNS:-1000000}
seconds=${FUZZ_SECONDS:-600}
# A thread of the operator has this much stack, in KiB: what does not fit here would end the process there.
stack=2048
cache="${XDG_CACHE_HOME:-$HOME/.cache}/declarest"
export PATH="$cache/tools/bin:$PATH"
cargo_fuzz_version=0.13.2

[ "$(cargo fuzz --version 2>/dev/null)" = "cargo-fuzz $cargo_fuzz_version" ] ||
  env -u CARGO_TARGET_DIR cargo install --quiet --locked --root "$cache/tools" "cargo-fuzz@$cargo_fuzz_version"

# Any toolchain will do without sanitizers, which mostly find mistakes of unsafe code. Debug assertions bring
# checks of arithmetic, and `cfg(fuzzing)` would make dependencies behave as they do not behave in use.
cargo fuzz build --sanitizer none --debug-assertions --no-cfg-fuzzing
target_directory=$(cargo metadata --manifest-path fuzz/Cargo.toml --no-deps --format-version 1 |
  sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
programs="$target_directory/$(rustc -vV | sed -n 's/^host: //p')/release"

# Bundles are unpacked, which goes quicker in memory.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm

# How long inputs get, in bytes: beyond it they only repeat themselves.
max_length() {
  case $1 in
  bundle_archive) echo 16384 ;;
  openapi) echo 4096 ;;
  known_hosts | metadata_* | bundle_manifest | contract_*) echo 2048 ;;
  json | yaml | located | ini | properties | text | octet_stream) echo 1024 ;;
  *) echo 512 ;;
  esac
}

statistic() {
  sed -n "s/^stat::$1: *//p" "$2"
}

run() {
  local target=$1 result=passed start=$SECONDS
  local corpus="fuzz/corpus/$target" found="fuzz/artifacts/$target" log dictionary=()
  mkdir -p "$corpus" "$found"
  log="fuzz/artifacts/$target.log"
  [ ! -f "fuzz/dictionaries/$target.dict" ] || dictionary=("-dict=fuzz/dictionaries/$target.dict")
  (
    ulimit -S -s "$stack"
    exec "$programs/$target" "$corpus" "fuzz/seeds/$target" "${dictionary[@]}" "-artifact_prefix=$found/" \
      "-runs=$runs" "-max_total_time=$seconds" "-max_len=$(max_length "$target")" \
      -rss_limit_mb=512 -timeout=10 -print_final_stats=1
  ) >"$log" 2>&1 || result="FAILED, see $log"
  printf '%-18s %10s %8s %9s  %s\n' "$target" "$(statistic number_of_executed_units "$log")" \
    "$((SECONDS - start))" "$(statistic peak_rss_mb "$log")" "$result"
  [ "$result" = passed ]
}

[ $# -gt 0 ] || set -- $(basename -s .rs fuzz/fuzz_targets/*.rs)
printf '%-18s %10s %8s %9s  %s\n' target inputs seconds 'peak MiB' result
failed=0
for target in "$@"; do
  run "$target" || failed=1
done
exit "$failed"
