"""The completion script of each shell: a template, filled in from the spec."""

import shlex
from collections.abc import Callable, Iterable
from enum import StrEnum
from importlib.resources import files

from rwq_cli.completion.spec import CompletionCommand, Kind, Parameter, Spec


class Shell(StrEnum):
    """A shell; the value is its name."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


# The file names of the scripts under `completions/`, and of their templates.
FILE_NAMES = {Shell.BASH: "rwq.bash", Shell.ZSH: "_rwq", Shell.FISH: "rwq.fish"}


def script_for(shell: Shell, spec: Spec) -> str:
    """The completion script of one shell."""
    text = (files("rwq_cli.completion") / "templates" / FILE_NAMES[shell]).read_text("utf-8")
    makers = {Shell.BASH: _bash, Shell.ZSH: _zsh, Shell.FISH: _fish}
    for name, value in makers[shell](spec).items():
        text = text.replace(f"@{name}@", value)
    return text


def _names(options: Iterable[Parameter], chosen: Callable[[Parameter], bool]) -> list[str]:
    return [name for option in options if chosen(option) for name in option.names]


def _has_own_parts(command: CompletionCommand) -> bool:
    """Whether anything follows its name."""
    return bool(command.commands) or not command.is_subject


def _queue_names(spec: Spec) -> list[str]:
    return _names(spec.common, lambda option: option.kind is Kind.QUEUE)


def _bash(spec: Spec) -> dict[str, str]:
    cases = (_bash_case(command) for command in spec.commands if _has_own_parts(command))
    return {
        "COMMANDS": "".join(cases),
        "COMMON": " ".join(_bash_options(spec.common)),
        "SERVER": " | ".join(_names(spec.common, lambda option: option.about_server)),
        "QUEUE": " | ".join(_queue_names(spec)),
    }


def _bash_case(command: CompletionCommand) -> str:
    settings = []
    if command.commands:
        settings.append(f"rwq_commands={','.join(inner.path[-1] for inner in command.commands)}")
    if command.options:
        settings.append(f"rwq_options=({' '.join(_bash_options(command.options))})")
    for argument in command.arguments:
        if not argument.repeatable:
            settings.append(f"rwq_arguments+=({_bash_kind(argument)})")
        elif argument.kind is not Kind.OTHER:
            settings.append(f"rwq_more={_bash_kind(argument)}")
    if command.fields.names:
        settings.append(f"rwq_fields={','.join(command.fields.names)}")
    if command.fields.can_sort:
        settings.append("rwq_sort=$rwq_fields")
    lines = "".join(f"        {setting}\n" for setting in settings)
    return f"    {shlex.quote(' '.join(command.path))})\n{lines}        ;;\n"


def _bash_options(options: Iterable[Parameter]) -> list[str]:
    return [
        f"{name}={_bash_kind(option)}" if option.takes_value else name
        for option in options
        for name in option.names
    ]


def _bash_kind(parameter: Parameter) -> str:
    choices = ",".join(parameter.choices)
    if parameter.kind is Kind.LIST:
        return f"LIST:{choices}"
    return choices or (f"ITEM:{parameter.items}" if parameter.items else parameter.kind)


# A blank at the beginning keeps _arguments from adding words to the call; a blank alone shows the
# label and offers nothing.
_ZSH_ACTIONS = {
    Kind.FILE: "_files",
    Kind.DIRECTORY: "_files -/",
    Kind.QUEUE: " _rwq_names queue",
    Kind.HOLDER: " _rwq_names holder",
    Kind.CONTEXT: " _rwq_names context",
    Kind.UNDO_FILE: "_rwq_undo_files",
    Kind.FIELD: " _rwq_fields one",
    Kind.FIELDS: " _rwq_fields list",
    Kind.OTHER: " ",
}


def _zsh(spec: Spec) -> dict[str, str]:
    root, *others = spec.commands
    return {
        "COMMON": "".join(f"        {_zsh_option(option)}\n" for option in spec.common),
        "ROOT": _zsh_body(root),
        "FUNCTIONS": "".join(
            f"{_zsh_name(command)}() {{\n{_zsh_body(command)}}}\n\n"
            for command in others
            if _has_own_parts(command)
        ),
        "VALUED": " ".join(_names(spec.common, lambda one: one.about_server and one.takes_value)),
        "FLAGS": " ".join(
            _names(spec.common, lambda one: one.about_server and not one.takes_value)
        ),
        "QUEUE": " ".join(_queue_names(spec)),
    }


def _zsh_name(command: CompletionCommand) -> str:
    """The function of a command; two underscores distinguish it from the helper functions."""
    return "_rwq" + "".join(f"__{word}" for word in command.path)


def _zsh_body(command: CompletionCommand) -> str:
    specs = [_zsh_option(option) for option in command.options]
    specs += [_zsh_argument(*numbered) for numbered in enumerate(command.arguments, start=1)]
    call = '_arguments -s -S "${rwq_common[@]}"'
    body = ""
    if command.commands:
        names = "".join(
            f"        {_zsh_quoted(f'{inner.path[-1]}:{inner.help}')}\n"
            for inner in command.commands
        )
        body = f"    local -a rwq_commands=(\n{names}    )\n"
        call = f"_rwq_group {_zsh_name(command)}"
    if command.fields.names:
        body += f"    local -a rwq_fields=({' '.join(command.fields.names)})\n"
    if command.fields.can_sort:
        body += '    local -a rwq_sort=("${rwq_fields[@]}")\n'
    return body + " \\\n        ".join((f"    {call}", *specs)) + "\n"


def _zsh_option(option: Parameter) -> str:
    """One specification for `_arguments`."""
    text = f"[{_zsh_escaped(option.help, ':[]')}]"
    names = list(option.names)
    if option.takes_value:
        text += f":{_zsh_value(option)}"
        # A value may follow in the same word: `--queue=jobs`, `-qjobs`.
        names = [f"{name}{'=' if name.startswith('--') else '+'}" for name in names]
    if len(names) == 1:
        return _zsh_quoted(("*" if option.repeatable else "") + names[0] + text)
    # Either it can be repeated, or one of its names excludes the others.
    start = "*" if option.repeatable else f"({' '.join(option.names)})"
    return f"{_zsh_quoted(start)}{{{','.join(names)}}}{_zsh_quoted(text)}"


def _zsh_argument(number: int, argument: Parameter) -> str:
    return _zsh_quoted(f"{'*' if argument.repeatable else f'{number}:'}:{_zsh_value(argument)}")


def _zsh_value(parameter: Parameter) -> str:
    """The label of a value, and the action that offers the possible ones."""
    choices = " ".join(_zsh_escaped(choice, " ()") for choice in parameter.choices)
    if parameter.kind is Kind.LIST:
        action = f" _values -s , {parameter.label.lower()} {choices}"
    elif parameter.kind is Kind.ITEM:
        action = f" _rwq_names item {parameter.items}"
    else:
        action = f"({choices})" if choices else _ZSH_ACTIONS[parameter.kind]
    return f"{_zsh_escaped(parameter.label.lower(), ':')}:{action}"


def _zsh_escaped(text: str, special: str) -> str:
    return "".join(f"\\{char}" if char in f"\\{special}" else char for char in text)


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_FISH_ACTIONS = {
    Kind.FILE: "-F",
    Kind.DIRECTORY: "-a '(__fish_complete_directories)'",
    Kind.QUEUE: "-a '(__rwq_names queue)'",
    Kind.HOLDER: "-a '(__rwq_names holder)'",
    Kind.CONTEXT: "-a '(__rwq_names context)'",
    Kind.UNDO_FILE: "-F -a '(__rwq_undo_files)'",
    Kind.FIELD: "-a '(__rwq_fields one)'",
    Kind.FIELDS: "-a '(__rwq_fields list)'",
}


def _fish(spec: Spec) -> dict[str, str]:
    cases = (
        f"        case {_fish_quoted(' '.join(command.path))}\n"
        f"            set options {' '.join(map(_fish_argparse, command.options))}\n"
        for command in spec.commands
        if command.options
    )
    groups = (_fish_quoted(" ".join(one.path)) for one in spec.commands if one.commands)
    return {
        "CASES": "".join(cases),
        "FIELDS": "".join(_fish_fields(command) for command in spec.commands),
        "COMMON": " ".join(map(_fish_argparse, spec.common)),
        "GROUPS": " ".join(groups),
        "SERVER": " ".join(max(one.names, key=len)[2:] for one in spec.common if one.about_server),
        "QUEUE": max(_queue_names(spec), key=len)[2:],
        "OPTIONS": "".join(_fish_option("", option) for option in spec.common),
        "COMMANDS": "".join(map(_fish_block, spec.commands)),
    }


def _fish_fields(command: CompletionCommand) -> str:
    if not command.fields.names:
        return ""
    variables = "set fields" if command.fields.can_sort else "set list"
    names = " ".join(command.fields.names)
    return f"        case {_fish_quoted(' '.join(command.path))}\n            {variables} {names}\n"


def _fish_argparse(option: Parameter) -> str:
    """One specification for `argparse`: `q/queue=`."""
    return "/".join(name.lstrip("-") for name in option.names) + "=" * option.takes_value


def _fish_block(command: CompletionCommand) -> str:
    """The options of a command, and what may follow its name."""
    path = " ".join(command.path)
    here = f"__rwq_at {path}".rstrip()
    lines = [_fish_option(f"-n {_fish_quoted(here)} ", option) for option in command.options]
    for inner in command.commands:
        words = f"-a {_fish_quoted(inner.path[-1])} -d {_fish_quoted(inner.help)}"
        lines.append(f"complete -c rwq -n {_fish_quoted(here)} {words}\n")
    for number, argument in enumerate(command.arguments):
        if action := _fish_action(argument):
            place = "" if argument.repeatable else f"; and test $__rwq_count -eq {number}"
            there = f"__rwq_at_argument {path}{place}"
            lines.append(f"complete -c rwq -n {_fish_quoted(there)} {action}\n")
    return f"\n# rwq {path}".rstrip(" ") + "\n" + "".join(lines) if lines else ""


def _fish_option(condition: str, option: Parameter) -> str:
    words = [f"-{'l' if name[1] == '-' else 's'} {name.lstrip('-')}" for name in option.names]
    if option.takes_value:
        # -r: it takes a value; -x: it does, and the value is not a file.
        words.append("-r" if option.kind is Kind.FILE else "-x")
        words.append(_fish_action(option))
    words.append(f"-d {_fish_quoted(option.help)}")
    return f"complete -c rwq {condition}{' '.join(filter(None, words))}\n"


def _fish_action(parameter: Parameter) -> str:
    """The `complete` option that offers the values; empty if there is none."""
    # The tab begins an empty description; without it, fish shows the help of the option.
    choices = " ".join(f"{choice}\\t" for choice in parameter.choices)
    if parameter.kind is Kind.LIST:
        return f"-a '(__rwq_list {' '.join(parameter.choices)})'"
    if parameter.kind is Kind.ITEM:
        return f"-a '(__rwq_names item {parameter.items})'"
    return f"-a {_fish_quoted(choices)}" if choices else _FISH_ACTIONS.get(parameter.kind, "")


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
