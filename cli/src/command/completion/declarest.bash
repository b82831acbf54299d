# bash completion for declarest: source <(declarest completion bash)

__declarest_complete() {
    local -a words=() lines=()
    local index word value line directive typed rest escaped character joined= quote=
    # Bash splits words at "=" and ":". Join them again.
    for ((index = 1; index <= COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if [[ ${#words[@]} -gt 0 && (-n $joined || $word == [=:]) ]]; then
            words[${#words[@]} - 1]+=$word
            joined=
            [[ $word == [=:] ]] && joined=1
        else
            words+=("$word")
        fi
    done
    # The words are as typed. Remove quotes and backslashes.
    typed=${COMP_WORDS[COMP_CWORD]}
    [[ $typed == [\"\']* ]] && quote=${typed:0:1}
    # A quote inside of a word is not supported, because it changes the escapes that a candidate needs.
    rest=${typed#"$quote"}
    [[ $quote == "'" ]] || rest=${rest//\\?/}
    [[ -n $quote && $rest != *"$quote"* || $rest != *[\"\']* ]] || return
    for index in "${!words[@]}"; do
        word=${words[index]#[\"\']}
        words[index]=${word//\\/}
    done
    while IFS= read -r line; do
        lines+=("$line")
    done < <(declarest __completeNoDesc "${words[@]}" 2>/dev/null)
    [[ ${#lines[@]} -gt 0 ]] || return
    directive=${lines[${#lines[@]} - 1]#:}
    unset "lines[${#lines[@]} - 1]"
    # Bash replaces only the part of the word after the last "=" or ":".
    value=${words[${#words[@]} - 1]}
    [[ $value == --*=* ]] && value=${value#--*=}
    typed=${COMP_WORDS[COMP_CWORD]#[\"\']}
    typed=${typed//\\/}
    [[ $typed == [=:] ]] && typed=
    value=${value%"$typed"}
    COMPREPLY=()
    for line in "${lines[@]}"; do
        line=${line#"$value"}
        # Names of a server must not become code.
        if [[ $quote == "'" ]]; then
            escaped="'\\''" line=${line//\'/$escaped}
        elif [[ -n $quote ]]; then
            for character in '\\' '"' '$' '`'; do
                escaped=\\$character line=${line//"$character"/$escaped}
            done
            escaped="\"'!'\"" line=${line//!/$escaped}
        else
            printf -v line '%q' "$line"
        fi
        COMPREPLY+=("$line")
    done
    if ((directive & 2)); then
        compopt -o nospace 2>/dev/null
    fi
    if [[ ${#COMPREPLY[@]} -eq 0 ]] && ! ((directive & 4)); then
        compopt -o filenames 2>/dev/null
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(compgen -f -- "$typed")
    fi
}

complete -F __declarest_complete declarest
