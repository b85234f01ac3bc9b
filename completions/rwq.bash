# bash completion for rwq. It needs bash 3.2 or later, and nothing else.
# Made by: python -m rwq_cli.completion completions/

# Sets rwq_commands, the commands below the one in $1, and rwq_options, the options it takes.
__rwq_names() {
    rwq_commands=() rwq_options=()
    case $1 in
    '')
        rwq_commands=(add lease complete result touch release bury kick rm mv purge undo ls leases show stats queues wait clean doctor check export import local demo completion)
        rwq_options=(-V --version)
        ;;
    add)
        rwq_options=(-f --file --format --id --id-from --unique --delay --at --strict --dry-run -0 --null)
        ;;
    lease)
        rwq_options=(-n --number --for --id --wait --timeout --fair --dry-run -0 --null)
        ;;
    complete)
        rwq_options=(--state --match --id-glob --older-than -n --limit --all -0 --null --owner --result --rejected --result-ttl --yes --dry-run)
        ;;
    result)
        rwq_options=(--wait --timeout)
        ;;
    touch)
        rwq_options=(--state --match --id-glob --older-than -n --limit --all -0 --null --for --dry-run)
        ;;
    release)
        rwq_options=(--state --match --id-glob --older-than -n --limit --all -0 --null --front --delay --force --yes --dry-run)
        ;;
    bury)
        rwq_options=(--state --match --id-glob --older-than -n --limit --all -0 --null --reason --force --yes --dry-run)
        ;;
    kick)
        rwq_options=(--state --match --id-glob --older-than -n --limit --all -0 --null --dry-run)
        ;;
    rm)
        rwq_options=(--state --match --id-glob --older-than -n --limit --all -0 --null --yes --dry-run)
        ;;
    mv)
        rwq_options=(--state --match --id-glob --older-than -n --limit --all -0 --null --to --force --yes --dry-run)
        ;;
    purge)
        rwq_options=(--yes --dry-run -0 --null)
        ;;
    undo)
        rwq_options=(--anywhere --dry-run -0 --null)
        ;;
    ls)
        rwq_options=(-n --limit --offset --tail --data --state --match --id-glob --older-than -0 --null)
        ;;
    leases)
        rwq_options=(--holder -n --limit --data -0 --null)
        ;;
    show)
        rwq_options=(--data --eta -0 --null)
        ;;
    stats)
        rwq_options=(--fast --deep)
        ;;
    queues)
        rwq_options=(-0 --null)
        ;;
    wait)
        rwq_options=(--until-empty --below --id --timeout)
        ;;
    clean)
        rwq_commands=(light deep)
        ;;
    'clean light')
        rwq_options=(--grace --bury-after --dry-run -0 --null)
        ;;
    'clean deep')
        rwq_options=(--grace --bury-after --dry-run -0 --null)
        ;;
    doctor)
        rwq_options=(--fix --dry-run --grace --only --skip -0 --null)
        ;;
    check)
        rwq_options=(--waiting-warn --waiting-critical --age-warn --age-critical --abandoned-warn --abandoned-critical --processing-warn --processing-critical --delayed-warn --delayed-critical --buried-warn --buried-critical --orphaned-warn --orphaned-critical --deep --format)
        ;;
    export)
        rwq_options=(--state --match --id-glob --older-than -n --limit --all -0 --null)
        ;;
    import)
        rwq_options=(--on-conflict --strict --dry-run -0 --null)
        ;;
    local)
        rwq_commands=(start stop status)
        ;;
    completion)
        rwq_options=(--install)
        ;;
    'local start' | 'local stop' | 'local status' | demo) ;;
    *) return ;;
    esac
    rwq_options+=(-q --queue -u --url -o --output --password-file --tls-ca --tls-cert --tls-key --tls-insecure --no-color -v --verbose --debug -h --help)
}

