"""Run by the interpreter of a composition's environment: start narrowgate, store three entries, ask, say what happened.

Prints one JSON object: `mode`, `status`, `hits` and `warnings` of a start that went well, or `problems` and `report` of one
that was refused.
"""

import json
import sys

import anyio

import narrowgate
from narrowgate.errors import CompositionError

NOTES = ["The nightly backup moved to the new disk in March.", "Ana leads the search project.", "会议纪要已归档。"]


def codes(problems, severity):
    return sorted(problem.code for problem in problems if problem.severity == severity)


async def main() -> None:
    try:
        async with narrowgate.open() as gate:
            await gate.remember("notes", NOTES)
            page = await gate.search("where did the backup move", memory="notes")
            hits = [hit.content.text for hit in page.hits]
            warnings = codes(gate.composition.warnings, "warning")
    except CompositionError as error:
        found = {"problems": codes(error.problems, "error"), "report": str(error)}
    else:
        found = {"mode": page.mode, "status": page.status, "hits": hits, "warnings": warnings}
    json.dump(found, sys.stdout)


anyio.run(main)
