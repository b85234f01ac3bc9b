# bash completion for rwq. It needs bash 3.2 or later, and nothing else.
# Made by: python -m rwq_cli.completion completions/

# Sets what the command $1 takes (all words of its name; none for rwq itself):
#   rwq_commands   its subcommands, separated by commas
#   rwq_options    its options: NAME, or NAME=KIND if there is a value
#   rwq_arguments  the KIND of each argument
#   rwq_more       the KIND of any number of further arguments
# KIND is FILE, DIRECTORY, QUEUE, OTHER, or all possible values, separated by commas.
__rwq_table() {
    rwq_commands= rwq_options=() rwq_arguments=() rwq_more=OTHER
    case $1 in
    '')
        rwq_commands=add,lease,complete,result,touch,release,bury,kick,rm,mv,purge,undo,ls,leases,show,stats,queues,wait,clean,doctor,check,export,import,local,demo,completion
        rwq_options=(-V --version)
        ;;
    add)
        rwq_options=(-f=FILE --file=FILE --format=lines,jsonl,nul,raw --id=OTHER --id-from=OTHER --unique --delay=OTHER --at=OTHER --strict --dry-run -0 --null)
        ;;
    lease)
        rwq_options=(-n=OTHER --number=OTHER --for=OTHER --id=OTHER --wait --timeout=OTHER --fair --dry-run -0 --null)
        ;;
    complete)
        rwq_options=(--state=waiting,leased,abandoned,held,orphaned,unlisted,delayed,due,buried,duplicated,ghost,wrong-type --match=OTHER --id-glob=OTHER --older-than=OTHER -n=OTHER --limit=OTHER --all -0 --null --owner=OTHER --result=FILE --rejected --result-ttl=OTHER --yes --dry-run)
        ;;
    result)
        rwq_options=(--wait --timeout=OTHER)
        rwq_arguments+=(OTHER)
        ;;
    touch)
        rwq_options=(--state=waiting,leased,abandoned,held,orphaned,unlisted,delayed,due,buried,duplicated,ghost,wrong-type --match=OTHER --id-glob=OTHER --older-than=OTHER -n=OTHER --limit=OTHER --all -0 --null --for=OTHER --dry-run)
        ;;
    release)
        rwq_options=(--state=waiting,leased,abandoned,held,orphaned,unlisted,delayed,due,buried,duplicated,ghost,wrong-type --match=OTHER --id-glob=OTHER --older-than=OTHER -n=OTHER --limit=OTHER --all -0 --null --front --delay=OTHER --force --yes --dry-run)
        ;;
    bury)
        rwq_options=(--state=waiting,leased,abandoned,held,orphaned,unlisted,delayed,due,buried,duplicated,ghost,wrong-type --match=OTHER --id-glob=OTHER --older-than=OTHER -n=OTHER --limit=OTHER --all -0 --null --reason=OTHER --force --yes --dry-run)
        ;;
    kick)
        rwq_options=(--state=waiting,leased,abandoned,held,orphaned,unlisted,delayed,due,buried,duplicated,ghost,wrong-type --match=OTHER --id-glob=OTHER --older-than=OTHER -n=OTHER --limit=OTHER --all -0 --null --dry-run)
        ;;
    rm)
        rwq_options=(--state=waiting,leased,abandoned,held,orphaned,unlisted,delayed,due,buried,duplicated,ghost,wrong-type --match=OTHER --id-glob=OTHER --older-than=OTHER -n=OTHER --limit=OTHER --all -0 --null --yes --dry-run)
        ;;
    mv)
        rwq_options=(--state=waiting,leased,abandoned,held,orphaned,unlisted,delayed,due,buried,duplicated,ghost,wrong-type --match=OTHER --id-glob=OTHER --older-than=OTHER -n=OTHER --limit=OTHER --all -0 --null --to=QUEUE --force --yes --dry-run)
        ;;
    purge)
        rwq_options=(--yes --dry-run -0 --null)
        ;;
    undo)
        rwq_options=(--anywhere --dry-run -0 --null)
        rwq_arguments+=(FILE)
        ;;
    ls)
        rwq_options=(-n=OTHER --limit=OTHER --offset=OTHER --tail --data --state=waiting,leased,abandoned,held,orphaned,unlisted,delayed,due,buried,duplicated,ghost,wrong-type --match=OTHER --id-glob=OTHER --older-than=OTHER -0 --null)
        rwq_arguments+=(waiting,processing,leased,abandoned,delayed,buried,all)
        ;;
    leases)
        rwq_options=(--holder=OTHER -n=OTHER --limit=OTHER --data -0 --null)
        ;;
    show)
        rwq_options=(--data --eta=OTHER -0 --null)
        ;;
    stats)
        rwq_options=(--fast --deep)
        ;;
    queues)
        rwq_options=(-0 --null)
        rwq_arguments+=(OTHER)
        ;;
    wait)
        rwq_options=(--until-empty --below=OTHER --id=OTHER --timeout=OTHER)
        ;;
    clean)
        rwq_commands=light,deep
        ;;
    'clean light')
        rwq_options=(--grace=OTHER --bury-after=OTHER --dry-run -0 --null)
        ;;
    'clean deep')
        rwq_options=(--grace=OTHER --bury-after=OTHER --dry-run -0 --null)
        ;;
    doctor)
        rwq_options=(--fix --dry-run --grace=OTHER --only=OTHER --skip=OTHER -0 --null)
        ;;
    check)
        rwq_options=(--waiting-warn=OTHER --waiting-critical=OTHER --age-warn=OTHER --age-critical=OTHER --abandoned-warn=OTHER --abandoned-critical=OTHER --processing-warn=OTHER --processing-critical=OTHER --delayed-warn=OTHER --delayed-critical=OTHER --buried-warn=OTHER --buried-critical=OTHER --orphaned-warn=OTHER --orphaned-critical=OTHER --deep --format=nagios,prometheus)
        ;;
    export)
        rwq_options=(--state=waiting,leased,abandoned,held,orphaned,unlisted,delayed,due,buried,duplicated,ghost,wrong-type --match=OTHER --id-glob=OTHER --older-than=OTHER -n=OTHER --limit=OTHER --all -0 --null)
        ;;
    import)
        rwq_options=(--on-conflict=fail,skip,replace --strict --dry-run -0 --null)
        rwq_arguments+=(FILE)
        ;;
    local)
        rwq_commands=start,stop,status
        ;;
    'local start')
        rwq_arguments+=(DIRECTORY)
        ;;
    'local stop')
        rwq_arguments+=(DIRECTORY)
        ;;
    'local status')
        rwq_arguments+=(DIRECTORY)
        ;;
    demo)
        ;;
    completion)
        rwq_options=(--install)
        rwq_arguments+=(bash,zsh,fish)
        ;;
    *) return ;;
    esac
    rwq_options+=(-q=QUEUE --queue=QUEUE -u=OTHER --url=OTHER -o=table,plain,json,jsonl,csv,ids,data --output=table,plain,json,jsonl,csv,ids,data --password-file=FILE --tls-ca=FILE --tls-cert=FILE --tls-key=FILE --tls-insecure --no-color -v --verbose --debug -h --help)
}

