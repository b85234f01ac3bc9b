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
        case ''
            set options V/version
        case 'add'
            set options f/file= format= id= id-from= unique delay= at= strict dry-run 0/null
        case 'lease'
            set options n/number= for= id= wait timeout= fair dry-run 0/null
        case 'complete'
            set options state= match= id-glob= older-than= n/limit= all 0/null owner= result= rejected result-ttl= yes dry-run
        case 'result'
            set options wait timeout=
        case 'touch'
            set options state= match= id-glob= older-than= n/limit= all 0/null for= dry-run
        case 'release'
            set options state= match= id-glob= older-than= n/limit= all 0/null front delay= force yes dry-run
        case 'bury'
            set options state= match= id-glob= older-than= n/limit= all 0/null reason= force yes dry-run
        case 'kick'
            set options state= match= id-glob= older-than= n/limit= all 0/null dry-run
        case 'rm'
            set options state= match= id-glob= older-than= n/limit= all 0/null yes dry-run
        case 'mv'
            set options state= match= id-glob= older-than= n/limit= all 0/null to= force yes dry-run
        case 'purge'
            set options yes dry-run 0/null
        case 'undo'
            set options anywhere dry-run 0/null
        case 'ls'
            set options n/limit= offset= tail data state= match= id-glob= older-than= 0/null
        case 'leases'
            set options holder= n/limit= data 0/null
        case 'show'
            set options data eta= 0/null
        case 'stats'
            set options fast deep
        case 'queues'
            set options 0/null
        case 'wait'
            set options until-empty below= id= timeout=
        case 'clean light'
            set options grace= bury-after= dry-run 0/null
        case 'clean deep'
            set options grace= bury-after= dry-run 0/null
        case 'doctor'
            set options fix dry-run grace= only= skip= 0/null
        case 'check'
            set options waiting-warn= waiting-critical= age-warn= age-critical= abandoned-warn= abandoned-critical= processing-warn= processing-critical= delayed-warn= delayed-critical= buried-warn= buried-critical= orphaned-warn= orphaned-critical= deep format=
        case 'export'
            set options state= match= id-glob= older-than= n/limit= all 0/null
        case 'import'
            set options on-conflict= strict dry-run 0/null
        case 'completion'
            set options install
    end
    # The options of a subcommand follow its name.
    contains -- "$__rwq_path" '' 'clean' 'local'; and set stop -s
    argparse -n rwq -i $stop q/queue= u/url= o/output= password-file= tls-ca= tls-cert= tls-key= tls-insecure no-color v/verbose debug h/help $options -- $argv 2>/dev/null
    for name in url password-file tls-ca tls-cert tls-key tls-insecure
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
complete -c rwq -s q -l queue -x -a '(__rwq_queues)' -d 'The queue. Else RWQ_QUEUE'
complete -c rwq -s u -l url -x -d 'The server. Else RWQ_URL, else REDIS_URL, else redis://localhost:6379/0'
complete -c rwq -s o -l output -x -a 'table\\t plain\\t json\\t jsonl\\t csv\\t ids\\t data\\t' -d 'table, plain, json, jsonl, csv, ids, data'
complete -c rwq -l password-file -r -F -d 'A file with the password. Else the URL\'s, else RWQ_PASSWORD'
complete -c rwq -l tls-ca -r -F -d 'Certificate authorities to trust (rediss://)'
complete -c rwq -l tls-cert -r -F -d 'The client\'s certificate'
complete -c rwq -l tls-key -r -F -d 'The client\'s key'
complete -c rwq -l tls-insecure -d 'Accept any server certificate'
complete -c rwq -l no-color -d 'No colour. Also NO_COLOR, set to anything'
complete -c rwq -s v -l verbose -d 'Say which server and queue, on stderr'
complete -c rwq -l debug -d 'Show the traceback of an error'
complete -c rwq -s h -l help -d 'Show this message and exit'

