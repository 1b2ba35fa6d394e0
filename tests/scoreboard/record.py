"""The tools that are compared, and the record of what they said: tools.toml and measured.json, read and judged.

A tool has *detected* a bug if it says something, as an error or a warning, of the broken script that it does not
say of the repaired one. It has *named* it if tools.toml lists, with the reason, one of these for the exhibit; ours
are held against the rules of the exhibit's manifest. A warning about the repaired script is a *false alarm*.
"""

from __future__ import annotations

import datetime
import json
import os
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from bugs.zoo.keeper.manifest import Exhibit
from tests.scoreboard.surroundings import ROOT

FOLDER = Path(__file__).resolve().parent
RECORD = FOLDER / "measured.json"
OURS, PLAIN = "diagnose_run", "plain"  # PLAIN: no tool, the script alone
VERSIONS = ("broken", "repaired")


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        name: of its file in tools/.
        title: as people know it.
        package: that holds it, on PyPI.
        frameworks: whose exhibits it is asked about, "torch" or "keras".
        not_asked: exhibits that it is not asked about, with the reason.
        names: by exhibit, what of its answers names the cause, with the reason.
        advice: what it says of a sound script, too, without calling it wrong, with the reason; not counted.
        cost_against: the tool without which its cost is measured.
    """

    name: str
    title: str
    package: str
    frameworks: tuple[str, ...]
    not_asked: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)
    cost_against: str = "plain"

    @property
    def call(self) -> str:
        """The source that shows how it is called."""
        return (FOLDER / "tools" / f"{self.name}.py").read_text("utf-8")

    def is_asked(self, exhibit: Exhibit) -> bool:
        """Return whether it is asked about an exhibit."""
        return exhibit.framework in self.frameworks and exhibit.id not in self.not_asked


@dataclass
class Record:
    """What was measured, as measured.json holds it.

    Attributes:
        machine: what it ran on.
        versions: of packages, by name.
        dates: of the last measurement, by exhibit.
        said: by tool, exhibit and version ("broken", "repaired"): `answers`, and how the script `ended`.
        cost: `date`, `quiet` (whether nothing else ran), and `ratios` by exhibit and tool; empty if not measured.
    """

    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)
    said: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path = RECORD) -> Record:
        """Read the record; an empty one if there is none."""
        return cls(**json.loads(file.read_text("utf-8"))) if file.is_file() else cls()

    def write(self, file: Path = RECORD) -> None:
        """Write the record, whole or not at all."""
        scratch = file.with_suffix(".tmp")
        scratch.write_text(json.dumps(vars(self), indent=1, sort_keys=True) + "\n", "utf-8")
        os.replace(scratch, file)

    def note_versions(self, tools: Mapping[str, Tool]) -> None:
        """Note the machine, and the installed versions of the tools and of what they look at."""
        self.machine = f"{os.cpu_count()} CPU cores, no GPU"
        packages = dict.fromkeys(["torch", "transformers", "keras", *(tool.package for tool in tools.values())])
        self.versions = {package: metadata.version(package) for package in packages}

    def keep(self, tool: str, exhibit: str, version: str, said: Mapping[str, Any]) -> None:
        """Keep what a tool said of one version of an exhibit, in place of what it said before.

        Paths begin at the zoo's folder, and the host has no name: the record is the same wherever it is made.
        """
        answers = [{**one, "message": _anywhere(one["message"])} for one in said["answers"]]
        kept = {"answers": answers, "ended": _anywhere(said["ended"])}
        self.said.setdefault(tool, {}).setdefault(exhibit, {})[version] = kept
        self.dates[exhibit] = datetime.date.today().isoformat()

    def keep_cost(self, exhibit: str, measured: Mapping[str, Any], *, quiet: bool) -> None:
        """Keep what the tools cost on an exhibit."""
        self.cost |= {"date": datetime.date.today().isoformat(), "quiet": quiet}
        self.cost.setdefault("ratios", {}).setdefault(exhibit, {}).update(measured)

    def has(self, tool: str, exhibit: str) -> bool:
        """Return whether a tool was asked about both versions of an exhibit."""
        return set(VERSIONS) <= set(self.said.get(tool, {}).get(exhibit, {}))

    def kinds(self, tool: Tool, exhibit: str, version: str) -> list[str]:
        """Return what a tool said of a script as errors and warnings that are no advice."""
        said = self.said[tool.name][exhibit][version]["answers"]
        return [one["kind"] for one in said if one["severity"] != "note" and one["kind"] not in tool.advice]

    def detected(self, tool: Tool, exhibit: str) -> list[str]:
        """Return what a tool said of the broken script alone."""
        both = self.kinds(tool, exhibit, "repaired")
        return [kind for kind in self.kinds(tool, exhibit, "broken") if kind not in both]

    def failure(self, tool: Tool, exhibit: str, version: str) -> str:
        """Return the exception with which a tool itself ended a training without a word; "" if it did not."""
        said, plain = (
            self.said[tool.name][exhibit][version],
            self.said.get(PLAIN, {}).get(exhibit, {}).get(version),
        )
        if plain is None or self.kinds(tool, exhibit, version):
            return ""
        ends = [one["ended"].partition(":")[0] for one in (said, plain)]  # the type: a message may hold a size
        return "" if ends[0] == ends[1] else str(said["ended"])

    def named(self, tool: Tool, exhibit: Exhibit) -> list[str]:
        """Return what of it names the cause."""
        right = exhibit.rules if tool.name == OURS else tool.names.get(exhibit.id, {})
        return [kind for kind in self.detected(tool, exhibit.id) if kind in right]


def _anywhere(text: str) -> str:
    return text.replace(f"{ROOT}{os.sep}", "").replace(f" ({socket.gethostname()})", "")


def load_tools() -> dict[str, Tool]:
    """Return the tools of tools.toml by name, in its order."""
    tables = tomllib.loads((FOLDER / "tools.toml").read_text("utf-8"))
    return {
        name: Tool(name, **{**table, "frameworks": tuple(table["frameworks"])}) for name, table in tables.items()
    }
