"""Labelled collections as they lie on disk.

A collection is a folder with `corpus.jsonl` ({"id", "text", "time"?, "speaker"?, "fact_group"?}), `queries.jsonl` ({"id",
"text", "category"?, "lang"?}) and `qrels.tsv` (query_id, corpus_id, grade; with or without that line of headings). A set
is a folder of collections. `decisions.jsonl` ({"id", "query", "candidates": [{"text", "keep"}]}) lies in a collection, or
beside the collections of a set, and then each line names its folder in `folder`, `conversation` or `user` (a number n
stands for `user-0n`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from narrowgate.errors import InputError

CORPUS: Final = "corpus.jsonl"
QUERIES: Final = "queries.jsonl"
QRELS: Final = "qrels.tsv"
DECISIONS: Final = "decisions.jsonl"
UNANSWERABLE: Final = "queries_unanswerable.jsonl"

_FOLDER_KEYS: Final = ("folder", "conversation", "user")
_ADVERSARIAL: Final = "adversarial"

_Line = tuple[str, Mapping[str, Any]]
"""`file:number` with the object of that line."""


@attrs.frozen
class Document:
    """One text of a corpus; `time` is as written, and may be no time at all; `text` may be blank."""

    id: str
    text: str
    time: str | None
    speaker: str | None


@attrs.frozen
class Query:
    """One question with the ids of what answers it.

    Attributes:
        grades: relevant id -> grade, at least one.
    """

    id: str
    text: str
    category: str
    lang: str
    grades: Mapping[str, int]


@attrs.frozen
class DecisionCase:
    """One question with candidates that are labelled keep or drop.

    Attributes:
        answerable: `False` for a question that nothing answers; `True` when a candidate is to be kept; `None` when the
            evidence is not among the candidates.
        candidates: (text, keep) in the given order; at least one.
    """

    id: str
    query: str
    category: str
    lang: str
    answerable: bool | None
    candidates: tuple[tuple[str, bool], ...]


@attrs.frozen
class Collection:
    """One folder.

    Attributes:
        name: the folder's name.
        facts: document id -> name of the fact that it states; only documents that say so.
        without_qrels: queries left out since nothing is known to answer them.
    """

    name: str
    documents: tuple[Document, ...]
    facts: Mapping[str, str]
    queries: tuple[Query, ...]
    without_qrels: int
    decisions: tuple[DecisionCase, ...]


def load(folder: Path) -> tuple[Collection, ...]:
    """Read a collection or a set of collections, in the order of their names.

    Raises:
        InputError: `dataset-missing` (no such folder, or no collection in it), `dataset-format` with file and line.
    """
    if not folder.is_dir():
        raise InputError("dataset-missing", f"{folder} is not a folder")
    folder = folder.resolve()
    if (folder / CORPUS).is_file():
        beside = _by_folder(folder.parent / DECISIONS) if not (folder / DECISIONS).is_file() else {}
        return (_collection(folder, beside.get(folder.name, [])),)
    folders = sorted(path.parent for path in folder.glob(f"*/{CORPUS}"))
    if not folders:
        raise InputError(
            "dataset-missing", f"{folder} holds no {CORPUS}, and no folder in it does: see the command's description"
        )
    beside = _by_folder(folder / DECISIONS)
    names = {path.name for path in folders}
    for name, lines in beside.items():
        if name not in names:
            raise InputError("dataset-format", f"{lines[0][0]}: names no folder of the set in {', '.join(_FOLDER_KEYS)}")
    return tuple(_collection(path, beside.get(path.name, [])) for path in folders)


def _by_folder(path: Path) -> dict[str | None, list[_Line]]:
    """Read the decisions that lie beside the collections, by the folder they name."""
    grouped: dict[str | None, list[_Line]] = {}
    for where, record in _json_lines_if_there(path):
        grouped.setdefault(_folder_of(record), []).append((where, record))
    return grouped


def _folder_of(record: Mapping[str, Any]) -> str | None:
    for key in _FOLDER_KEYS:
        value = record.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return f"{key}-{value:02d}"
    return None


def _collection(folder: Path, beside: list[_Line]) -> Collection:
    documents, facts = [], {}
    for where, record in _json_lines(folder / CORPUS):
        document = Document(
            id=_text(record, "id", where),
            text=_text(record, "text", where, blank=True),
            time=_optional(record, "time"),
            speaker=_optional(record, "speaker"),
        )
        documents.append(document)
        if (fact := _optional(record, "fact_group")) is not None:
            facts[document.id] = f"fact {fact}"
    qrels = _qrels(folder / QRELS)
    queries, without = [], 0
    for where, record in _json_lines(folder / QUERIES):
        key = _text(record, "id", where)
        if key not in qrels:
            without += 1
            continue
        queries.append(
            Query(key, _text(record, "text", where), _label(record, "category"), _label(record, "lang"), qrels[key])
        )
    unanswerable = {_text(record, "id", where) for where, record in _json_lines_if_there(folder / UNANSWERABLE)}
    decided = [*_json_lines_if_there(folder / DECISIONS), *beside]
    return Collection(
        name=folder.name,
        documents=tuple(documents),
        facts=facts,
        queries=tuple(queries),
        without_qrels=without,
        decisions=tuple(_decisions(decided, unanswerable)),
    )


def _decisions(decided: list[_Line], unanswerable: set[str]) -> Iterator[DecisionCase]:
    marked = any(_is_marked(record, unanswerable) for _, record in decided)
    for where, record in decided:
        raw = record.get("candidates")
        if not isinstance(raw, list) or not raw:
            raise InputError("dataset-format", f"{where}: needs a list of candidates")
        candidates = tuple((_text(item, "text", where), _keep(item, where)) for item in raw)
        answerable: bool | None
        if any(keep for _, keep in candidates):
            answerable = True
        elif marked:
            answerable = False if _is_marked(record, unanswerable) else None
        else:
            answerable = False
        yield DecisionCase(
            id=_optional(record, "id") or where,
            query=_text(record, "query", where),
            category=_label(record, "category"),
            lang=_label(record, "lang"),
            answerable=answerable,
            candidates=candidates,
        )


def _is_marked(record: Mapping[str, Any], unanswerable: set[str]) -> bool:
    return record.get("category") == _ADVERSARIAL or record.get("id") in unanswerable


def _qrels(path: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        parts = line.split("\t")
        if number == 1 and parts[-1].strip() == "grade":
            continue
        try:
            query, document, grade = parts[0], parts[1], int(parts[2])
        except (IndexError, ValueError):
            raise InputError("dataset-format", f"{path}:{number}: needs query id, corpus id and a whole grade") from None
        if grade > 0:
            grades.setdefault(query, {})[document] = grade
    return grades


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from ((number, line.rstrip("\r\n")) for number, line in enumerate(file, 1) if line.strip())
    except FileNotFoundError:
        raise InputError("dataset-missing", f"{path} is missing") from None
    except UnicodeDecodeError:
        raise InputError("dataset-format", f"{path} is not UTF-8") from None


def _json_lines_if_there(path: Path) -> Iterator[_Line]:
    return _json_lines(path) if path.is_file() else iter(())


def _json_lines(path: Path) -> Iterator[_Line]:
    for number, line in _lines(path):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except ValueError:
            raise InputError("dataset-format", f"{where}: is not JSON") from None
        if not isinstance(record, dict):
            raise InputError("dataset-format", f"{where}: is not a JSON object")
        yield where, record


def _text(record: Any, key: str, where: str, *, blank: bool = False) -> str:
    value = record.get(key) if isinstance(record, dict) else None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not (blank or value.strip()):
        raise InputError("dataset-format", f"{where}: needs {key!r}")
    return value


def _keep(record: Any, where: str) -> bool:
    value = record.get("keep")
    if not isinstance(value, bool):
        raise InputError("dataset-format", f"{where}: every candidate needs 'keep': true or false")
    return value


def _optional(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip() else None


def _label(record: Mapping[str, Any], key: str) -> str:
    return _optional(record, key) or "unspecified"