# rwq
complete -c rwq -n '__rwq_at' -s V -l version -d 'Show the version'
complete -c rwq -n '__rwq_at' -a 'add' -d 'Put items in, from arguments, files or stdin'
complete -c rwq -n '__rwq_at' -a 'lease' -d 'Lease the next items, and print them'
complete -c rwq -n '__rwq_at' -a 'complete' -d 'Finish items: they are gone, whoever holds them, and one complete wins'
complete -c rwq -n '__rwq_at' -a 'result' -d 'Show the outcome that complete kept of an item'
complete -c rwq -n '__rwq_at' -a 'touch' -d 'Give live leases a new expiry, counted from now'
complete -c rwq -n '__rwq_at' -a 'release' -d 'Put items back into the queue, now or after a delay, and end their leases'
complete -c rwq -n '__rwq_at' -a 'bury' -d 'Set items aside, with a reason: no worker and no cleaner touches them until they are kicked'
complete -c rwq -n '__rwq_at' -a 'kick' -d 'Bring buried items back to the end of the queue, the longest buried first'
complete -c rwq -n '__rwq_at' -a 'rm' -d 'Remove items wherever they are, also those that a worker holds, without calling them completed'
complete -c rwq -n '__rwq_at' -a 'mv' -d 'Move items to the end of another queue of the same server, where they wait'
complete -c rwq -n '__rwq_at' -a 'purge' -d 'Remove a whole queue, every key of it'
complete -c rwq -n '__rwq_at' -a 'undo' -d 'Put back what rm, mv or purge took away: the latest that was not tried yet, or was interrupted, or what FILE holds'
complete -c rwq -n '__rwq_at' -a 'ls' -d 'List items: next to be leased first, or longest leased first'
complete -c rwq -n '__rwq_at' -a 'leases' -d 'Show who holds what for how long: abandoned items first, then the soonest to end'
complete -c rwq -n '__rwq_at' -a 'show' -d 'Show everything about items: the state, why, what happens next and when, and what would move them on'
complete -c rwq -n '__rwq_at' -a 'stats' -d 'Count a queue\'s items by state, with ages, leases and sizes'
complete -c rwq -n '__rwq_at' -a 'queues' -d 'List the queues of this server with their counts'
complete -c rwq -n '__rwq_at' -a 'wait' -d 'Return when a queue is empty or short enough, or items are gone; for scripts'
complete -c rwq -n '__rwq_at' -a 'clean' -d 'Make available again what dead workers left behind'
complete -c rwq -n '__rwq_at' -a 'doctor' -d 'Find everything that is wrong with a queue, and with --fix cure what can be'
complete -c rwq -n '__rwq_at' -a 'check' -d 'Compare a queue\'s numbers with limits: one line and an exit code, as monitors want them'
complete -c rwq -n '__rwq_at' -a 'export' -d 'Write everything of a queue to stdout, as JSON lines that rwq import reads: its items, then the results that are kept'
complete -c rwq -n '__rwq_at' -a 'import' -d 'Put in what rwq export wrote, as it was: order, states, leases and results with the time left'
complete -c rwq -n '__rwq_at' -a 'local' -d 'Start, stop or inspect the embedded server, which -u local: uses'
complete -c rwq -n '__rwq_at' -a 'demo' -d 'Run the main commands on a throwaway server and show their output, in a few seconds'
complete -c rwq -n '__rwq_at' -a 'completion' -d 'Print the completion script of a shell, or install it for this user'

# rwq add
complete -c rwq -n '__rwq_at add' -s f -l file -r -F -d 'Read items from a file; - is stdin'
complete -c rwq -n '__rwq_at add' -l format -x -a 'lines\\t jsonl\\t nul\\t raw\\t' -d 'lines: a line is an item. jsonl: an object a line with data or data_b64, and id and delay if it has them. nul: items end with NUL. raw: each input is one item'
complete -c rwq -n '__rwq_at add' -l id -x -d 'The ID, for exactly one item'
complete -c rwq -n '__rwq_at add' -l id-from -x -d 'uuid, sha256 (of the data), line (the data itself) or field:NAME (of JSON data)'
complete -c rwq -n '__rwq_at add' -l unique -d 'The IDs are known to be new: skip the duplicate check'
complete -c rwq -n '__rwq_at add' -l delay -x -d 'Delay the items by this; a delay in a JSON line has precedence'
complete -c rwq -n '__rwq_at add' -l at -x -d 'Delay the items until then, by the server\'s clock: 08:00, 2026-11-22T08:00, with a zone (Z, +01:00) or in the local one, or @ and unix seconds'
complete -c rwq -n '__rwq_at add' -l strict -d 'Stop at the first bad record'
complete -c rwq -n '__rwq_at add' -l dry-run -d 'Report what would be done, but change nothing'
complete -c rwq -n '__rwq_at add' -s 0 -l null -d '-o ids ends each ID with NUL, unescaped'

