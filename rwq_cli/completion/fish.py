"""The completion script for fish, 3.0 or later."""

from collections.abc import Callable

from rwq_cli.completion.spec import Argument, Command, Kind, Option, Spec, Value

_ACTIONS = {
    Kind.FILE: "-F",
    Kind.DIRECTORY: "-a '(__fish_complete_directories)'",
    Kind.QUEUE: "-a '(__rwq_queues)'",
}


def script(spec: Spec) -> str:
    """The whole script."""
    groups = [_quoted(" ".join(group.path)) for group in spec.all_commands() if group.commands]
    functions = _FUNCTIONS.replace("GROUPS", " ".join(groups))
    functions = functions.replace("VALUED", _names(spec, _takes_value))
    functions = functions.replace("SERVER", _names(spec, lambda option: option.about_server))
    blocks = [
        "# What every command takes, before its name or after it.\n",
        *(_option("", option) for option in spec.common),
        *(_block(command) for command in spec.all_commands()),
    ]
    return functions + "".join(blocks)


def _names(spec: Spec, chosen: Callable[[Option], bool]) -> str:
    """Patterns for `switch`: the words that name a command, a blank, and the option's name."""
    patterns = [
        f"{' '.join(command.path)} {name}"
        for command in spec.all_commands()
        for option in command.options
        if chosen(option)
        for name in option.names
    ]
    patterns += [f"* {name}" for option in spec.common if chosen(option) for name in option.names]
    return " ".join(map(_quoted, patterns))


def _takes_value(option: Option) -> bool:
    return option.value.kind is not Kind.NONE


def _block(command: Command) -> str:
    """All lines of one command: its options, and what may stand behind its name."""
    here = "__rwq_at " + " ".join(command.path) if command.path else "__rwq_at"
    lines = [f"\n# rwq {' '.join(command.path)}".rstrip() + "\n"]
    lines += [_option(f"-n {_quoted(here)} ", option) for option in command.options]
    for inner in command.commands:
        lines.append(f"complete -c rwq -n {_quoted(here)} -a {_quoted(inner.name)}")
        lines.append(f" -d {_quoted(inner.help)}\n")
    for number, argument in enumerate(command.arguments):
        lines.append(_argument(here, number, argument))
    return "".join(lines) if len(lines) > 1 else ""


def _option(condition: str, option: Option) -> str:
    names = [
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
    ]
    takes = ""
    if _takes_value(option):
        # -x: a value and no files; -r: a value.
        takes = "-r " if option.value.kind is Kind.FILE else "-x "
        takes += f"{_action(option.value)} " if _action(option.value) else ""
    return f"complete -c rwq {condition}{' '.join(names)} {takes}-d {_quoted(option.help)}\n"


def _argument(here: str, number: int, argument: Argument) -> str:
    action = _action(argument.value)
    if not action:
        return ""
    condition = here if argument.repeatable else f"{here}; and test $__rwq_count -eq {number}"
    return f"complete -c rwq -n {_quoted(condition)} {action}\n"


def _action(value: Value) -> str:
    """What offers the values; nothing where there is nothing to offer."""
    if value.kind is Kind.CHOICES:
        # What is behind the tab, nothing, is shown beside it, instead of the option's own help.
        return "-a " + _quoted(" ".join(f"{choice}\\t" for choice in value.choices))
    return _ACTIONS.get(value.kind, "")


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_FUNCTIONS = r"""# fish completion for rwq.
# Made by: python -m rwq_cli.completion completions/

# Whether the option $argv[2] of the command $argv[1] takes a value.
function __rwq_takes_value
    switch "$argv[1] $argv[2]"
        case VALUED
            return 0
    end
    return 1
end

# Whether the option $argv[2] of the command $argv[1] says which server to ask.
function __rwq_is_about_server
    switch "$argv[1] $argv[2]"
        case SERVER
            return 0
    end
    return 1
end

# Follows the words before the one at the cursor. Sets
#   __rwq_path    the words that name the command
#   __rwq_count   how many arguments it has been given
#   __rwq_server  the options that say which server to ask, with their values
#   __rwq_words   all the words
function __rwq_follow
    # From fish 4 on, -x gives the words with variables in place; before, there was only -o.
    set -g __rwq_words (commandline -xpc 2>/dev/null; or commandline -opc)
    set -g __rwq_path ''
    set -g __rwq_count 0
    set -g __rwq_server
    set -l words $__rwq_words
    set -l pending ''
    set -l ended 0
    set -e words[1]
    for word in $words
        if test -n "$pending"
            if __rwq_is_about_server "$__rwq_path" $pending
                set -a __rwq_server $pending $word
            end
            set pending ''
        else if test $ended -eq 1; or not string match -qr -- '^-.' $word
            if contains -- "$__rwq_path" GROUPS
                set __rwq_path (string trim -- "$__rwq_path $word")
                set ended 0
            else
                set __rwq_count (math $__rwq_count + 1)
            end
        else if test "$word" = --
            set ended 1
        else if string match -qr -- '^--.*=' $word
            if __rwq_is_about_server "$__rwq_path" (string replace -r -- '=.*' '' $word)
                set -a __rwq_server $word
            end
        else if string match -qr -- '^--' $word
            if __rwq_takes_value "$__rwq_path" $word
                set pending $word
            else if __rwq_is_about_server "$__rwq_path" $word
                set -a __rwq_server $word
            end
        else
            # A row of short options, of which the last may take the rest for its value.
            while set word (string sub -s 2 -- $word); and test -n "$word"
                set -l name -(string sub -l 1 -- $word)
                if __rwq_takes_value "$__rwq_path" $name
                    set -l value (string sub -s 2 -- $word)
                    if test -z "$value"
                        set pending $name
                    else if __rwq_is_about_server "$__rwq_path" $name
                        set -a __rwq_server $name $value
                    end
                    break
                end
            end
        end
    end
end

# Whether the words in $argv name the command whose part of the line the cursor is in.
function __rwq_at
    __rwq_follow
    test "$__rwq_path" = "$argv"
end

# The names of the queues on the server that the line or the environment says.
function __rwq_queues
    __rwq_follow
    set -l server
    for word in $__rwq_server
        if string match -qr -- '^\$[A-Za-z_][A-Za-z0-9_]*$' $word
            set -l name (string sub -s 2 -- $word)
            set word $$name
        else if string match -q -- '~/*' $word
            set word $HOME(string sub -s 2 -- $word)
        else if string match -q -- '*(*' $word
            # Only running something would tell which server that is.
            return
        end
        set -a server $word
    end
    # The one that was typed may not be the one on PATH.
    set -l run rwq
    command -sq -- $__rwq_words[1]; and set run $__rwq_words[1]
    command -sq timeout; and set run timeout 2 $run
    # A name with a control character is printed escaped, so that this would not be the name.
    # What is behind the tab is shown beside the name.
    command $run queues -o ids $server 2>/dev/null </dev/null \
        | string match -rv -- '\\\\[nrtuUx]' | string replace -r -- '$' \t
end

# Should an older version of this have been read before.
complete -c rwq -e
# Files only where one is expected.
complete -c rwq -f

"""
