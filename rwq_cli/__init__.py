"""rwq: the command line for redis-work-queue.

Where to look:

| question                            | file                                              |
| ----------------------------------- | ------------------------------------------------- |
| how a lease is taken                | `core/items/lease.py`, `core/lua/ops/lease.lua`   |
| which state an ID has               | `core/state/rules.py`, `core/lua/lib/state.lua`   |
| what a clean decides                | `core/repair/clean.py`, `core/lua/ops/repair.lua` |
| how a key is named                  | `core/keys.py`                                    |
| where a dry run ends                | `dry_run` in `core/lua/ops` and `lib/expected`, a |
|                                     | `dry_run` argument in `core/items`, `core/repair` |
| which error has which exit code     | `exit_codes.py`                                   |
| where server and queue are read     | `cli/settings.py`, with `environment.py`          |
| how contexts are read and changed   | `contexts/file.py`, `contexts/editing.py`         |
| which items options choose          | `cli/choosing.py`, `core/inspect/listing.py`      |
| what a question says                | `cli/confirm.py`                                  |
| which queues a pattern stands for   | `cli/open_queues.py`                              |
| what `--where` means                | `input/where.py`, `output/json_text.py`           |
| what a state means to people        | `views/meanings.py`                               |
| what a command takes and calls      | `commands/NAME.py`                                |
| what is shown of a result           | `views/`, or the command if it alone shows it     |
| how a table, JSON or CSV is written | `output/tables.py`, `output/records.py`           |
| how streams are read and written    | `streams.py`, `input/streams.py`                  |
| how a service is run and watched    | `service/`, `commands/clean.py`                   |
| how `--watch` redraws               | `cli/watching.py`, `output/console.py`            |
| which columns of a table fit        | `output/tables.py`                                |
| what a field of a record means      | the lists of `field(…)` there                     |
| what an outcome is called           | `Status` in `core/model.py`, `output/outcomes.py` |
| how `rwq work` runs commands        | `work/worker.py`, around `core/work`              |
| topics, recipes and variables       | `help/`                                           |
| what a Tab offers                   | `cli/options.py`, `completion/`                   |
"""

__version__ = "0.2.0"