# rwq lease
complete -c rwq -n '__rwq_at lease' -s n -l number -x -d 'How many items at most. Else 1'
complete -c rwq -n '__rwq_at lease' -l for -x -d 'How long the lease lasts, counted from now'
complete -c rwq -n '__rwq_at lease' -l id -x -d 'Lease this item, wherever it waits, also delayed or buried; can be given several times'
complete -c rwq -n '__rwq_at lease' -l wait -d 'Wait until there is an item'
complete -c rwq -n '__rwq_at lease' -l timeout -x -d 'Wait this long at most'
complete -c rwq -n '__rwq_at lease' -l fair -d 'Try several queues in a random order, a new one each time'
complete -c rwq -n '__rwq_at lease' -l dry-run -d 'Report what would be done, but change nothing'
complete -c rwq -n '__rwq_at lease' -s 0 -l null -d '-o ids and -o data end each with NUL, unescaped'

# rwq complete
complete -c rwq -n '__rwq_at complete' -l state -x -a 'waiting\\t leased\\t abandoned\\t held\\t orphaned\\t unlisted\\t delayed\\t due\\t buried\\t duplicated\\t ghost\\t wrong-type\\t' -d 'Only items in this state; can be given several times. waiting, leased, abandoned, held, orphaned, unlisted, delayed, due, buried, duplicated'
complete -c rwq -n '__rwq_at complete' -l match -x -d 'Only items with this in their data'
complete -c rwq -n '__rwq_at complete' -l id-glob -x -d 'Only IDs that match'
complete -c rwq -n '__rwq_at complete' -l older-than -x -d 'Only items not used for so long'
complete -c rwq -n '__rwq_at complete' -s n -l limit -x -d 'The first N only; 0 for no limit'
complete -c rwq -n '__rwq_at complete' -l all -d 'All items that the verb is for, or of them all that match'
complete -c rwq -n '__rwq_at complete' -s 0 -l null -d 'IDs on stdin, and those of -o ids, end with NUL'
complete -c rwq -n '__rwq_at complete' -l owner -x -d 'Only where this session still holds the lease'
complete -c rwq -n '__rwq_at complete' -l result -r -F -d 'Keep what is in this file as the result, of each the same; - is stdin'
complete -c rwq -n '__rwq_at complete' -l rejected -d 'The outcome says that it was given up'
complete -c rwq -n '__rwq_at complete' -l result-ttl -x -d 'Keep the outcome this long. [default: 1h]'
complete -c rwq -n '__rwq_at complete' -l yes -d 'Do not ask before items that were not named are gone'
complete -c rwq -n '__rwq_at complete' -l dry-run -d 'Report what would be done, but change nothing'

# rwq result
complete -c rwq -n '__rwq_at result' -l wait -d 'Wait while the item exists, whatever its state; what falls due is promoted'
complete -c rwq -n '__rwq_at result' -l timeout -x -d 'Wait this long at most'

# rwq touch
complete -c rwq -n '__rwq_at touch' -l state -x -a 'waiting\\t leased\\t abandoned\\t held\\t orphaned\\t unlisted\\t delayed\\t due\\t buried\\t duplicated\\t ghost\\t wrong-type\\t' -d 'Only items in this state; can be given several times. leased, held, unlisted'
complete -c rwq -n '__rwq_at touch' -l match -x -d 'Only items with this in their data'
complete -c rwq -n '__rwq_at touch' -l id-glob -x -d 'Only IDs that match'
complete -c rwq -n '__rwq_at touch' -l older-than -x -d 'Only items not used for so long'
complete -c rwq -n '__rwq_at touch' -s n -l limit -x -d 'The first N only; 0 for no limit'
complete -c rwq -n '__rwq_at touch' -l all -d 'All items that the verb is for, or of them all that match'
complete -c rwq -n '__rwq_at touch' -s 0 -l null -d 'IDs on stdin, and those of -o ids, end with NUL'
complete -c rwq -n '__rwq_at touch' -l for -x -d 'How long the lease lasts, counted from now'
complete -c rwq -n '__rwq_at touch' -l dry-run -d 'Report what would be done, but change nothing'