# Sets rwq_kind, what the option $2 of the command $1 takes, and rwq_choices. rwq_is_server is set
# if the option says which server to ask.
__rwq_option() {
    rwq_kind=none rwq_choices=() rwq_is_server=
    case "$1 $2" in
    'add -f' | 'add --file') rwq_kind=file ;;
    'add --format') rwq_kind=choices rwq_choices=(lines jsonl nul raw) ;;
    'add --id') rwq_kind=other ;;
    'add --id-from') rwq_kind=other ;;
    'add --delay') rwq_kind=other ;;
    'add --at') rwq_kind=other ;;
    'lease -n' | 'lease --number') rwq_kind=other ;;
    'lease --for') rwq_kind=other ;;
    'lease --id') rwq_kind=other ;;
    'lease --timeout') rwq_kind=other ;;
    'complete --state') rwq_kind=choices rwq_choices=(waiting leased abandoned held orphaned unlisted delayed due buried duplicated ghost wrong-type) ;;
    'complete --match') rwq_kind=other ;;
    'complete --id-glob') rwq_kind=other ;;
    'complete --older-than') rwq_kind=other ;;
    'complete -n' | 'complete --limit') rwq_kind=other ;;
    'complete --owner') rwq_kind=other ;;
    'complete --result') rwq_kind=file ;;
    'complete --result-ttl') rwq_kind=other ;;
    'result --timeout') rwq_kind=other ;;
    'touch --state') rwq_kind=choices rwq_choices=(waiting leased abandoned held orphaned unlisted delayed due buried duplicated ghost wrong-type) ;;
    'touch --match') rwq_kind=other ;;
    'touch --id-glob') rwq_kind=other ;;
    'touch --older-than') rwq_kind=other ;;
    'touch -n' | 'touch --limit') rwq_kind=other ;;
    'touch --for') rwq_kind=other ;;
    'release --state') rwq_kind=choices rwq_choices=(waiting leased abandoned held orphaned unlisted delayed due buried duplicated ghost wrong-type) ;;
    'release --match') rwq_kind=other ;;
    'release --id-glob') rwq_kind=other ;;
    'release --older-than') rwq_kind=other ;;
    'release -n' | 'release --limit') rwq_kind=other ;;
    'release --delay') rwq_kind=other ;;
    'bury --state') rwq_kind=choices rwq_choices=(waiting leased abandoned held orphaned unlisted delayed due buried duplicated ghost wrong-type) ;;
    'bury --match') rwq_kind=other ;;
    'bury --id-glob') rwq_kind=other ;;
    'bury --older-than') rwq_kind=other ;;
    'bury -n' | 'bury --limit') rwq_kind=other ;;
    'bury --reason') rwq_kind=other ;;
    'kick --state') rwq_kind=choices rwq_choices=(waiting leased abandoned held orphaned unlisted delayed due buried duplicated ghost wrong-type) ;;
    'kick --match') rwq_kind=other ;;
    'kick --id-glob') rwq_kind=other ;;
    'kick --older-than') rwq_kind=other ;;
    'kick -n' | 'kick --limit') rwq_kind=other ;;
    'rm --state') rwq_kind=choices rwq_choices=(waiting leased abandoned held orphaned unlisted delayed due buried duplicated ghost wrong-type) ;;
    'rm --match') rwq_kind=other ;;
    'rm --id-glob') rwq_kind=other ;;
    'rm --older-than') rwq_kind=other ;;
    'rm -n' | 'rm --limit') rwq_kind=other ;;
    'mv --state') rwq_kind=choices rwq_choices=(waiting leased abandoned held orphaned unlisted delayed due buried duplicated ghost wrong-type) ;;
    'mv --match') rwq_kind=other ;;
    'mv --id-glob') rwq_kind=other ;;
    'mv --older-than') rwq_kind=other ;;
    'mv -n' | 'mv --limit') rwq_kind=other ;;
    'mv --to') rwq_kind=queue ;;
    'ls -n' | 'ls --limit') rwq_kind=other ;;
    'ls --offset') rwq_kind=other ;;
    'ls --state') rwq_kind=choices rwq_choices=(waiting leased abandoned held orphaned unlisted delayed due buried duplicated ghost wrong-type) ;;
    'ls --match') rwq_kind=other ;;
    'ls --id-glob') rwq_kind=other ;;
    'ls --older-than') rwq_kind=other ;;
    'leases --holder') rwq_kind=other ;;
    'leases -n' | 'leases --limit') rwq_kind=other ;;
    'show --eta') rwq_kind=other ;;
    'wait --below') rwq_kind=other ;;
    'wait --id') rwq_kind=other ;;
    'wait --timeout') rwq_kind=other ;;
    'clean light --grace') rwq_kind=other ;;
    'clean light --bury-after') rwq_kind=other ;;
    'clean deep --grace') rwq_kind=other ;;
    'clean deep --bury-after') rwq_kind=other ;;
    'doctor --grace') rwq_kind=other ;;
    'doctor --only') rwq_kind=other ;;
    'doctor --skip') rwq_kind=other ;;
    'check --waiting-warn') rwq_kind=other ;;
    'check --waiting-critical') rwq_kind=other ;;
    'check --age-warn') rwq_kind=other ;;
    'check --age-critical') rwq_kind=other ;;
    'check --abandoned-warn') rwq_kind=other ;;
    'check --abandoned-critical') rwq_kind=other ;;
    'check --processing-warn') rwq_kind=other ;;
    'check --processing-critical') rwq_kind=other ;;
    'check --delayed-warn') rwq_kind=other ;;
    'check --delayed-critical') rwq_kind=other ;;
    'check --buried-warn') rwq_kind=other ;;
    'check --buried-critical') rwq_kind=other ;;
    'check --orphaned-warn') rwq_kind=other ;;
    'check --orphaned-critical') rwq_kind=other ;;
    'check --format') rwq_kind=choices rwq_choices=(nagios prometheus) ;;
    'export --state') rwq_kind=choices rwq_choices=(waiting leased abandoned held orphaned unlisted delayed due buried duplicated ghost wrong-type) ;;
    'export --match') rwq_kind=other ;;
    'export --id-glob') rwq_kind=other ;;
    'export --older-than') rwq_kind=other ;;
    'export -n' | 'export --limit') rwq_kind=other ;;
    'import --on-conflict') rwq_kind=choices rwq_choices=(fail skip replace) ;;
    *' -q' | *' --queue') rwq_kind=queue ;;
    *' -u' | *' --url') rwq_kind=other rwq_is_server=1 ;;
    *' -o' | *' --output') rwq_kind=choices rwq_choices=(table plain json jsonl csv ids data) ;;
    *' --password-file') rwq_kind=file rwq_is_server=1 ;;
    *' --tls-ca') rwq_kind=file rwq_is_server=1 ;;
    *' --tls-cert') rwq_kind=file rwq_is_server=1 ;;
    *' --tls-key') rwq_kind=file rwq_is_server=1 ;;
    *' --tls-insecure') rwq_is_server=1 ;;
    esac
}

