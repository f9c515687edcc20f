# Completion of seatrial in fish. The command itself says what may follow.
function _seatrial_completion
    set -l word (commandline -t)
    # Of an option with its value (--machine=lo) the command says the value alone.
    set -l option (string match -r -- '^--[^=]*=' $word)
    set -l response (env _SEATRIAL_COMPLETE=fish_complete COMP_WORDS=(commandline -cp) \
        COMP_CWORD="$word" seatrial 2> /dev/null)
    for completion in $response
        set -l type_and_value (string split -m 1 , -- $completion)
        switch $type_and_value[1]
            case dir
                printf '%s\n' "$option"(__fish_complete_directories $type_and_value[2])
            case file
                printf '%s\n' "$option"(__fish_complete_path $type_and_value[2])
            case plain
                printf '%s\n' "$option$type_and_value[2]"
        end
    end
end
complete --no-files --command seatrial --arguments "(_seatrial_completion)"
