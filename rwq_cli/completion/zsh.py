"""The completion script for zsh: a function for `fpath` that can be sourced as well."""

from collections.abc import Iterable

from rwq_cli.completion.spec import Argument, Command, Kind, Option, Spec, Value

_ACTIONS = {
    Kind.FILE: "_files",
    Kind.DIRECTORY: "_files -/",
    Kind.QUEUE: "_rwq_queues",
    # A blank says what is expected, and offers nothing.
    Kind.OTHER: " ",
}


def script(spec: Spec) -> str:
    """The whole script."""
    first = _FIRST.replace("COMMON", _lines(_option(option) for option in spec.common))
    functions = (
        _function(command, "" if command.path else first) for command in spec.all_commands()
    )
    return _HEAD + "".join(functions) + _functions(spec.common) + _TAIL


def _function(command: Command, first: str) -> str:
    """The function of one command, with what it does first."""
    specs = [_option(option) for option in command.options]
    specs += [
        _argument(number, argument) for number, argument in enumerate(command.arguments, start=1)
    ]
    body = f'_arguments -s -S "${{rwq_common[@]}}"{_continued(specs)}'
    if command.commands:
        below = _lines(_quoted(f"{inner.name}:{inner.help}") for inner in command.commands)
        first += f"    local -a rwq_commands=(\n{below}    )\n"
        body = f"_rwq_group {_name(command)}{_continued(specs)}"
    return f"{_name(command)}() {{\n{first}    {body}\n}}\n\n"


def _name(command: Command) -> str:
    """The function's name; two underscores keep it apart from those that are not a command's."""
    return "_rwq" + "".join(f"__{word}" for word in command.path)


def _option(option: Option) -> str:
    """One specification for `_arguments`."""
    takes = option.value.kind is not Kind.NONE
    names = [f"{name}{_joint(name) if takes else ''}" for name in option.names]
    text = f"[{_escaped(option.help, ':[]')}]"
    if takes:
        text += f":{_label(option.value)}:{_action(option.value)}"
    if len(names) == 1:
        return _quoted(("*" if option.repeatable else "") + names[0] + text)
    # Either it may come again, or one name of it is the end of the others.
    start = "*" if option.repeatable else f"({' '.join(option.names)})"
    return f"{_quoted(start)}{{{','.join(names)}}}{_quoted(text)}"


def _joint(name: str) -> str:
    """How a value may follow a name in the same word: `--queue=jobs`, `-qjobs`."""
    return "=" if name.startswith("--") else "+"


def _argument(number: int, argument: Argument) -> str:
    place = "*:" if argument.repeatable else f"{number}::"
    return _quoted(f"{place}{_label(argument.value)}:{_action(argument.value)}")


def _label(value: Value) -> str:
    return _escaped(value.label.lower(), ":")


def _action(value: Value) -> str:
    if value.kind is Kind.CHOICES:
        return f"({' '.join(_escaped(choice, ' ()') for choice in value.choices)})"
    return _ACTIONS[value.kind]


def _functions(options: Iterable[Option]) -> str:
    """The functions that the others call; one of them asks rwq for the names of queues."""
    names = [
        name
        for option in options
        if option.about_server
        for name in option.names
        if option.value.kind is not Kind.NONE
    ]
    flags = [
        name
        for option in options
        if option.about_server and option.value.kind is Kind.NONE
        for name in option.names
    ]
    return _FUNCTIONS.replace("NAMES", " ".join(names)).replace("FLAGS", " ".join(flags))


