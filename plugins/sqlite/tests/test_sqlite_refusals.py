"""What is refused, with which code, alike when opening and in the offline check, which touches nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import apsw
import pytest
from sqlite_parts import HashEmbedder, opened, put

from narrowgate.errors import StoreError
from narrowgate.recall.analysis import ANALYSER_VERSION
from narrowgate.seams import CheckContext
from narrowgate_sqlite._check import store_problems, vector_problems
from narrowgate_sqlite._place import APPLICATION_ID, NETWORK_TYPES, examine, mount_type
from narrowgate_sqlite._schema import SCHEMA_VERSION
from narrowgate_sqlite.settings import StoreSettings

pytestmark = pytest.mark.anyio


def problems(path: Path, analyser: str = ANALYSER_VERSION, **settings) -> list[str]:
    """Return the codes of the offline check; it must leave no trace."""
    before = sorted(path.parent.iterdir()) if path.parent.is_dir() else None
    found = list(store_problems(StoreSettings(path=path, **settings), CheckContext({}, analyser)))
    assert (sorted(path.parent.iterdir()) if path.parent.is_dir() else None) == before
    assert all(problem.component == "sqlite.store" and str(path) in problem.message and problem.hint for problem in found)
    return [problem.code for problem in found]


def content_of(path: Path) -> bytes:
    """Return the bytes of a file."""
    return path.read_bytes()


def overwrite(path: Path, content: bytes) -> None:
    """Make `content` the bytes of a file."""
    path.write_bytes(content)


async def refusal(path: Path, **settings) -> str:
    """Return the code with which opening is refused."""
    with pytest.raises(StoreError) as caught:
        async with opened(path, **settings):
            pass
    assert path.name in str(caught.value)
    return caught.value.code


async def test_a_new_place_is_made(tmp_path: Path):
    """Missing folders are no problem, the check does not make them, opening does."""
    path = tmp_path / "a" / "b" / "memory.db"
    assert problems(path) == []
    assert not path.parent.exists()
    async with opened(path) as part:
        await part.commit([put("a")])
        assert problems(path) == [], "also while it is open"
    assert problems(path) == []
    assert [item.name for item in path.parent.iterdir()] == ["memory.db"]


async def test_files_that_are_not_ours(tmp_path: Path):
    """Another application's database, one of nobody, a text and a folder are left alone, byte for byte."""
    foreign, plain, text = tmp_path / "foreign.db", tmp_path / "plain.db", tmp_path / "text.db"
    with apsw.Connection(str(foreign)) as db:
        db.execute("CREATE TABLE t (x); PRAGMA application_id = 12")
    db = apsw.Connection(str(plain))
    db.execute("PRAGMA journal_mode = wal; CREATE TABLE t (x)").fetchall()
    db.close()
    text.write_text("not a database, though long enough to be one. " * 5)
    for path in (foreign, plain, text):
        content = content_of(path)
        assert problems(path) == ["not-ours"]
        assert await refusal(path) == "not-ours"
        assert content_of(path) == content
    (tmp_path / "folder").mkdir()
    assert problems(tmp_path / "folder") == ["not-ours"]
    assert await refusal(tmp_path / "folder") == "not-ours"


async def test_a_foreign_log_is_read_before_judging(tmp_path: Path):
    """A database whose tables are still in its write-ahead log is recognised as another application's."""
    path = tmp_path / "busy.db"
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = wal; CREATE TABLE t (x); PRAGMA application_id = 12").fetchall()
    assert [p.code for p in store_problems(StoreSettings(path=path), CheckContext({}, "a1"))] == ["not-ours"]
    assert await refusal(path) == "not-ours"
    db.close()


async def test_an_empty_file_is_taken(file: Path):
    """An empty file, as `mktemp` makes it, becomes a database."""
    overwrite(file, b"")
    assert problems(file) == []
    async with opened(file) as part:
        await part.commit([put("a")])


