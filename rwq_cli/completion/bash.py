"""The completion script for bash, 3.2 or later, that needs no other package.

The command line is read here, in the script, from COMP_LINE: what bash has made of it in
COMP_WORDS differs between its versions and with COMP_WORDBREAKS.
"""

import shlex
from collections.abc import Iterable, Sequence

from rwq_cli.completion.spec import Command, Kind, Option, Spec, Value


def script(spec: Spec) -> str:
    """The whole script."""
    return (
        _HEAD
        + _table_of_commands(spec)
        + _table_of_options(spec)
        + _table_of_arguments(spec)
        + _REST
    )


def _table_of_commands(spec: Spec) -> str:
    cases = []
    bare = []
    for command in spec.all_commands():
        arrays = []
        if command.commands:
            arrays.append(f"rwq_commands={_array(inner.name for inner in command.commands)}")
        if command.options:
            arrays.append(f"rwq_options={_array(_names(command.options))}")
        if arrays:
            body = "".join(f"        {array}\n" for array in arrays)
            cases.append(f"    {_key(command)})\n{body}        ;;\n")
        else:
            bare.append(_key(command))
    if bare:
        cases.append(f"    {' | '.join(bare)}) ;;\n")
    return f"""\
# Sets rwq_commands, the commands below the one in $1, and rwq_options, the options it takes.
__rwq_names() {{
    rwq_commands=() rwq_options=()
    case $1 in
{"".join(cases)}    *) return ;;
    esac
    rwq_options+={_array(_names(spec.common))}
}}

"""


def _table_of_options(spec: Spec) -> str:
    rows = []
    for command in spec.all_commands():
        for option in command.options:
            rows.append(([_key(command, f" {name}") for name in option.names], _facts(option)))
    for option in spec.common:
        rows.append(([f"*{shlex.quote(f' {name}')}" for name in option.names], _facts(option)))
    text = "".join(f"    {' | '.join(patterns)}) {facts} ;;\n" for patterns, facts in rows if facts)
    return f"""\
# Sets rwq_kind, what the option $2 of the command $1 takes, and rwq_choices. rwq_is_server is set
# if the option says which server to ask.
__rwq_option() {{
    rwq_kind=none rwq_choices=() rwq_is_server=
    case "$1 $2" in
{text}    esac
}}

"""


def _table_of_arguments(spec: Spec) -> str:
    rows = []
    for command in spec.all_commands():
        for number, argument in enumerate(command.arguments):
            if argument.value.kind is Kind.OTHER:
                continue
            place = f"{_key(command, ' ')}{'*' if argument.repeatable else number}"
            rows.append(f"    {place}) ")
            rows.append(f"{_value(argument.value)} ;;\n")
    return f"""\
# Sets rwq_kind, what argument number $2 (from 0) of the command $1 is, and rwq_choices.
__rwq_argument() {{
    rwq_kind=other rwq_choices=()
    case "$1 $2" in
{"".join(rows)}    esac
}}

"""


def _facts(option: Option) -> str:
    facts = [] if option.value.kind is Kind.NONE else [_value(option.value)]
    if option.about_server:
        facts.append("rwq_is_server=1")
    return " ".join(facts)


def _value(value: Value) -> str:
    if value.kind is Kind.CHOICES:
        return f"rwq_kind=choices rwq_choices={_array(value.choices)}"
    return f"rwq_kind={value.kind}"


def _names(options: Sequence[Option]) -> list[str]:
    return [name for option in options for name in option.names]


def _key(command: Command, more: str = "") -> str:
    """How a command is named in the tables, with what follows its name, as a shell word."""
    return shlex.quote(f"{' '.join(command.path)}{more}")


def _array(words: Iterable[str]) -> str:
    return f"({' '.join(map(shlex.quote, words))})"


_HEAD = """\
# bash completion for rwq. It needs bash 3.2 or later, and nothing else.
# Made by: python -m rwq_cli.completion completions/

"""

_REST = r"""# Reads the line up to the cursor as the shell would, but runs nothing of it. Sets
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
"""
