"""Write notes with the evidence that they cite: each line of a file has a source and an entry that rests on it."""

import json
import sys
from pathlib import Path

import narrowgate
from narrowgate.values.entry import EntryDraft, Evidence


def main(path: str) -> None:
    """Write the source as an entry of its own, and the note with an exact reference to it."""
    with narrowgate.open_sync() as gate:
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
            pair = json.loads(line)
            name = Evidence(f"{path}:{number}", pair["source"])
            source = gate.remember("sources", [EntryDraft(pair["source"], evidence=(name,))]).items[0]
            note = EntryDraft(pair["entry"], evidence=(Evidence(str(source.ref)),))
            outcome = gate.remember("team", [note]).items[0]
            sys.stdout.write(f"{outcome.status} {outcome.held or outcome.ref}\n")


main(sys.argv[1])
