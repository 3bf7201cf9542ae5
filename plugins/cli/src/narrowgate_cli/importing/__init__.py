"""Reading Markdown journals and JSONL into drafts, and writing JSONL that reads back the same."""

from narrowgate_cli.importing._files import read_paths
from narrowgate_cli.importing._items import ImportItem
from narrowgate_cli.importing._jsonl import export_line, parse_line

__all__ = ["ImportItem", "export_line", "parse_line", "read_paths"]
