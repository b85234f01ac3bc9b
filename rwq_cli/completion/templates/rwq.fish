# fish completion for rwq. It needs fish 3.0 or later.
# Made by: python -m rwq_cli.completion completions/

# Reads the words before the cursor. Sets
#   __rwq_path    the words that name the command
#   __rwq_count   how many arguments it has
#   __rwq_server  the options that select the server, with their values
#   __rwq_words   all the words
function __rwq_read
    # From fish 4 on, -x gives the words with variables expanded; before, there was only -o.
    set -g __rwq_words (commandline -xpc 2>/dev/null; or commandline -opc)
    set -g __rwq_path ''
    set -g __rwq_count 0
    set -g __rwq_server
    # The empty word is the value of an option that has none yet.
    __rwq_read_command $__rwq_words[2..-1] ''
end

# Reads the words in $argv, which follow the name of the command in __rwq_path.
function __rwq_read_command
    set -l options
    set -l stop
    switch $__rwq_path
@CASES@    end
    # The options of a subcommand follow its name.
    contains -- "$__rwq_path" @GROUPS@; and set stop -s
    argparse -n rwq -i $stop @COMMON@ $options -- $argv 2>/dev/null
    for name in @SERVER@
        set -l flag _flag_(string replace -a -- - _ $name)
        switch "$$flag"
            case ''
            case "--$name"
                set -a __rwq_server --$name
            case '*'
                set -a __rwq_server --$name $$flag
        end
    end
    while set -q argv[2]
        set -l word $argv[1]
        set -e argv[1]
        if string match -q -- '-*' $word
            # An unknown option.
            continue
        else if test -n "$stop"
            set __rwq_path (string trim -- "$__rwq_path $word")
            __rwq_read_command $argv
            return
        end
        set __rwq_count (math $__rwq_count + 1)
    end
end

# Whether the words in $argv name the command at the cursor.
function __rwq_at
    __rwq_read
    test "$__rwq_path" = "$argv"
end

# The names of the queues on the server of the line or the environment.
function __rwq_queues
    __rwq_read
    set -l server
    for word in $__rwq_server
        if string match -qr -- '^\$[A-Za-z_][A-Za-z0-9_]*$' $word
            set -l name (string sub -s 2 -- $word)
            set word $$name
        else if string match -q -- '~/*' $word
            set word $HOME(string sub -s 2 -- $word)
        else if string match -q -- '*(*' $word
            # The output of a command selects the server: run nothing.
            return
        end
        set -a server $word
    end
    # The typed program may not be the one in PATH.
    set -l run rwq
    command -sq -- $__rwq_words[1]; and set run $__rwq_words[1]
    command -sq timeout; and set run timeout 2 $run
    # A name with a control character is printed escaped, and cannot be used. What follows the tab
    # is shown beside the name.
    command $run queues -o ids $server 2>/dev/null </dev/null \
        | string match -rv -- '\\\\[nrtuUx]' | string replace -r -- '$' \t
end

# An older version of this script may have been read before.
complete -c rwq -e
# Offer files only where one is expected.
complete -c rwq -f

# What every command accepts, before its name or after it.
@OPTIONS@@COMMANDS@