# rwq release
complete -c rwq -n '__rwq_at release' -l state -x -a 'waiting\\t leased\\t abandoned\\t held\\t orphaned\\t unlisted\\t delayed\\t due\\t buried\\t duplicated\\t ghost\\t wrong-type\\t' -d 'Only items in this state; can be given several times. waiting, leased, abandoned, held, orphaned, unlisted, delayed, due, buried, duplicated'
complete -c rwq -n '__rwq_at release' -l match -x -d 'Only items with this in their data'
complete -c rwq -n '__rwq_at release' -l id-glob -x -d 'Only IDs that match'
complete -c rwq -n '__rwq_at release' -l older-than -x -d 'Only items not used for so long'
complete -c rwq -n '__rwq_at release' -s n -l limit -x -d 'The first N only; 0 for no limit'
complete -c rwq -n '__rwq_at release' -l all -d 'All items that the verb is for, or of them all that match'
complete -c rwq -n '__rwq_at release' -s 0 -l null -d 'IDs on stdin, and those of -o ids, end with NUL'
complete -c rwq -n '__rwq_at release' -l front -d 'Make them the next to be leased, in this order'
complete -c rwq -n '__rwq_at release' -l delay -x -d 'Put them back after this long, not now; 0 is now'
complete -c rwq -n '__rwq_at release' -l force -d 'Also where another session still holds the lease'
complete -c rwq -n '__rwq_at release' -l yes -d 'Do not ask before --force ends leases'
complete -c rwq -n '__rwq_at release' -l dry-run -d 'Report what would be done, but change nothing'

# rwq bury
complete -c rwq -n '__rwq_at bury' -l state -x -a 'waiting\\t leased\\t abandoned\\t held\\t orphaned\\t unlisted\\t delayed\\t due\\t buried\\t duplicated\\t ghost\\t wrong-type\\t' -d 'Only items in this state; can be given several times. waiting, leased, abandoned, held, orphaned, unlisted, delayed, due, buried, duplicated'
complete -c rwq -n '__rwq_at bury' -l match -x -d 'Only items with this in their data'
complete -c rwq -n '__rwq_at bury' -l id-glob -x -d 'Only IDs that match'
complete -c rwq -n '__rwq_at bury' -l older-than -x -d 'Only items not used for so long'
complete -c rwq -n '__rwq_at bury' -s n -l limit -x -d 'The first N only; 0 for no limit'
complete -c rwq -n '__rwq_at bury' -l all -d 'All items that the verb is for, or of them all that match'
complete -c rwq -n '__rwq_at bury' -s 0 -l null -d 'IDs on stdin, and those of -o ids, end with NUL'
complete -c rwq -n '__rwq_at bury' -l reason -x -d 'Why, up to 1,024 bytes; it replaces that of what is buried already. Without it, what is buried now says: by hand'
complete -c rwq -n '__rwq_at bury' -l force -d 'Also where another session still holds the lease'
complete -c rwq -n '__rwq_at bury' -l yes -d 'Do not ask before --force ends leases'
complete -c rwq -n '__rwq_at bury' -l dry-run -d 'Report what would be done, but change nothing'

# rwq kick
complete -c rwq -n '__rwq_at kick' -l state -x -a 'waiting\\t leased\\t abandoned\\t held\\t orphaned\\t unlisted\\t delayed\\t due\\t buried\\t duplicated\\t ghost\\t wrong-type\\t' -d 'Only items in this state; can be given several times. buried'
complete -c rwq -n '__rwq_at kick' -l match -x -d 'Only items with this in their data'
complete -c rwq -n '__rwq_at kick' -l id-glob -x -d 'Only IDs that match'
complete -c rwq -n '__rwq_at kick' -l older-than -x -d 'Only items not used for so long'
complete -c rwq -n '__rwq_at kick' -s n -l limit -x -d 'The first N only; 0 for no limit'
complete -c rwq -n '__rwq_at kick' -l all -d 'All items that the verb is for, or of them all that match'
complete -c rwq -n '__rwq_at kick' -s 0 -l null -d 'IDs on stdin, and those of -o ids, end with NUL'
complete -c rwq -n '__rwq_at kick' -l dry-run -d 'Report what would be done, but change nothing'