# Sets rwq_kind, what argument number $2 (from 0) of the command $1 is, and rwq_choices.
__rwq_argument() {
    rwq_kind=other rwq_choices=()
    case "$1 $2" in
    'undo '0) rwq_kind=file ;;
    'ls '0) rwq_kind=choices rwq_choices=(waiting processing leased abandoned delayed buried all) ;;
    'import '0) rwq_kind=file ;;
    'local start '0) rwq_kind=directory ;;
    'local stop '0) rwq_kind=directory ;;
    'local status '0) rwq_kind=directory ;;
    'completion '0) rwq_kind=choices rwq_choices=(bash zsh fish) ;;
    esac
}

# Reads the line up to the cursor as the shell would, but runs nothing of it. Sets
#   rwq_words   the finished words, without their quotes
#   rwq_dark    for each of them, 1 if only running something would tell what it is
#   rwq_cur     the word at the cursor, without its quotes
#   rwq_kept    how many of its characters stand before the part that readline will replace
#   rwq_quote   the quote that is open at the cursor, if any
#   rwq_target  1 if the word at the cursor is the target of a redirection
__rwq_read() {
    local rwq_rest=${COMP_LINE:0:COMP_POINT} rwq_run rwq_char rwq_name
    local rwq_begun= rwq_unknown= rwq_outer=0
    rwq_words=() rwq_dark=() rwq_cur= rwq_kept=0 rwq_quote= rwq_target=
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
            # Readline starts its part behind a quote that is open, but not behind a closed one.
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
            # The number of a file that is redirected is no word.
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
            rwq_dark[${#rwq_words[@]}]=$rwq_unknown
            rwq_words[${#rwq_words[@]}]=$rwq_cur
        fi
        rwq_target=
    fi
    rwq_cur= rwq_kept=0 rwq_begun= rwq_unknown=
}

# Drops from rwq_rest what belongs to a parenthesis that was just opened.
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

# Follows the finished words from the first command on. Sets
#   rwq_path     the words that name the command, or ? if there is no such command
#   rwq_count    how many arguments it has been given
#   rwq_ended    1 behind a --
#   rwq_pending  the option whose value comes next
#   rwq_server   the options that say which server to ask, with their values
#   rwq_blind    1 if only running something would tell which server that is
__rwq_follow() {
    local rwq_number rwq_word rwq_inner
    rwq_path= rwq_count=0 rwq_ended= rwq_pending= rwq_server=() rwq_blind=
    __rwq_names ''
    for ((rwq_number = 1; rwq_number < ${#rwq_words[@]}; rwq_number++)); do
        rwq_word=${rwq_words[rwq_number]}
        if [[ -n $rwq_pending ]]; then
            __rwq_option "$rwq_path" "$rwq_pending"
            __rwq_note_server "$rwq_pending" "$rwq_word"
            rwq_pending=
        elif [[ -n $rwq_ended || $rwq_word != -?* ]]; then
            if [[ ${#rwq_commands[@]} -eq 0 ]]; then
                rwq_count=$((rwq_count + 1))
                continue
            fi
            for rwq_inner in "${rwq_commands[@]}" ''; do
                [[ $rwq_inner == "$rwq_word" ]] && break
            done
            rwq_path=${rwq_path:+$rwq_path }${rwq_inner:-?} rwq_ended=
            __rwq_names "$rwq_path"
        elif [[ $rwq_word == -- ]]; then
            rwq_ended=1
        else
            __rwq_open_option "$rwq_word"
            if [[ $rwq_kind != none && -z $rwq_head ]]; then
                rwq_pending=$rwq_name
            else
                __rwq_note_server "$rwq_name" "${rwq_word#"$rwq_head"}"
            fi
        fi
    done
}

# Takes the word $1, an option, apart: one long one, or a row of short ones. Sets rwq_name, the last
# option in it, what __rwq_option sets, and rwq_head, what stands before a value in the same word.
__rwq_open_option() {
    local rwq_at
    rwq_name=$1 rwq_head=
    case $1 in
    --*=*)
        rwq_name=${1%%=*} rwq_head=$rwq_name=
        __rwq_option "$rwq_path" "$rwq_name"
        ;;
    --*) __rwq_option "$rwq_path" "$1" ;;
    *)
        for ((rwq_at = 1; rwq_at < ${#1}; rwq_at++)); do
            rwq_name=-${1:rwq_at:1}
            __rwq_option "$rwq_path" "$rwq_name"
            [[ $rwq_kind == none ]] && continue
            [[ $rwq_at -lt $((${#1} - 1)) ]] && rwq_head=${1:0:rwq_at+1}
            break
        done
        ;;
    esac
}

# Remembers the option $1 with its value $2 if it says which server to ask.
__rwq_note_server() {
    [[ -z $rwq_is_server ]] && return
    [[ -n ${rwq_dark[rwq_number]} ]] && rwq_blind=1
    rwq_server+=("$1")
    [[ $rwq_kind == none ]] || rwq_server+=("$2")
}

# Offers those of the words after $1 that, behind $1, begin with what is typed.
__rwq_offer() {
    local rwq_before=$1 rwq_word
    shift
    for rwq_word; do
        rwq_word=$rwq_before$rwq_word
        if [[ ${rwq_word:0:${#rwq_cur}} == "$rwq_cur" ]]; then
            __rwq_quoted "${rwq_word:rwq_kept}"
            COMPREPLY+=("$rwq_plain")
        fi
    done
}

# Sets rwq_plain to $1 as it has to be written at the cursor.
__rwq_quoted() {
    local rwq_at rwq_char
    rwq_plain=$1
    [[ $1 == *[!A-Za-z0-9_./:=@%+,-]* ]] || return 0
    rwq_plain=
    for ((rwq_at = 0; rwq_at < ${#1}; rwq_at++)); do
        rwq_char=${1:rwq_at:1}
        case $rwq_quote$rwq_char in
        "''") rwq_char="'\\''" ;;
        '"'[\"\\\$\`]) rwq_char=\\$rwq_char ;;
        # Between double quotes, nothing else keeps it from being a word of the history.
        '"!') [[ $- == *H* ]] && rwq_char="\"'!'\"" ;;
        \"?* | \'?*) ;;
        [[:space:]] | [\"\'\\\$\`\|\&\;\<\>\(\)\{\}\[\]*?!#~^]) rwq_char=\\$rwq_char ;;
        esac
        rwq_plain+=$rwq_char
    done
}

# Offers, behind $1, the names of the queues on the server that the line or the environment says.
__rwq_offer_queues() {
    local rwq_run=(rwq) rwq_name
    [[ -n $rwq_blind ]] && return
    # The one that was typed may not be the one on PATH; an alias is neither.
    type -P -- "${rwq_words[0]}" >/dev/null && rwq_run=("${rwq_words[0]}")
    type -P timeout >/dev/null && rwq_run=(timeout 2 "${rwq_run[@]}")
    while IFS= read -r rwq_name; do
        # A name with a control character is printed escaped, so that this would not be the name.
        [[ -z $rwq_name || $rwq_name == *\\[nrtuUx]* ]] || __rwq_offer "$1" "$rwq_name"
    done <<<"$("${rwq_run[@]}" queues -o ids ${rwq_server[@]+"${rwq_server[@]}"} \
        2>/dev/null </dev/null)"
}

_rwq() {
    local rwq_words rwq_dark rwq_cur rwq_kept rwq_quote rwq_target
    local rwq_commands rwq_options rwq_kind rwq_choices rwq_is_server
    local rwq_path rwq_count rwq_ended rwq_pending rwq_server rwq_blind
    local rwq_name rwq_head= rwq_plain
    COMPREPLY=()
    __rwq_read
    __rwq_follow
    # An empty answer leaves files to readline, which knows best how to write them.
    [[ -n $rwq_target ]] && return
    if [[ -n $rwq_pending ]]; then
        __rwq_option "$rwq_path" "$rwq_pending"
    elif [[ -z $rwq_ended && $rwq_cur == -* ]]; then
        __rwq_open_option "$rwq_cur"
        if [[ -z $rwq_head ]]; then
            rwq_kind=choices rwq_choices=(${rwq_options[@]+"${rwq_options[@]}"})
        fi
    elif [[ ${#rwq_commands[@]} -gt 0 ]]; then
        rwq_kind=choices rwq_choices=("${rwq_commands[@]}")
    else
        __rwq_argument "$rwq_path" "$rwq_count"
    fi
    case $rwq_kind in
    file) return ;;
    directory)
        compopt -o dirnames +o default 2>/dev/null
        return
        ;;
    queue) __rwq_offer_queues "$rwq_head" ;;
    choices) __rwq_offer "$rwq_head" ${rwq_choices[@]+"${rwq_choices[@]}"} ;;
    esac
    # Nothing else is a file. Bash 3.2 has no compopt, and goes on to offer files.
    compopt +o default 2>/dev/null
    return 0
}

complete -o bashdefault -o default -F _rwq rwq
