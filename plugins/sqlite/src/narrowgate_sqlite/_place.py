"""Whether a path can be used, found out without opening, creating or changing anything (and without the engine)."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import Final

from narrowgate_sqlite._faults import Fault

APPLICATION_ID: Final = 0x4E724764
"""`NrGd`, in the file's header: this file is narrowgate's."""

LEDGER_ID: Final = 0x4E72476F
"""`NrGo`, likewise: this file is a ledger of observations."""

_OURS: Final = {APPLICATION_ID: "memories of narrowgate", LEDGER_ID: "a ledger of narrowgate"}

# fmt: off
NETWORK_TYPES: Final = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs",
    "nfs4", "ocfs2", "smb", "smb2", "smb3", "smbfs", "fuse.ceph", "fuse.curlftpfs", "fuse.gcsfuse", "fuse.glusterfs",
    "fuse.juicefs", "fuse.rclone", "fuse.s3fs", "fuse.smbnetfs", "fuse.sshfs",
})
# fmt: on
"""File system types (as Linux names them) on which locks or shared memory are not reliable."""

_MAGIC: Final = b"SQLite format 3\0"


def examine(path: Path, schema: int, *, allow_network: bool, application: int = APPLICATION_ID) -> Fault | None:
    """Return the first reason why `path` cannot be used, or `None`.

    Args:
        path: the file; it need not exist.
        schema: the newest schema version that this release reads.
        allow_network: do not look at the file system's type.
        application: what the file is to be: memories, or a ledger.
    """
    try:
        return _examine(path, schema, allow_network=allow_network, application=application)
    except PermissionError:
        return Fault(
            "read-only",
            f"{path} cannot be reached: a folder above it is closed to this user",
            "open the folder to this user, or set another path",
        )


def _examine(path: Path, schema: int, *, allow_network: bool, application: int) -> Fault | None:
    home = _nearest(path)
    if not allow_network:
        kind = network_type(home)
        if kind is not None:
            return Fault(
                "network-filesystem",
                f"{path} lies on a network file system ({kind}), where SQLite's locks are not reliable",
                "set a path on a local disk, or allow_network_filesystem = true if one process alone uses it",
            )
    if not path.exists():
        return _writable_folder(path, home)
    if not path.is_file():
        return Fault("not-ours", f"{path} is no file", "set the path of a file")
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK) or _mounted_read_only(path):
        return Fault(
            "read-only", f"{path} or its folder cannot be written", "make both writable for this user, or set another path"
        )
    return _header_fault(path, schema, application)


def _nearest(path: Path) -> Path:
    here = Path(os.path.realpath(path))
    while not here.exists() and here != here.parent:
        here = here.parent
    return here


def _writable_folder(path: Path, home: Path) -> Fault | None:
    if not home.is_dir():
        return Fault("read-only", f"{path} cannot be created: {home} is no folder", "set another path")
    if not os.access(home, os.W_OK | os.X_OK) or _mounted_read_only(home):
        return Fault("read-only", f"{path} cannot be created: {home} cannot be written", "set another path")
    return None


def _mounted_read_only(path: Path) -> bool:
    if not hasattr(os, "statvfs"):
        return False
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _header_fault(path: Path, schema: int, wanted: int) -> Fault | None:
    with path.open("rb") as file:
        header = file.read(100)
    pending = any(path.with_name(path.name + end).exists() for end in ("-journal", "-wal"))
    if not header:
        return None
    if len(header) < 100 or not header.startswith(_MAGIC):
        return None if pending else Fault("not-ours", f"{path} is no SQLite database", "set another path")
    version, application = struct.unpack(">I4xI", header[60:72])
    if pending and application != wanted:
        return None  # the truth may still be in the journal: opening reads it
    return identity_fault(path, application, version, schema, wanted)


def identity_fault(path: Path, application: int, version: int, schema: int, wanted: int = APPLICATION_ID) -> Fault | None:
    """Return why a non-empty database with this application id and schema version cannot be used, or `None`."""
    if application != wanted:
        what = _OURS.get(application, "a database of another application")
        return Fault("not-ours", f"{path} is {what}", "set another path")
    if version > schema:
        return Fault(
            "newer-schema",
            f"{path} has schema version {version}; this release of narrowgate-sqlite reads up to {schema}",
            "install a newer narrowgate-sqlite",
        )
    return None


def network_type(path: Path) -> str | None:
    """Return the type of the network file system that `path` (which exists) lies on; `None` when local or not known.

    Linux: /proc/self/mountinfo. Windows: UNC paths and remote drives. Elsewhere network file systems are not recognised.
    """
    if sys.platform == "win32":
        return _windows_type(path)
    try:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = mount_type(text, os.path.realpath(path))
    return kind if kind in NETWORK_TYPES else None


def mount_type(mountinfo: str, path: str) -> str | None:
    """Return the type of the file system that holds the absolute `path`, from the text of mountinfo (see proc(5))."""
    best, found = -1, None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = _unescape(fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # of two mounts on one point, the later one covers the earlier
            best, found = len(point), right.split(" ", 1)[0]
    return found


def _unescape(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def _windows_type(path: Path) -> str | None:
    drive = path.drive
    if drive.startswith("\\\\"):
        return "UNC share"
    if sys.platform == "win32":
        import ctypes

        if ctypes.windll.kernel32.GetDriveTypeW(drive + "\\") == 4:
            return "remote drive"
    return None