# rwq rm
complete -c rwq -n '__rwq_at rm' -l state -x -a 'waiting\\t leased\\t abandoned\\t held\\t orphaned\\t unlisted\\t delayed\\t due\\t buried\\t duplicated\\t ghost\\t wrong-type\\t' -d 'Only items in this state; can be given several times. waiting, leased, abandoned, held, orphaned, unlisted, delayed, due, buried, duplicated'
complete -c rwq -n '__rwq_at rm' -l match -x -d 'Only items with this in their data'
complete -c rwq -n '__rwq_at rm' -l id-glob -x -d 'Only IDs that match'
complete -c rwq -n '__rwq_at rm' -l older-than -x -d 'Only items not used for so long'
complete -c rwq -n '__rwq_at rm' -s n -l limit -x -d 'The first N only; 0 for no limit'
complete -c rwq -n '__rwq_at rm' -l all -d 'All items that the verb is for, or of them all that match'
complete -c rwq -n '__rwq_at rm' -s 0 -l null -d 'IDs on stdin, and those of -o ids, end with NUL'
complete -c rwq -n '__rwq_at rm' -l yes -d 'Do not ask'
complete -c rwq -n '__rwq_at rm' -l dry-run -d 'Report what would be done, but change nothing'

# rwq mv
complete -c rwq -n '__rwq_at mv' -l state -x -a 'waiting\\t leased\\t abandoned\\t held\\t orphaned\\t unlisted\\t delayed\\t due\\t buried\\t duplicated\\t ghost\\t wrong-type\\t' -d 'Only items in this state; can be given several times. waiting, leased, abandoned, held, orphaned, unlisted, delayed, due, buried, duplicated'
complete -c rwq -n '__rwq_at mv' -l match -x -d 'Only items with this in their data'
complete -c rwq -n '__rwq_at mv' -l id-glob -x -d 'Only IDs that match'
complete -c rwq -n '__rwq_at mv' -l older-than -x -d 'Only items not used for so long'
complete -c rwq -n '__rwq_at mv' -s n -l limit -x -d 'The first N only; 0 for no limit'
complete -c rwq -n '__rwq_at mv' -l all -d 'All items that the verb is for, or of them all that match'
complete -c rwq -n '__rwq_at mv' -s 0 -l null -d 'IDs on stdin, and those of -o ids, end with NUL'
complete -c rwq -n '__rwq_at mv' -l to -x -a '(__rwq_queues)' -d 'The queue to move them to'
complete -c rwq -n '__rwq_at mv' -l force -d 'Also what has a lease, which ends: leased, delayed, buried items'
complete -c rwq -n '__rwq_at mv' -l yes -d 'Do not ask'
complete -c rwq -n '__rwq_at mv' -l dry-run -d 'Report what would be done, but change nothing'

# rwq purge
complete -c rwq -n '__rwq_at purge' -l yes -d 'Do not ask'
complete -c rwq -n '__rwq_at purge' -l dry-run -d 'Report what would be done, but change nothing'
complete -c rwq -n '__rwq_at purge' -s 0 -l null -d '-o ids ends each ID with NUL, unescaped'

# rwq undo
complete -c rwq -n '__rwq_at undo' -l anywhere -d 'Also on another server than they were taken from'
complete -c rwq -n '__rwq_at undo' -l dry-run -d 'Report what would be done, but change nothing'
complete -c rwq -n '__rwq_at undo' -s 0 -l null -d '-o ids ends each ID with NUL, unescaped'
complete -c rwq -n '__rwq_at undo; and test $__rwq_count -eq 0' -F

# rwq ls
complete -c rwq -n '__rwq_at ls' -s n -l limit -x -d 'How many at most; 0 for all'
complete -c rwq -n '__rwq_at ls' -l offset -x -d 'Leave out the first N'
complete -c rwq -n '__rwq_at ls' -l tail -d 'From the other end: newest first'
complete -c rwq -n '__rwq_at ls' -l data -d 'Read all of the data, for json, jsonl and csv'
complete -c rwq -n '__rwq_at ls' -l state -x -a 'waiting\\t leased\\t abandoned\\t held\\t orphaned\\t unlisted\\t delayed\\t due\\t buried\\t duplicated\\t ghost\\t wrong-type\\t' -d 'Only items in this state; can be given several times. waiting, leased, abandoned, held, orphaned, unlisted, delayed, due, buried, duplicated, ghost, wrong-type'
complete -c rwq -n '__rwq_at ls' -l match -x -d 'Only items with this in their data'
complete -c rwq -n '__rwq_at ls' -l id-glob -x -d 'Only IDs that match'
complete -c rwq -n '__rwq_at ls' -l older-than -x -d 'Only items not used for so long'
complete -c rwq -n '__rwq_at ls' -s 0 -l null -d '-o ids and -o data end each with NUL, unescaped'
complete -c rwq -n '__rwq_at ls; and test $__rwq_count -eq 0' -a 'waiting\\t processing\\t leased\\t abandoned\\t delayed\\t buried\\t all\\t'

