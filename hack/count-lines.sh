#!/bin/sh
# Prints the number of code lines in each directory, and their sum.
# Usage: hack/count-lines.sh [DIRECTORY...]; without a directory it counts the sources of the three crates.
#
# Not counted are blank lines, comment lines and tests: items below #[cfg(test)], files of modules that are declared
# below #[cfg(test)], files named tests.rs or *_tests.rs, and directories named tests. The sources must be formatted by
# rustfmt, because the end of an item is recognised by its indentation.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- core/src cli/src operator/src

list=$(mktemp)
trap 'rm -f "$list"' EXIT
find "$@" -name tests -prune -o -name '*.rs' ! -name tests.rs ! -name '*_tests.rs' -print | sort -u >"$list"

# The sources are read twice: first to find the files of test modules, then to count.
awk -v directories="$*" '
  # The directory that holds the files of modules that `file` declares.
  function below(file) {
    if (file ~ /\/(mod|lib|main)\.rs$/) sub(/\/[^\/]*$/, "", file)
    else sub(/\.rs$/, "", file)
    return file
  }
  function is_test_file(file,   prefix) {
    for (prefix in test_modules) {
      if (file == prefix ".rs" || index(file, prefix "/") == 1) return 1
    }
    return 0
  }
  # Reads a file. Returns its code lines if `counting`, otherwise adds its test modules to test_modules.
  function read(file, counting,   line, text, state, indent, name, total) {
    while ((getline line < file) > 0) {
      text = line
      sub(/^[ \t]+/, "", text)
      sub(/[ \t\r]+$/, "", text)
      if (state == "skip") {
        if (line ~ "^" indent "(}|\\);)") state = ""
      } else if (text == "" || text ~ /^\/\//) {
      } else if (text == "#[cfg(test)]") {
        state = "item"
      } else if (state == "item") {
        if (text ~ /^#/) continue
        if (text ~ /^(pub(\([a-z: ]*\))? )?mod [a-z_0-9]+;$/) {
          name = text
          sub(/^.*mod /, "", name)
          sub(/;$/, "", name)
          if (!counting) test_modules[below(file) "/" name]
        }
        indent = line
        sub(/[^ \t].*$/, "", indent)
        state = text ~ /[;,}]$/ ? "" : "skip"
      } else {
        total++
      }
    }
    close(file)
    return total
  }
  { files[++count] = $0; read($0, 0) }
  END {
    size = split(directories, names, " ")
    for (i = 1; i <= count; i++) {
      if (is_test_file(files[i])) continue
      lines = read(files[i], 1)
      sum += lines
      for (j = 1; j <= size; j++) {
        if (index(files[i], names[j]) == 1) totals[j] += lines
      }
    }
    for (j = 1; j <= size; j++) printf "%7d %s\n", totals[j], names[j]
    printf "%7d total\n", sum
  }
' "$list"
