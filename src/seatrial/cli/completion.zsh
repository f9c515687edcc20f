#compdef seatrial
# Completion of seatrial in zsh. The command itself says what may follow.
_seatrial() {
    local -a names described response suffix
    local type key descr
    (( $+commands[seatrial] )) || return 1
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \
        _SEATRIAL_COMPLETE=zsh_complete seatrial 2> /dev/null)}")
    compset -P '[-]-*=' # of an option with its value (--machine=lo) the value alone is completed
    for type key descr in $response; do
        case $type in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain) if [[ $descr == _ ]]; then names+=("$key"); else described+=("$key:$descr"); fi ;;
        esac
    done
    # More follows a trial's tag (TAG/) and a condition (machine=).
    if [[ $names[1] == *[/=] ]]; then suffix=(-S ''); fi
    if (( $#described )); then _describe -V unsorted described; fi
    if (( $#names )); then compadd -V unsorted "${suffix[@]}" -a names; fi
}
if [[ $funcstack[1] == _seatrial ]]; then
    _seatrial "$@" # this is a file of a folder of $fpath, and was called for the first time
else
    compdef _seatrial seatrial
fi