def _escaped(text: str, special: str) -> str:
    return "".join(f"\\{char}" if char in f"\\{special}" else char for char in text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _lines(words: Iterable[str]) -> str:
    return "".join(f"        {word}\n" for word in words)


def _continued(words: Iterable[str]) -> str:
    """More arguments of the command on the line before, each on its own line."""
    return "".join(f" \\\n        {word}" for word in words)


_HEAD = """\
#compdef rwq
# zsh completion for rwq. Either put this file, called _rwq, into a directory of fpath, or have
# `source <(rwq completion zsh)` in .zshrc, behind compinit.
# Made by: python -m rwq_cli.completion completions/

"""

_FIRST = """\
    # What every command takes, before its name or after it.
    local -a rwq_common=(
COMMON    )
    # What _rwq_queues has to know of the line.
    local rwq_program=$words[1]
    local -A rwq_given
"""

_FUNCTIONS = r"""# A command with commands of its own: options, then the name of one, then the rest,
# which is for the function of that one. $1 is the function of this command, rwq_commands what is
# below it; the other arguments are its own options.
_rwq_group() {
    local rwq_name rwq_function=$1 curcontext=$curcontext state line ret=1
    local -A opt_args
    shift
    # -A: behind the name, options belong to the command that is named. The two colons: the rest
    # begins with that name, in its `words`.
    _arguments -C -s -S -A '-*' "${rwq_common[@]}" "$@" \
        ':command:->command' '*::rest:->rest' && ret=0
    case $state in
    (command)
        _describe -t commands command rwq_commands && ret=0
        ;;
    (rest)
        rwq_name=${(Q)line[1]}
        rwq_given+=("${(@kv)opt_args}")
        if [[ $words[1] == -- ]]; then
            shift words
            (( CURRENT-- ))
        fi
        curcontext=${curcontext%:*}-$rwq_name:
        if (( $+functions[${rwq_function}__$rwq_name] )); then
            ${rwq_function}__$rwq_name && ret=0
        else
            _message 'no such command'
        fi
        ;;
    esac
    return ret
}

# Offers the names of the queues on the server that the line or the environment says.
_rwq_queues() {
    local rwq_option rwq_value REPLY
    local -a rwq_run rwq_server rwq_queues expl
    rwq_given+=("${(@kv)opt_args}")
    for rwq_option in NAMES; do
        (( $+rwq_given[$rwq_option] )) || continue
        # _arguments has put a backslash before each colon and backslash.
        rwq_value=${rwq_given[$rwq_option]//(#b)\\([:\\])/$match[1]}
        _rwq_plain "$rwq_value" || return 1
        rwq_server+=("$rwq_option" "$REPLY")
    done
    for rwq_option in FLAGS; do
        (( $+rwq_given[$rwq_option] )) && rwq_server+=("$rwq_option")
    done
    # The one that was typed may not be the one on PATH.
    rwq_run=(rwq)
    _rwq_plain "$rwq_program" && whence -p -- "$REPLY" >/dev/null && rwq_run=("$REPLY")
    (( $+commands[timeout] )) && rwq_run=(timeout 2 "${rwq_run[@]}")
    rwq_queues=("${(@f)$("${rwq_run[@]}" queues -o ids "${rwq_server[@]}" 2>/dev/null </dev/null)}")
    # A name with a control character is printed escaped, so that this would not be the name.
    rwq_queues=("${(@)rwq_queues:#(|*\\[nrtuUx]*)}")
    _wanted queues expl queue compadd -a rwq_queues
}

# Sets REPLY to the word $1 without its quotes and with its variables in place, but runs nothing;
# fails if only running something would tell.
_rwq_plain() {
    local rwq_bare=${1//\$(|\{)[A-Za-z_][A-Za-z0-9_]#(|\})/}
    REPLY=${(Q)1}
    [[ $1 == \~/* ]] && REPLY=$HOME${REPLY#\~}
    [[ $1 == *\'* || $1 != *[\$\`]* ]] && return 0
    [[ $rwq_bare != *[\$\`]* ]] || return 1
    REPLY=${(e)REPLY}
}

"""

_TAIL = """\
if [[ $funcstack[1] == _rwq ]]; then
    _rwq "$@"
elif (( $+functions[compdef] )); then
    compdef _rwq rwq
else
    print -u2 'rwq: completion needs compinit; run it first: autoload -Uz compinit && compinit'
fi
"""
