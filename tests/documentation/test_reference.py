"""The reference has every option of every parser, each with its default and its cost, and none besides."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import fields
from typing import Any

import pytest

import jupyterlab_jaxprof
from jupyterlab_jaxprof.cli.arguments import parser as cli_parser
from jupyterlab_jaxprof.magics import (
    jaxmem_arguments,
    jaxnsys_arguments,
    jaxprof_arguments,
    jaxsweep_arguments,
    jaxtime_arguments,
    jaxtrace_arguments,
    registry,
)
from jupyterlab_jaxprof.magics.arguments import MagicParser
from jupyterlab_jaxprof.server.app import JaxProfApp
from tests.support.pages import ROOT, Table, section_of, spans_of, tables_of

REFERENCE = "docs/reference"
MAGICS: dict[str, tuple[MagicParser, Any]] = {
    "jaxtrace": (jaxtrace_arguments.parser("%%jaxtrace"), jaxtrace_arguments.Arguments()),
    "jaxtime": (jaxtime_arguments.parser("%%jaxtime"), jaxtime_arguments.Arguments()),
    "jaxsweep": (jaxsweep_arguments.parser(), jaxsweep_arguments.Arguments()),
    "jaxmem": (jaxmem_arguments.parser(), jaxmem_arguments.Arguments()),
    "nsys": (jaxnsys_arguments.parser("%%nsys"), jaxnsys_arguments.Arguments()),
}


def table_of_options(page: str, first: str = "option") -> list[Table]:
    return [table for table in tables_of(f"{REFERENCE}/{page}.md") if table.header[0] == first]


def options_in(cell: str) -> set[str]:
    """Give the options that the code in a cell names: of `--graphs=off` and `-r N` their names."""
    return {
        option
        for code in re.findall("`([^`]+)`", cell)
        for option in re.findall(r"(?:^|\s)(--?[a-zA-Z][\w-]*)", code)
    }


def described(tables: list[Table]) -> set[str]:
    return {option for table in tables for row in table.rows for option in options_in(row[0])}


@pytest.mark.parametrize("magic", MAGICS)
def test_a_magics_page_has_every_option_with_default_and_cost(magic: str) -> None:
    parser, defaults = MAGICS[magic]
    (table,) = table_of_options(magic)
    assert table.header == ["option", "what it does", "default", "what it costs"]
    assert described([table]) == set(parser.declared())
    assert all(row[1] and row[3] for row in table.rows)
    of_field = {field.name: getattr(defaults, field.name) for field in fields(defaults)}
    for row in table.rows:
        for option in options_in(row[0]):
            action = parser.action_of(option)
            assert action is not None
            value = action.default if action.default else of_field.get(action.dest)
            if isinstance(value, int | float | str) and not isinstance(value, bool) and value:
                assert f"`{value}`" in row[2], f"{option} is {value} unless said"


def test_every_magic_has_its_page() -> None:
    index = (ROOT / REFERENCE / "index.md").read_text("utf-8")
    names = {name for magic in registry.TABLE for name in (magic.contested or (magic.name,))}
    assert names == {*MAGICS, "jaxprof"}
    assert all(f"({name}.md)" in index for name in names)


def test_the_page_of_jaxprof_has_every_command_and_option() -> None:
    (lines,) = table_of_options("jaxprof", "line")
    assert {row[0].strip("`").partition(" ")[2].partition(" ")[0] for row in lines.rows} - {""} == set(
        jaxprof_arguments.COMMANDS
    )
    reading, install = table_of_options("jaxprof")
    own = jaxprof_arguments.parser(f"%jaxprof {jaxprof_arguments.INSTALL}")
    assert described([install]) | {"--help"} == set(own.declared())
    others = {
        option
        for command in ("report", "compare", "import")
        for option in jaxprof_arguments.parser(f"%jaxprof {command}").declared()
    }
    assert described([reading]) | {"--help"} == others


def test_the_page_of_the_command_has_every_command_and_option() -> None:
    parser = cli_parser()
    (commands,) = [
        action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    (table,) = table_of_options("cli", "command")
    assert {row[0].strip("`").removeprefix("jaxprof ") for row in table.rows} == set(commands)
    (options,) = table_of_options("cli")
    told = {
        (option, command.strip("` "))
        for row in options.rows
        for option in options_in(row[0])
        for command in row[1].split(",")
        if option not in ("--help", "-h", "--version")
    }
    assert told == {
        (option, name)
        for name, command in commands.items()
        for action in command._actions
        for option in action.option_strings
        if option not in ("--help", "-h")
    }


def test_the_settings_page_has_every_trait_variable_and_setting() -> None:
    page = f"{REFERENCE}/configuration.md"
    (server,) = [table for table in tables_of(page) if table.header[0] == "setting"]
    traits = JaxProfApp.class_own_traits(config=True)
    told = dict(zip([row[0] for row in server.rows], server.column("default"), strict=True))
    assert set(told) == {f"`c.JaxProfApp.{name}`" for name in traits}
    for name, trait in traits.items():
        default = told[f"`c.JaxProfApp.{name}`"]
        assert trait.default_value == "" or default.startswith(f"`{trait.default_value}`"), name

    spans = set(spans_of(page))
    sources = [path.read_text("utf-8") for path in (ROOT / "jupyterlab_jaxprof").rglob("*.py")]
    variables = {name for text in sources for name in re.findall(r'"(JAXPROF_[A-Z_]+)"', text)}
    assert "JAXPROF_DIR" in variables
    assert variables <= spans

    (lab,) = [table for table in tables_of(page) if table.header[0] == "page"]
    rows = {row[0]: row[1] for row in lab.rows}
    for schema in (ROOT / "labextension" / "schema").glob("*.json"):
        plugin = json.loads(schema.read_text("utf-8"))
        if properties := plugin.get("properties"):
            assert set(re.findall("`(.*?)`", rows[plugin["title"]])) == set(properties)


def test_the_python_page_has_every_public_name() -> None:
    page = f"{REFERENCE}/python.md"
    names = {
        row[0].strip("`").removeprefix("jaxprof.")
        for table in tables_of(page)
        for row in table.rows
        if table.header[0] == "name"
    }
    assert names == set(jupyterlab_jaxprof.__all__)
    kinds = {"`TimedResult`": jupyterlab_jaxprof.TimedResult, "`Capture`": jupyterlab_jaxprof.Capture}
    for section, kind in kinds.items():
        cells = re.findall(r"^\| (`.*?) \|", section_of(page, section), re.MULTILINE)
        told = {name for cell in cells for name in re.findall(r"`(\w+)(?:\(.*?\))?`", cell)}
        public = {name for name in [*dir(kind), *kind.__dataclass_fields__] if not name.startswith("_")}
        # those left out make or hand on a result, and are of no use to others
        assert told == public - {"of", "result", "released"}, section
