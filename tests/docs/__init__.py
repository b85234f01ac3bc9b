"""The pages for people are tested: blocks of code, links, generated parts.

A block ```console is typed into one bash a page: `$ ` begins a command, `> ` continues it, and what
follows is what it prints (see `steps` for what may differ). A page has a home of its own and is
on a machine called ops1, as the user ann. `local:`, `redis://localhost`, `redis://db1`, `db2` and
so on are servers of its own, `valkey-cli -h db1` is one of them. There is no terminal to ask on.
```python and ```pycon run in one Python a page. ```text is for screens and drawings; toml, yaml,
ini, json, jsonl and dockerfile are read. ```sh is for the two commands of the README that .ci/run
pastes.

`python -m tests.docs.update docs/FILE.md` writes what the commands print into the page.
"""
