# fish completion for declarest: declarest completion fish | source

function __declarest_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (declarest __complete $words[2..-1] 2>/dev/null)
    test (count $lines) -gt 0; or return
    set -l directive (string sub -s 2 -- $lines[-1])
    set -e lines[-1]
    set -l prefix (string match -r -- '^--[^=]*=' (commandline -ct))
    for line in $lines
        printf '%s%s\n' "$prefix" $line
    end
    if test (count $lines) -eq 0; and test (math "bitand($directive, 4)") -eq 0
        __fish_complete_path (commandline -ct)
    end
end

complete -c declarest -e
complete -c declarest -f -a '(__declarest_complete)'
