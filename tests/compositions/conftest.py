"""Third-party distributions made on the fly."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest


def write_wheel(folder: Path, name: str, ids: Sequence[str], module: str | None) -> Path:
    """Write a wheel that offers a plugin, as a third party would publish it, and return its path.

    Args:
        folder: where it goes.
        name: the distribution's name; its module is `<name>_plugin`.
        ids: names in the group `narrowgate.plugins` that point to the module.
        module: the module's source; `None` leaves it out, so that the entry points lead nowhere.
    """
    package = f"{name.replace('-', '_')}_plugin"
    info = f"{package}-1.0.dist-info"
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[narrowgate.plugins]\n" + "".join(f"{plugin} = {package}\n" for plugin in ids),
    }
    if module is not None:
        files[f"{package}.py"] = module
    record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    wheel = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="session")
def third_party_wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Sequence[str], str | None], Path]:
    """Return a function that writes a wheel: (name, ids, module) -> its path."""
    folder = tmp_path_factory.mktemp("third-party")
    return lambda name, ids, module: write_wheel(folder, name, ids, module)