# rwq leases
complete -c rwq -n '__rwq_at leases' -l holder -x -d 'Only leases of holders that match'
complete -c rwq -n '__rwq_at leases' -s n -l limit -x -d 'How many at most; 0 for all'
complete -c rwq -n '__rwq_at leases' -l data -d 'Read all of the data, for json, jsonl and csv'
complete -c rwq -n '__rwq_at leases' -s 0 -l null -d '-o ids and -o data end each with NUL, unescaped'

# rwq show
complete -c rwq -n '__rwq_at show' -l data -d 'Read and show all of the data'
complete -c rwq -n '__rwq_at show' -l eta -x -d 'Watch the queue this long, to say when a waiting item\'s turn comes'
complete -c rwq -n '__rwq_at show' -s 0 -l null -d 'IDs on stdin, and those of -o ids, end with NUL'

# rwq stats
complete -c rwq -n '__rwq_at stats' -l fast -d 'Only the lengths: costs the same however long they are'
complete -c rwq -n '__rwq_at stats' -l deep -d 'Walk the whole queue, to count orphans, duplicates, ghosts, stray leases, wrong types, returns and results; of returned items, to count only those that still exist'

# rwq queues
complete -c rwq -n '__rwq_at queues' -s 0 -l null -d '-o ids ends each name with NUL, unescaped'

# rwq wait
complete -c rwq -n '__rwq_at wait' -l until-empty -d 'No item waits, is in processing or is delayed; buried ones do not count. This is the default'
complete -c rwq -n '__rwq_at wait' -l below -x -d 'Fewer than N items wait'
complete -c rwq -n '__rwq_at wait' -l id -x -d 'This item is gone; can be given several times, for all'
complete -c rwq -n '__rwq_at wait' -l timeout -x -d 'Give up after this long. Else never'

# rwq clean
complete -c rwq -n '__rwq_at clean' -a 'light' -d 'Return abandoned items, those in processing without a lease, and promote delayed items that are due'
complete -c rwq -n '__rwq_at clean' -a 'deep' -d 'Walk the whole queue: also return orphans, and drop ghosts and second entries'

# rwq clean light
complete -c rwq -n '__rwq_at clean light' -l grace -x -d 'How long an item must look broken; longer than any worker takes from its pop to its lease'
complete -c rwq -n '__rwq_at clean light' -l bury-after -x -d 'Bury items that cleans returned N times already, instead of returning them again'
complete -c rwq -n '__rwq_at clean light' -l dry-run -d 'Report what would be done, but change nothing'
complete -c rwq -n '__rwq_at clean light' -s 0 -l null -d '-o ids ends each ID with NUL, unescaped'

# rwq clean deep
complete -c rwq -n '__rwq_at clean deep' -l grace -x -d 'How long an item must look broken; longer than any worker takes from its pop to its lease'
complete -c rwq -n '__rwq_at clean deep' -l bury-after -x -d 'Bury items that cleans returned N times already, instead of returning them again'
complete -c rwq -n '__rwq_at clean deep' -l dry-run -d 'Report what would be done, but change nothing'
complete -c rwq -n '__rwq_at clean deep' -s 0 -l null -d '-o ids ends each ID with NUL, unescaped'

# rwq doctor
complete -c rwq -n '__rwq_at doctor' -l fix -d 'Cure what needs no decision; safe beside workers'
complete -c rwq -n '__rwq_at doctor' -l dry-run -d 'With --fix: report what it would do, change nothing'
complete -c rwq -n '__rwq_at doctor' -l grace -x -d 'How long an item must look broken; longer than any worker takes from its pop to its lease'
complete -c rwq -n '__rwq_at doctor' -l only -x -d 'Look for these alone'
complete -c rwq -n '__rwq_at doctor' -l skip -x -d 'Do not look for these'
complete -c rwq -n '__rwq_at doctor' -s 0 -l null -d '-o ids ends each ID with NUL, unescaped'

