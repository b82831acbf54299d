#compdef declarest
# zsh completion for declarest: source <(declarest completion zsh)

_declarest() {
    local -a lines options
    local directive
    lines=("${(@f)$(declarest __completeNoDesc "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    directive=${lines[-1]#:}
    lines=("${(@)lines[1,-2]}")
    [[ ${words[CURRENT]} == --*=* ]] && compset -P '*='
    (( directive & 2 )) && options+=(-S '')
    if (( ${#lines} )); then
        compadd "${options[@]}" -- "${lines[@]}"
    elif (( ! (directive & 4) )); then
        _files
    fi
}

if [[ ${funcstack[1]} == _declarest ]]; then
    _declarest "$@"
else
    compdef _declarest declarest
fi
