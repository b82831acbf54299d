# fish completion for declarest: declarest completion fish | source

function __declarest_complete
    # The words before the current one have no quotes and backslashes. Remove those of the current one.
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l current (string unescape -- "$typed")
    or set current (string replace -r '^["\']' '' -- "$typed")
    set -l lines (declarest __complete $words[2..-1] "$current" 2>/dev/null)
    test (count $lines) -gt 0; or return
    set -l directive (string sub -s 2 -- $lines[-1])
    set -e lines[-1]
    set -l prefix (string match -r -- '^--[^=]*=' "$typed")
    for line in $lines
        printf '%s%s\n' "$prefix" $line
    end
    if test (count $lines) -eq 0; and test (math "bitand($directive, 4)") -eq 0
        __fish_complete_path "$typed"
    end
end

complete -c declarest -e
complete -c declarest -f -a '(__declarest_complete)'
