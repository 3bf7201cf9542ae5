"""What the tests across distributions share: the repository's files, the built wheels, and environments made of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs
import pytest
from hypothesis import settings

ROOT: Final = Path(__file__).resolve().parent.parent
BIN: Final = "Scripts" if os.name == "nt" else "bin"

sys.path.insert(0, str(Path(__file__).parent))  # for `gate_parts`

# Derandomised: a red run is red again. No deadline: the machine's load is no property of the code.
settings.register_profile("narrowgate", derandomize=True, deadline=None)
settings.load_profile("narrowgate")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on both event loops."""
    return str(request.param)


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the repository's folder."""
    return ROOT


@pytest.fixture(scope="session")
def repository_files() -> tuple[Path, ...]:
    """Return every file that is, or would be, under version control."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return tuple(path for path in ROOT.rglob("*") if path.is_file() and not _ignored(path.relative_to(ROOT)))
    # A clone may belong to another user than the one who tests it, which git refuses to read unless told.
    command = [git, "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return tuple(ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file())


def _ignored(path: Path) -> bool:
    return any(
        part.startswith((".nox", ".venv", ".git", ".mypy", ".ruff", ".hypothesis", "__pycache__")) for part in path.parts
    )


@attrs.frozen
class Wheels:
    """Where the wheels lie.

    Attributes:
        ours: wheels of this repository's distributions.
        others: wheels of all that they depend on.
    """

    ours: Path
    others: Path


@attrs.frozen
class Environment:
    """A virtual environment without pip, outside of which nothing can be imported.

    Attributes:
        path: its folder.
        home: a folder that programs in it take for the user's home; `narrowgate` keeps its data below it.
    """

    path: Path
    home: Path

    def run(self, *command: str | Path, expect: int | None = 0, **variables: str) -> subprocess.CompletedProcess[bytes]:
        """Run a program of the environment in its home.

        Args:
            command: the program's name (`python`, `narrowgate`) and its arguments.
            expect: the exit code; another fails the test and shows the output. `None` takes any.
            variables: environment variables on top of a bare environment.
        """
        env = {key: value for key, value in os.environ.items() if key in ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "LANG")}
        env |= {"HOME": str(self.home), "USERPROFILE": str(self.home), "LOCALAPPDATA": str(self.home)}
        env |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error", **variables}
        program = self.path / BIN / str(command[0])
        done = subprocess.run(
            [program, *map(str, command[1:])],
            cwd=self.home,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=300,
        )
        if expect is not None and done.returncode != expect:
            pytest.fail(
                f"{' '.join(map(str, command))} ended with {done.returncode}, not {expect}\n"
                f"{done.stdout.decode(errors='replace')}\n{done.stderr.decode(errors='replace')}"
            )
        return done


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """Return the wheels that nox built; outside nox, build them."""
    if "TEST_WHEELS_OURS" in os.environ:
        return Wheels(Path(os.environ["TEST_WHEELS_OURS"]), Path(os.environ["TEST_WHEELS_OTHERS"]))
    folder = tmp_path_factory.mktemp("wheels")
    distributions = [
        ROOT / "core",
        *(path.parent for kind in ("libs", "plugins", "contrib") for path in ROOT.glob(f"{kind}/*/pyproject.toml")),
    ]
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(folder)]
    subprocess.run([*pip, *map(str, distributions)], check=True)
    return Wheels(folder, folder)


@pytest.fixture(scope="session")
def make_environment(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Environment]:
    """Return a function that makes an environment of named distributions and of what they declare, nothing else."""

    def make(requirements: Sequence[str | Path]) -> Environment:
        folder = tmp_path_factory.mktemp("environment")
        venv.create(folder / "venv", with_pip=False, symlinks=os.name != "nt")
        (folder / "home").mkdir()
        python = folder / "venv" / BIN / "python"
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile", "--no-index"]
        links = ["--find-links", str(wheels.ours), "--find-links", str(wheels.others)]
        subprocess.run([*pip, *links, *map(str, requirements)], check=True)
        return Environment(folder / "venv", folder / "home")

    return make