# rwq check
complete -c rwq -n '__rwq_at check' -l waiting-warn -x -d 'WARNING if more items wait'
complete -c rwq -n '__rwq_at check' -l waiting-critical -x -d 'CRITICAL if more items wait'
complete -c rwq -n '__rwq_at check' -l age-warn -x -d 'WARNING if the next item waits for longer'
complete -c rwq -n '__rwq_at check' -l age-critical -x -d 'CRITICAL if the next item waits for longer'
complete -c rwq -n '__rwq_at check' -l abandoned-warn -x -d 'WARNING if more are abandoned'
complete -c rwq -n '__rwq_at check' -l abandoned-critical -x -d 'CRITICAL if more are abandoned'
complete -c rwq -n '__rwq_at check' -l processing-warn -x -d 'WARNING if more are in processing'
complete -c rwq -n '__rwq_at check' -l processing-critical -x -d 'CRITICAL if more are in processing'
complete -c rwq -n '__rwq_at check' -l delayed-warn -x -d 'WARNING if more are delayed'
complete -c rwq -n '__rwq_at check' -l delayed-critical -x -d 'CRITICAL if more are delayed'
complete -c rwq -n '__rwq_at check' -l buried-warn -x -d 'WARNING if more are buried'
complete -c rwq -n '__rwq_at check' -l buried-critical -x -d 'CRITICAL if more are buried'
complete -c rwq -n '__rwq_at check' -l orphaned-warn -x -d 'WARNING if more are orphaned; needs --deep'
complete -c rwq -n '__rwq_at check' -l orphaned-critical -x -d 'CRITICAL if more are orphaned; needs --deep'
complete -c rwq -n '__rwq_at check' -l deep -d 'Walk the whole queue, to count orphans'
complete -c rwq -n '__rwq_at check' -l format -x -a 'nagios\\t prometheus\\t' -d 'nagios: one line with performance data. prometheus: all numbers for a textfile collector, of every -q'

# rwq export
complete -c rwq -n '__rwq_at export' -l state -x -a 'waiting\\t leased\\t abandoned\\t held\\t orphaned\\t unlisted\\t delayed\\t due\\t buried\\t duplicated\\t ghost\\t wrong-type\\t' -d 'Only items in this state; can be given several times. waiting, leased, abandoned, held, orphaned, unlisted, delayed, due, buried, duplicated'
complete -c rwq -n '__rwq_at export' -l match -x -d 'Only items with this in their data'
complete -c rwq -n '__rwq_at export' -l id-glob -x -d 'Only IDs that match'
complete -c rwq -n '__rwq_at export' -l older-than -x -d 'Only items not used for so long'
complete -c rwq -n '__rwq_at export' -s n -l limit -x -d 'The first N only; 0 for no limit'
complete -c rwq -n '__rwq_at export' -l all -d 'All items that the verb is for, or of them all that match'
complete -c rwq -n '__rwq_at export' -s 0 -l null -d 'IDs on stdin, and those of -o ids, end with NUL'

# rwq import
complete -c rwq -n '__rwq_at import' -l on-conflict -x -a 'fail\\t skip\\t replace\\t' -d 'An ID that exists with other data: fail counts it as a failure, skip leaves it, replace puts the new one in its place. A result that is there stays, but for replace'
complete -c rwq -n '__rwq_at import' -l strict -d 'Nothing more after the first bad line'
complete -c rwq -n '__rwq_at import' -l dry-run -d 'Report what would be done, but change nothing'
complete -c rwq -n '__rwq_at import' -s 0 -l null -d '-o ids ends each ID with NUL, unescaped'
complete -c rwq -n '__rwq_at import; and test $__rwq_count -eq 0' -F

# rwq local
complete -c rwq -n '__rwq_at local' -a 'start' -d 'Start the embedded server unless it runs'
complete -c rwq -n '__rwq_at local' -a 'stop' -d 'Stop the embedded server and keep its data'
complete -c rwq -n '__rwq_at local' -a 'status' -d 'Show whether the embedded server runs, and where'

# rwq local start
complete -c rwq -n '__rwq_at local start; and test $__rwq_count -eq 0' -a '(__fish_complete_directories)'

# rwq local stop
complete -c rwq -n '__rwq_at local stop; and test $__rwq_count -eq 0' -a '(__fish_complete_directories)'

# rwq local status
complete -c rwq -n '__rwq_at local status; and test $__rwq_count -eq 0' -a '(__fish_complete_directories)'

# rwq completion
complete -c rwq -n '__rwq_at completion' -l install -d 'Write it where the shell looks for it, and print where'
complete -c rwq -n '__rwq_at completion; and test $__rwq_count -eq 0' -a 'bash\\t zsh\\t fish\\t'