async def test_newer_schema(file: Path):
    """A file of a newer release is not touched; the message says which versions."""
    async with opened(file):
        pass
    with apsw.Connection(str(file)) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert problems(file) == ["newer-schema"]
    assert await refusal(file) == "newer-schema"


async def test_a_damaged_file(file: Path):
    """A file whose pages are overwritten is called corrupt, not empty."""
    async with opened(file) as part:
        await part.commit([put(f"text number {n}") for n in range(2000)])
    content = content_of(file)
    overwrite(file, content[:4096] + os.urandom(len(content) - 4096))
    assert problems(file) == ["corrupt"]
    assert await refusal(file) == "corrupt"


async def test_stale_index(file: Path):
    """Another analyser's index is refused with the cure; opened to mend it, it reads exactly and does nothing else."""
    async with opened(file, analyser="a0") as part:
        ref = (await part.commit([put("a walk")])).items[0].ref
    assert problems(file) == ["analyser-mismatch"]
    assert problems(file, "a0") == []
    assert await refusal(file) == "analyser-mismatch"
    assert problems(file, allow_stale_index=True) == []
    async with opened(file, allow_stale_index=True) as part:
        assert (await part.store.read(ref)).content.text == "a walk"
        assert (await part.store.health())["stale_index"] is True
        for call in (part.commit([put("b")]), part.words("walk"), part.lexical.term_statistics(["walk"])):
            with pytest.raises(StoreError) as caught:
                await call
            assert caught.value.code == "analyser-mismatch"
            assert "narrowgate reindex" in str(caught.value)
        assert await part.store.reindex() == 1
        assert len((await part.words("walk")).hits) == 1
    assert problems(file) == []


async def test_embedding_profile_in_the_check(file: Path):
    """The vector channel's check compares the file with the chosen embedder, offline, also beside an open log."""
    embedder = HashEmbedder()

    def codes(profile, **settings):
        context = CheckContext({}, ANALYSER_VERSION, profile, {"sqlite.store": StoreSettings(path=file, **settings)})
        return [(problem.code, problem.component) for problem in vector_problems(context)]

    assert codes(embedder.profile) == []
    async with opened(file, embedder) as part:
        assert codes(HashEmbedder("2").profile) == []
        await part.commit([put("a")])
        assert codes(HashEmbedder("2").profile) == [("embedding-profile-mismatch", "sqlite.vector")]
    assert codes(HashEmbedder("2").profile) == [("embedding-profile-mismatch", "sqlite.vector")]
    assert codes(embedder.profile) == []
    assert codes(HashEmbedder("2").profile, allow_stale_index=True) == []


async def test_a_folder_that_cannot_be(tmp_path: Path):
    """A path through a file, or in a place where nothing can be made, is refused as not writable."""
    (tmp_path / "a").write_text("x")
    path = tmp_path / "a" / "memory.db"
    assert problems(path) == ["read-only"]
    assert await refusal(path) == "read-only"


@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="needs Linux's /proc, where nobody can make a folder")
async def test_a_file_system_that_refuses(tmp_path: Path):
    """Where the system itself refuses to make the file, whatever permissions say, opening says so."""
    assert await refusal(Path("/proc/self/narrowgate/memory.db")) == "read-only"


