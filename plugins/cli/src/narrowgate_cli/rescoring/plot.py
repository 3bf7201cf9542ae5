"""A sweep as bars on the terminal, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from narrowgate.errors import InputError

WIDTH: Final = 24
"""Characters of a full bar."""

_PARTS: Final = " ▏▎▍▌▋▊▉█"


def bar(share: float) -> str:
    """Return a bar of up to `WIDTH` characters for a share of 0..1, in eighths of one."""
    eighths = round(max(0.0, min(1.0, share)) * WIDTH * 8)
    return "█" * (eighths // 8) + _PARTS[eighths % 8].strip()


def picture(path: Path, title: str, curve: Mapping[str, Any], days: float) -> None:
    """Draw the sweep into a PNG file.

    Raises:
        InputError: `missing-extra`: matplotlib is not installed; `unwritable`.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # type: ignore[import-not-found, unused-ignore]
        from matplotlib.figure import Figure  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        text = "a picture needs matplotlib, which is not installed: pip install 'narrowgate-cli[plot]'"
        raise InputError("missing-extra", text) from None
    points = curve["points"]
    at = [point["at"] for point in points]
    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot(at, [point["reviews_per_day"] for point in points], label="reviews a day")
    axes.plot(at, [point["would_hold_per_day"] for point in points], label="would hold a day", linestyle="--")
    axes.plot(at, [point["known_false"] / days for point in points], label="known false a day")
    if curve["in_force"] is not None:
        axes.axvline(curve["in_force"], color="grey", linewidth=1, label="in force")
    axes.set_xlabel(curve["threshold"])
    axes.set_title(title)
    axes.legend()
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise InputError("unwritable", f"{path} cannot be written: {error.strerror or type(error).__name__}") from None