# Splits the line before the cursor into words as the shell would, but runs nothing in it. It uses
# COMP_LINE, because COMP_WORDS depends on the version of bash and on COMP_WORDBREAKS. Sets
#   rwq_words    the complete words, without quotes
#   rwq_dynamic  for each of them, 1 if its value is the output of a command
#   rwq_cur      the word at the cursor, without quotes
#   rwq_kept     how many of its characters precede the part that readline will replace
#   rwq_quote    the quote that is open at the cursor, if any
#   rwq_target   1 if the word at the cursor is the target of a redirection
__rwq_read() {
    local rwq_rest=${COMP_LINE:0:COMP_POINT} rwq_run rwq_char rwq_name
    local rwq_begun= rwq_unknown= rwq_outer=0
    rwq_words=() rwq_dynamic=() rwq_cur= rwq_kept=0 rwq_quote= rwq_target=
    while [[ -n $rwq_rest ]]; do
        case $rwq_quote in
        \') rwq_run=${rwq_rest%%\'*} ;;
        \") rwq_run=${rwq_rest%%[\"\\\$\`]*} ;;
        *) rwq_run=${rwq_rest%%[!A-Za-z0-9_./-]*} ;;
        esac
        if [[ -n $rwq_run ]]; then
            rwq_cur+=$rwq_run rwq_begun=1
            rwq_rest=${rwq_rest:${#rwq_run}}
            continue
        fi
        rwq_char=${rwq_rest:0:1}
        rwq_rest=${rwq_rest:1}
        case $rwq_quote$rwq_char in
        "''" | '""')
            # Readline replaces what follows an open quote, but not what follows a closed one.
            rwq_quote= rwq_kept=$rwq_outer
            ;;
        \" | \')
            rwq_quote=$rwq_char rwq_outer=$rwq_kept rwq_kept=${#rwq_cur} rwq_begun=1
            ;;
        \\ | '"\')
            rwq_char=${rwq_rest:0:1}
            rwq_rest=${rwq_rest:1}
            [[ -n $rwq_quote && $rwq_char != [\"\\\$\`] ]] && rwq_cur+=\\
            rwq_cur+=$rwq_char rwq_begun=1
            ;;
        \` | '"`')
            rwq_begun=1 rwq_unknown=1
            rwq_run=${rwq_rest%%\`*}
            rwq_rest=${rwq_rest:${#rwq_run}}
            rwq_rest=${rwq_rest:1}
            ;;
        \$ | '"$')
            rwq_begun=1
            case $rwq_quote$rwq_rest in
            '('* | '"('*)
                rwq_unknown=1 rwq_rest=${rwq_rest:1}
                __rwq_skip
                continue
                ;;
            \'*) continue ;;
            '{'* | '"{'*)
                rwq_name=${rwq_rest%%\}*} rwq_name=${rwq_name:1}
                rwq_rest=${rwq_rest:${#rwq_name}+1} rwq_rest=${rwq_rest:1}
                ;;
            *)
                rwq_name=${rwq_rest%%[!A-Za-z0-9_]*}
                rwq_rest=${rwq_rest:${#rwq_name}}
                ;;
            esac
            case $rwq_name in
            '') rwq_cur+=\$ ;;
            [0-9]* | *[!A-Za-z0-9_]*) rwq_unknown=1 ;;
            *) rwq_cur+=${!rwq_name-} ;;
            esac
            ;;
        [\<\>])
            if [[ $rwq_rest == '('* ]]; then
                rwq_begun=1 rwq_unknown=1 rwq_rest=${rwq_rest:1}
                __rwq_skip
                continue
            fi
            # The number of a redirected file is not a word.
            [[ $rwq_cur == *[!0-9]* ]] || rwq_begun= rwq_cur=
            __rwq_end_word
            rwq_run=${rwq_rest%%[!<>|\&]*}
            rwq_rest=${rwq_rest:${#rwq_run}}
            rwq_target=1
            ;;
        [[:space:]] | [\|\&\;\(\)])
            __rwq_end_word
            ;;
        \~)
            if [[ -z $rwq_begun && $rwq_rest == /* && -n ${HOME-} ]]; then
                rwq_cur=$HOME
            else
                rwq_cur+=\~
            fi
            rwq_begun=1
            ;;
        *)
            rwq_cur+=$rwq_char rwq_begun=1
            [[ ${COMP_WORDBREAKS-} == *"$rwq_char"* ]] && rwq_kept=${#rwq_cur}
            ;;
        esac
    done
}

__rwq_end_word() {
    if [[ -n $rwq_begun ]]; then
        if [[ -z $rwq_target ]]; then
            rwq_dynamic[${#rwq_words[@]}]=$rwq_unknown
            rwq_words[${#rwq_words[@]}]=$rwq_cur
        fi
        rwq_target=
    fi
    rwq_cur= rwq_kept=0 rwq_begun= rwq_unknown=
}

# Drops from rwq_rest the contents of a parenthesis that was just opened.
__rwq_skip() {
    local rwq_depth=1
    while [[ -n $rwq_rest && $rwq_depth -gt 0 ]]; do
        rwq_run=${rwq_rest%%[()]*}
        rwq_rest=${rwq_rest:${#rwq_run}}
        case $rwq_rest in
        \(*) rwq_depth=$((rwq_depth + 1)) ;;
        \)*) rwq_depth=$((rwq_depth - 1)) ;;
        esac
        rwq_rest=${rwq_rest:1}
    done
}

# Reads the complete words from the first option or command on. Sets
#   rwq_path     the words that name the command
#   rwq_count    how many arguments it has
#   rwq_ended    1 after a --
#   rwq_pending  the option whose value comes next
#   rwq_server   the options that select the server, with their values
#   rwq_blind    1 if the output of a command selects the server
__rwq_follow() {
    local rwq_number rwq_word
    rwq_path= rwq_count=0 rwq_ended= rwq_pending= rwq_server=() rwq_blind=
    __rwq_table ''
    for ((rwq_number = 1; rwq_number < ${#rwq_words[@]}; rwq_number++)); do
        rwq_word=${rwq_words[rwq_number]}
        if [[ -n $rwq_pending ]]; then
            __rwq_note_server "$rwq_pending" "$rwq_word"
            rwq_pending=
        elif [[ -z $rwq_ended && $rwq_word == -- ]]; then
            rwq_ended=1
        elif [[ -z $rwq_ended && $rwq_word == -?* ]]; then
            __rwq_split_option "$rwq_word"
            if [[ $rwq_kind != NONE && -z $rwq_head ]]; then
                rwq_pending=$rwq_name
            else
                __rwq_note_server "$rwq_name" ${rwq_head:+"${rwq_word#"$rwq_head"}"}
            fi
        elif [[ -n $rwq_commands ]]; then
            rwq_path=${rwq_path:+$rwq_path }$rwq_word rwq_ended=
            __rwq_table "$rwq_path"
        else
            rwq_count=$((rwq_count + 1))
        fi
    done
}

# Splits the word $1, a long option or several short ones. Sets rwq_name, the last option in it,
# rwq_kind, what it takes, and rwq_head, what precedes its value in the same word.
__rwq_split_option() {
    local rwq_at
    rwq_name=$1 rwq_head=
    if [[ $1 == --* ]]; then
        [[ $1 == *=* ]] && rwq_name=${1%%=*} rwq_head=${1%%=*}=
        __rwq_option "$rwq_name"
        return
    fi
    for ((rwq_at = 1; rwq_at < ${#1}; rwq_at++)); do
        rwq_name=-${1:rwq_at:1}
        __rwq_option "$rwq_name"
        if [[ $rwq_kind != NONE ]]; then
            [[ $rwq_at -lt $((${#1} - 1)) ]] && rwq_head=${1:0:rwq_at+1}
            break
        fi
    done
}

# Sets rwq_kind to the KIND of the option $1, or to NONE if it has no value.
__rwq_option() {
    local rwq_option
    rwq_kind=NONE
    for rwq_option in ${rwq_options[@]+"${rwq_options[@]}"}; do
        [[ $rwq_option == "$1="* ]] && rwq_kind=${rwq_option#*=}
    done
}

# Remembers the option $1, and its value $2 if it has one, if it selects the server.
__rwq_note_server() {
    case $1 in
    -u | --url | --password-file | --tls-ca | --tls-cert | --tls-key | --tls-insecure)
        rwq_server+=("$@")
        [[ -z ${rwq_dynamic[rwq_number]} ]] || rwq_blind=1
        ;;
    esac
}

# Offers $1 followed by each of the other arguments, if that begins with the word at the cursor.
__rwq_offer() {
    local rwq_before=$1 rwq_word
    shift
    for rwq_word; do
        rwq_word=$rwq_before$rwq_word
        if [[ ${rwq_word:0:${#rwq_cur}} == "$rwq_cur" ]]; then
            __rwq_quote_word "${rwq_word:rwq_kept}"
            COMPREPLY+=("$rwq_quoted")
        fi
    done
}

# Sets rwq_quoted to $1 as it must be written at the cursor.
__rwq_quote_word() {
    local rwq_at rwq_char
    rwq_quoted=$1
    [[ $1 == *[!A-Za-z0-9_./:=@%+,-]* ]] || return 0
    rwq_quoted=
    for ((rwq_at = 0; rwq_at < ${#1}; rwq_at++)); do
        rwq_char=${1:rwq_at:1}
        case $rwq_quote$rwq_char in
        "''") rwq_char="'\\''" ;;
        '"'[\"\\\$\`]) rwq_char=\\$rwq_char ;;
        # Between double quotes, only this prevents history expansion.
        '"!') [[ $- == *H* ]] && rwq_char="\"'!'\"" ;;
        \"?* | \'?*) ;;
        [[:space:]] | [\"\'\\\$\`\|\&\;\<\>\(\)\{\}\[\]*?!#~^]) rwq_char=\\$rwq_char ;;
        esac
        rwq_quoted+=$rwq_char
    done
}

# Offers $1 followed by the name of each queue on the server of the line or the environment.
__rwq_offer_queues() {
    local rwq_run=(rwq) rwq_name
    [[ -n $rwq_blind ]] && return
    # The typed program may not be the one in PATH; an alias is neither.
    type -P -- "${rwq_words[0]}" >/dev/null && rwq_run=("${rwq_words[0]}")
    type -P timeout >/dev/null && rwq_run=(timeout 2 "${rwq_run[@]}")
    while IFS= read -r rwq_name; do
        # A name with a control character is printed escaped, and cannot be used.
        [[ -z $rwq_name || $rwq_name == *\\[nrtuUx]* ]] || __rwq_offer "$1" "$rwq_name"
    done <<<"$("${rwq_run[@]}" queues -o ids ${rwq_server[@]+"${rwq_server[@]}"} \
        2>/dev/null </dev/null)"
}

_rwq() {
    local rwq_words rwq_dynamic rwq_cur rwq_kept rwq_quote rwq_target
    local rwq_commands rwq_options rwq_arguments rwq_more
    local rwq_path rwq_count rwq_ended rwq_pending rwq_server rwq_blind
    local rwq_name rwq_kind rwq_head rwq_quoted
    COMPREPLY=()
    __rwq_read
    __rwq_follow
    # An empty answer leaves files to readline, which quotes them correctly.
    [[ -n $rwq_target ]] && return
    rwq_head=
    if [[ -n $rwq_pending ]]; then
        __rwq_option "$rwq_pending"
    elif [[ -z $rwq_ended && $rwq_cur == -* ]]; then
        __rwq_split_option "$rwq_cur"
        if [[ -z $rwq_head ]]; then
            __rwq_offer '' ${rwq_options[@]+"${rwq_options[@]%%=*}"}
            rwq_kind=NONE
        fi
    else
        rwq_kind=${rwq_commands:-${rwq_arguments[rwq_count]-$rwq_more}}
    fi
    case $rwq_kind in
    FILE) return ;;
    DIRECTORY)
        compopt -o dirnames +o default 2>/dev/null
        return
        ;;
    QUEUE) __rwq_offer_queues "$rwq_head" ;;
    NONE | OTHER) ;;
    *)
        local IFS=,
        __rwq_offer "$rwq_head" $rwq_kind
        ;;
    esac
    # Readline must not offer files. Bash 3.2 has no compopt, and offers them.
    compopt +o default 2>/dev/null
    return 0
}

complete -o bashdefault -o default -F _rwq rwq
