# Completion of seatrial in bash 4.4 and newer. The command itself says what may follow.
_seatrial_completion() {
    local IFS=$'\n' word words=() begun response completion type value
    # Readline takes --machine=lo and base:machine=lo for several words, which it completes apart.
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if ((${#words[@]} > 1)) && [[ $word == [:=] || ${words[-1]} == *[:=] ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    begun=${words[-1]%"${words[-1]##*[:=]}"}
    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) \
        _SEATRIAL_COMPLETE=bash_complete "$1" 2> /dev/null)
    COMPREPLY=()
    for completion in $response; do
        IFS=, read -r type value <<< "$completion"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$begun"}") ;;
        esac
    done
    # More follows a trial's tag (TAG/) and a condition (machine=).
    [[ ${COMPREPLY-} != *[/=] ]] || compopt -o nospace
}
complete -o nosort -F _seatrial_completion seatrial
