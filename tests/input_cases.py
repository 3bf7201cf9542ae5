"""Input at fault, by the code that refuses it: what docs/input-codes.md shows is brought about here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import anyio
from click.testing import CliRunner
from gate_parts import POLICY, gated, wrong

import narrowgate
from narrowgate import Composition, EntryDraft, SyncNarrowgate, load_config, plan
from narrowgate_cli.app import Place
from narrowgate_cli.bundles import packaged
from narrowgate_cli.importing import read_paths
from narrowgate_cli.main import cli
from narrowgate_cli.session import check_file
from narrowgate_local.evidence.calibration import recalibrate

Case = Callable[[Path], str]
"""(an empty folder, which is the working folder) -> the text of the error, without its `Error: `."""

MEMORY: Final = ("--db", "memory.db")


def opened() -> Any:
    """Return a narrowgate over `memory.db` of the working folder."""
    use = {"embedder": "none", "channels": ["sqlite.lexical"]}
    return narrowgate.open_sync(overrides={"use": use, "settings": {"sqlite.store": {"path": "memory.db"}}})


def _named(parameter: str) -> str:
    """Return the file that a parameter stands for: `a__b_md` is `a/b.md`."""
    return parameter.replace("__", "/").replace("_", ".")


def calling(act: Callable[[SyncNarrowgate], Any]) -> Case:
    """Return the case of a call that raises."""

    def case(_: Path) -> str:
        with opened() as gate:
            try:
                act(gate)
            except narrowgate.NarrowgateError as error:
                return str(error)
        raise AssertionError("nothing was refused")

    return case


def writing(*drafts: Any, before: Iterable[Any] = ()) -> Case:
    """Return the case of a batch whose last item is refused."""

    def case(_: Path) -> str:
        with opened() as gate:
            if before:
                gate.remember("notes", list(before))
            return str(gate.remember("notes", list(drafts)).items[-1].message)

    return case


def shell(*arguments: str, **files: str | bytes) -> Case:
    """Return the case of a command; `files` are written first, `a__b_md` for `a/b.md`."""

    def case(folder: Path) -> str:
        for name, text in files.items():
            path = folder / _named(name).replace("_toml", ".toml").replace("_tsv", ".tsv")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        told = CliRunner().invoke(cli, list(arguments))
        assert told.exit_code != 0, told.output
        lines = [line for line in told.stderr.splitlines() if not line.startswith(("Usage", "Try", " "))]
        return lines[-1].removeprefix("Error: ")

    return case


def importing(*more: str, **files: str | bytes) -> Case:
    """Return the case of an import of the working folder of which something is refused; `files` as for `shell`."""

    def case(folder: Path) -> str:
        for name, text in files.items():
            (folder / _named(name)).write_bytes(text if isinstance(text, bytes) else text.encode())
        names = [_named(name) for name in files]
        told = CliRunner().invoke(cli, ["import", *names, *more, *MEMORY, "--json"])
        return str(json.loads(told.stdout)["refusals"][0]["message"])

    return case


def written(case: Case) -> Case:
    """Return a case in a folder whose database has a memory `team`."""

    def after(folder: Path) -> str:
        with opened() as gate:
            gate.remember("team", ["The backup runs on disk two."])
        return case(folder)

    return after


def refusal(act: Callable[[], Any]) -> Case:
    """Return the case of a plain function that raises."""

    def case(_: Path) -> str:
        try:
            act()
        except narrowgate.InputError as error:
            return str(error)
        raise AssertionError("nothing was refused")

    return case


def _forgotten(gate: SyncNarrowgate) -> str:
    made = gate.remember("notes", ["The backup runs on disk two."]).items[0].ref
    assert made is not None
    gate.forget("notes", [made.entry])
    return made.entry


def _inactive(_: Path) -> str:
    with opened() as gate:
        return str(gate.remember("notes", [EntryDraft("It runs on disk three.", entry=_forgotten(gate))]).items[0].message)


def _stale(_: Path) -> str:
    with opened() as gate:
        entry = gate.remember("notes", ["The backup runs on disk two."]).items[0].ref.entry
        draft = EntryDraft("It runs on disk three.", entry=entry, expected_version=4)
        return str(gate.remember("notes", [draft]).items[0].message)


def _taken(_: Path) -> str:
    with opened() as gate:
        gate.remember("notes", [EntryDraft("One.", source="a.md#1")])
        entry = gate.remember("notes", [EntryDraft("Two.", source="a.md#2")]).items[0].ref.entry
        return str(gate.remember("notes", [EntryDraft("Three.", entry=entry, source="a.md#1")]).items[0].message)


def _other_memory(gate: SyncNarrowgate) -> None:
    made = gate.remember("team", ["The backup runs on disk two."]).items[0].ref
    gate.forget("notes", [made])  # type: ignore[list-item]


def _clash(folder: Path) -> str:
    for place in ("a", "b"):
        (folder / place).mkdir()
        (folder / place / "same.md").write_text("# One\n\nText.\n")
    told = CliRunner().invoke(cli, ["import", "a", "b", *MEMORY, "--json"])
    return str(json.loads(told.stdout)["refusals"][0]["message"])


def _column(_: Path) -> str:
    async def work() -> str:
        use = {"embedder": "none", "channels": ["sqlite.lexical"], "sinks": ["sqlite.ledger"]}
        async with narrowgate.open(overrides={"use": use}) as gate:
            try:
                await gate.component("sqlite.ledger").tallies(["colour"])
            except narrowgate.InputError as error:
                return str(error)
        raise AssertionError("nothing was refused")

    return anyio.run(work)


def _without_file() -> Composition:
    """Return a composition over a store that is handed over."""
    return plan(load_config(overrides={"use": {"channels": "none"}}, env={}), injected={"store": object()})


def _dangling(folder: Path) -> str:
    (folder / "notes.md").symlink_to(folder / "gone.md")
    told = CliRunner().invoke(cli, ["import", ".", *MEMORY, "--json"])
    return str(json.loads(told.stdout)["refusals"][0]["message"])


def _reviewed(act: Callable[[Any, str], Any]) -> Case:
    """Return the case of a write that a gate held and somebody rejected, and of what is then done."""

    def case(folder: Path) -> str:
        async def work() -> str:
            async with gated(folder) as gate:
                held = (await gate.remember("m", [wrong("The order service runs on MySQL.")])).items[0].held
                await gate.reject([held], reason="no such minutes")
                return str(await act(gate, str(held)))

        return anyio.run(work)

    return case


async def _again(gate: Any, _: str) -> str:
    return str((await gate.remember("m", [wrong("The order service runs on MySQL.")])).items[0].message)


async def _twice(gate: Any, held: str) -> str:
    return str((await gate.release([held]))[0].message).replace(held, "01H...")


def _shown_entry(case: Case) -> Case:
    """Return a case whose text has `01H...` in place of an id that is made anew each time."""
    return lambda folder: re.sub(r"\b01[0-9A-Z]{24}\b", "01H...", case(folder))


WRITE: Final = "memory.write.evidence_sufficiency.v1"
LONE: Final = "half \ud800"

CASES: Final[dict[str, Case]] = {
    "text-type": writing(EntryDraft(7)),  # type: ignore[arg-type]
    "text-empty": writing("   "),
    "text-too-long": writing("a" * 9000),
    "text-control": writing("bell \x07"),
    "text-surrogate": writing(LONE),
    "reason-too-long": calling(lambda gate: gate.forget("notes", ["e1"], reason="x" * 600)),
    "draft-type": writing(7),
    "evidence-type": writing(EntryDraft("A note.", evidence=(7,))),  # type: ignore[arg-type]
    "time-format": writing(EntryDraft("A note.", occurred_at="yesterday")),
    "time-range": writing(EntryDraft("A note.", occurred_at="0001-01-01T00:00+14:00")),
    "attributes-type": writing(EntryDraft("A note.", attributes=["a"])),  # type: ignore[arg-type]
    "attributes-many": writing(EntryDraft("A note.", attributes={f"a{n}": n for n in range(40)})),
    "attributes-name": writing(EntryDraft("A note.", attributes={"a=b": 1})),
    "attributes-value": writing(EntryDraft("A note.", attributes={"size": float("inf")})),
    "id-format": calling(lambda gate: gate.remember("my notes", ["A note."])),
    "expected-version": writing(EntryDraft("A note.", expected_version=2)),
    "stale-version": _stale,
    "unknown-entry": writing(EntryDraft("A note.", entry="e1")),
    "entry-inactive": _inactive,
    "source-taken": _taken,
    "batch-too-large": calling(lambda gate: gate.remember("notes", ["A note."] * 10_001)),
    "held-unknown": calling(lambda gate: gate.held_one("01HOLD")),
    "held-state": calling(lambda gate: gate.held(state="open")),  # type: ignore[arg-type]
    "held-pending": calling(lambda gate: gate.purge_held("pending")),
    "other-memory": _shown_entry(calling(_other_memory)),
    "ref-format": calling(lambda gate: gate.read("notes/1")),
    "ref-unknown": calling(lambda gate: gate.read("notes@1/e1/1")),
    "entry-unknown": calling(lambda gate: gate.current("notes", "e1")),
    "filter-type": calling(lambda gate: gate.search("backup", memory="notes", filters=[7])),  # type: ignore[list-item]
    "filter-format": calling(lambda gate: gate.search("backup", memory="notes", filters=["kind"])),
    "filter-operator": calling(lambda gate: gate.search("backup", memory="notes", filters=["kind>=a"])),
    "limit-range": calling(lambda gate: gate.search("backup", memory="notes", limit=0)),
    "mode-unknown": calling(lambda gate: gate.search("backup", memory="notes", mode="fast")),
    "no-memory": calling(lambda gate: gate.search("backup", memory=())),
    "range": calling(lambda gate: gate.changes("notes", since=-1)),
    "memory-unknown": written(shell("export", "--memory", "notes", *MEMORY)),
    "held-rejected": _reviewed(_again),
    "held-resolved": _reviewed(_twice),
    "no-such-path": refusal(lambda: list(read_paths([Path("notes")]))),
    "unreadable": _dangling,
    "unknown-format": importing(notes_docx="x"),
    "unwritable": written(shell("export", "--memory", "team", "--output", "none/team.jsonl", *MEMORY)),
    "not-utf8": importing(notes_md=b"caf\xe9"),
    "front-matter": importing(notes_md="---\ndate: soon\n---\n\nText.\n"),
    "timezone-unknown": importing(notes_md="---\ntimezone: Mars/Here\n---\n\nText.\n"),
    "nesting-too-deep": importing(notes_md=">" * 130 + " deep\n"),
    "line-too-long": importing(notes_jsonl='{"text": "' + "a" * (1 << 20) + '"}\n'),
    "json-syntax": importing(notes_jsonl="{"),
    "json-object": importing(notes_jsonl="[1]\n"),
    "json-field": importing(notes_jsonl='{"id": "1"}\n'),
    "id-repeated": importing(notes_jsonl='{"id": "1", "text": "a"}\n{"id": "1", "text": "b"}\n'),
    "source-clash": _clash,
    "no-ledger": shell("observations", "stats", "--ledger", "none.db"),
    "db-without-file": refusal(lambda: check_file(Place(db=Path("memory.db")), _without_file())),
    "db-not-used": shell("eval", "data", *MEMORY, data__none=""),
    "dataset-missing": shell("eval", "data"),
    "bad-bundle": shell("policy", "evaluate", WRITE, "mine", mine__none=""),
    "bundle-mismatch": shell("policy", "evaluate", "experience.applicability.v1", str(packaged("handoff.consult"))),
    "no-bundle": shell(
        "policy",
        "evaluate",
        "team.write.v1",
        write_toml=POLICY.replace("memory.write-gate", "team.question"),
        narrowgate_toml='[policies]\nfiles = ["write.toml"]\n',
    ),
    "bad-labels": shell("policy", "rescore", WRITE, "--yes-at", "0.5", "--labels", "none.jsonl", "--from", "none.jsonl"),
    "column-unknown": _column,
    "dataset-format": shell("eval", "data", data__corpus_jsonl="{", data__queries_jsonl=""),
    "no-backend": shell("policy", "evaluate", "memory.rerank.decision.v1"),
    "bad-evidence": shell(
        "policy", "promote", WRITE, "--to", "advisory", "--by", "ana", "--evidence", "proof.md", proof_md="x"
    ),
    "bad-observations": shell("policy", "rescore", WRITE, "--yes-at", "0.5", "--from", "seen.jsonl", seen_jsonl="x"),
    "no-labels": shell(
        *("eval", "data", "--recalibrate", "fit.json", "--rerank", "decision.keep-drop"),
        data__corpus_jsonl='{"id": "d1", "text": "The backup runs on disk two."}\n',
        data__queries_jsonl='{"id": "q1", "text": "Where does the backup run?"}\n',
        data__qrels_tsv="query_id\tcorpus_id\tgrade\nq1\td1\t2\n",
    ),
    "too-few-labels": refusal(lambda: recalibrate([(0.9, True)], model="m", keep_at=0.5)),
    "labels-contradict": refusal(lambda: recalibrate([(n / 99, n < 50) for n in range(100)], model="m", keep_at=0.5)),
}