_AS_NOBODY = """
import os, sys
import anyio, apsw, numpy
from pathlib import Path
from narrowgate.errors import StoreError
from narrowgate.seams import CheckContext
import narrowgate_sqlite._check as check, narrowgate_sqlite.store as store
from narrowgate_sqlite.settings import StoreSettings
anyio.run(anyio.sleep, 0)  # imports the rest of it while this user may still read it
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
async def main(path):
    settings = StoreSettings(path=path)
    codes = [p.code for p in check.store_problems(settings, CheckContext({}, "a1"))]
    try:
        async with store.open_store(settings, "a1"):
            codes.append("opened")
    except StoreError as error:
        codes.append(error.code)
    print(*codes)
for path in sys.argv[1:]:
    anyio.run(main, Path(path))
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="file permissions of POSIX")
def test_read_only_places():
    """A user who may not write the file, or may not write or enter its folder, is told so before anything is tried."""

    async def make(path: Path) -> None:
        async with opened(path) as part:
            await part.commit([put("a")])

    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # the folders of pytest and nox may be closed to other users
        home = Path(name)
        home.chmod(0o755)
        (home / "locked").mkdir()
        for path in (home / "file.db", home / "locked" / "memory.db"):
            anyio.run(make, path)
        (home / "file.db").chmod(0o444)
        (home / "locked" / "memory.db").chmod(0o666)
        (home / "locked").chmod(0o555)
        new = home / "locked" / "new" / "memory.db"
        (home / "closed").mkdir(mode=0o700)
        closed = home / "closed" / "memory.db"
        paths = [str(home / "file.db"), str(home / "locked" / "memory.db"), str(new), str(closed)]
        done = subprocess.run(
            [sys.executable, "-c", _AS_NOBODY, *paths], capture_output=True, text=True, check=False, cwd="/"
        )
        assert done.stderr == ""
        assert done.stdout.splitlines() == ["read-only read-only"] * 4
        (home / "locked").chmod(0o755)


MOUNTS = """\
22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:40 / /home rw - nfs4 server:/home rw,vers=4.2
41 40 0:41 / /home/ana/local\\040disk rw shared:7 master:2 - ext4 /dev/sdb1 rw
42 22 0:42 / /mnt/share rw - fuse.sshfs ana@host: rw
43 22 0:43 / /mnt/share rw - tmpfs none rw
44 22 0:44 / /mnt/c rw - 9p drvfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/x.db", "ext4"),
        ("/home/ana/x.db", "nfs4"),
        ("/homeless/x.db", "ext4"),
        ("/home/ana/local disk/x.db", "ext4"),
        ("/mnt/share/x.db", "tmpfs"),
        ("/mnt/c/Users", "9p"),
    ],
)
async def test_mounts_are_read_as_linux_writes_them(path: str, kind: str):
    """The longest mount point that holds the path counts, the later of two on one point, escapes undone."""
    assert mount_type(MOUNTS, path) == kind


async def test_network_file_systems(file: Path, monkeypatch: pytest.MonkeyPatch):
    """A file on a network file system is refused unless forced, by the check and by opening."""
    import narrowgate_sqlite._place as place

    monkeypatch.setattr(place, "network_type", lambda path: "nfs4")
    assert {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p"} <= NETWORK_TYPES
    assert problems(file) == ["network-filesystem"]
    assert await refusal(file) == "network-filesystem"
    assert problems(file, allow_network_filesystem=True) == []
    async with opened(file, allow_network_filesystem=True) as part:
        await part.commit([put("a")])
    assert examine(file, 1, allow_network=False).code == "network-filesystem"


async def test_our_mark_is_in_the_header(file: Path):
    """The application id stands in the file itself from the start, where `file` and others look for it."""
    async with opened(file):
        header = content_of(file)[:100]
    assert int.from_bytes(header[68:72], "big") == APPLICATION_ID
    assert int.from_bytes(header[60:64], "big") == SCHEMA_VERSION


async def test_another_writer_is_waited_for_with_a_bound(file: Path):
    """A write waits for another writer no longer than the bound, then says who is in the way and what to do."""
    async with opened(file, busy_timeout=0.2) as part:
        await part.commit([put("before")])
        holder = apsw.Connection(str(file))
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as caught:
            await part.commit([put("a")])
        assert caught.value.code == "locked"
        assert "busy_timeout" in str(caught.value)
        assert len((await part.words("before")).hits) == 1, "reading goes on"
        assert (await part.store.health())["write_waits"] == 1
        holder.execute("ROLLBACK")
        holder.close()
        assert (await part.commit([put("a")])).revision == 2
