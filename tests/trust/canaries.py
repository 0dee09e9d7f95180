"""A tree of files that nobody may touch, and what is left of it: owner, mode, size, content, times, attributes, number."""

import hashlib
import os
import shutil
import stat
import time
from pathlib import Path

LONG_AGO = 1_000_000_000  # older than whatever is swept as stale


def own(path, uid, gid, mode):
    os.chown(path, uid, gid, follow_symlinks=False)
    if not path.is_symlink():
        path.chmod(mode)


def settle(path):
    """Old, and read so late that no later reading is noted (relatime): a changed time then was set by somebody."""
    os.utime(path, (time.time() + 3600, LONG_AGO), follow_symlinks=False)


def write(path, content, mode=0o600):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def make(folder, uid, gid, cache, linkable_by):
    """folder/private: of mode 0700, with ordinary files, a large one, and `twin`, a cache as `cache` is with all that a
    cache's own housekeeping would remove; folder/linkable: a file that members of the group `linkable_by` may write, and
    so, by the kernel's rules, make hard links of."""
    private = folder / "private"
    for number in range(80):
        write(private / "thesis" / f"chapter{number:03}.txt", b"precious", 0o640)
    with open(private / "large.bin", "wb") as file:
        file.truncate(70 << 20)
    write(private / "program", b"#!/bin/true\n", 0o4755)
    (private / "empty").mkdir(mode=0o500)
    (private / "link").symlink_to("thesis")
    twin = private / "twin"
    shutil.copytree(cache, twin, symlinks=True)
    for number in range(80):
        write(twin / "v1" / "quarantine" / f"{number:016x}-1-n64-k64-nt1-f{0:016x}-{number:016x}.entry", b"looked at later")
    write(twin / "v1" / "usage", b"GEMVUSE2 and more")
    some = next((twin / "v1").glob("sm_*/??/*.entry"))
    for place in (some.parent, twin / "v1", twin):
        for number in range(3):
            write(place / f".tmp-1-{number:016x}", b"half")
            write(place / f".tmp-1-{number:016x}.gjb", b"half")
    write(twin / "v0" / "sm_90a" / "ab" / some.name, b"of another version")
    shutil.copytree(twin / "v0", twin / "v9999")
    write(twin / "blobs" / "sha256" / "kernels.gjb", b"of an image")
    write(twin / "index.json", b"{}")
    write(folder / "linkable" / "note.txt", b"written by two", 0o660)
    for path in sorted(folder.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        own(path, uid, linkable_by if path.name == "note.txt" else gid, mode)
    own(folder, uid, gid, 0o755)
    private.chmod(0o700)
    try:
        os.setxattr(private / "program", "user.gemvjit.test", b"kept")
    except OSError:
        pass  # this file system has none
    for path in sorted(folder.rglob("*"), reverse=True):
        settle(path)


def content_of(path, info):
    if stat.S_ISLNK(info.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(info.st_mode) or info.st_size > 1 << 20:
        return ""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NOATIME)
    with open(descriptor, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def attributes_of(path):
    try:
        return {name: os.getxattr(path, name, follow_symlinks=False)
                for name in os.listxattr(path, follow_symlinks=False)}
    except OSError:
        return {}


def state(folder):
    """By path: all that has to stay. Not the number of hard links and the time of change, which anybody who may make a
    hard link of a file can have; nor when a folder was read."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        try:
            info = path.lstat()
        except FileNotFoundError:
            continue  # of a victim who is still at it
        folderish = stat.S_ISDIR(info.st_mode)
        found[str(path.relative_to(folder))] = {
            "inode": info.st_ino, "owner": (info.st_uid, info.st_gid), "mode": oct(info.st_mode),
            "size": None if folderish else info.st_size, "content": content_of(path, info), "written": info.st_mtime_ns,
            "used": None if folderish else info.st_atime_ns, "attributes": attributes_of(path)}
    return found


def differences(before, after):
    """Lines; none if all is as it was."""
    lines = [f"{path}: is gone" for path in sorted(before.keys() - after.keys())]
    lines += [f"{path}: is new, {after[path]}" for path in sorted(after.keys() - before.keys())]
    for path in sorted(before.keys() & after.keys()):
        lines += [f"{path}: {what} was {value}, is {after[path][what]}"
                  for what, value in before[path].items() if after[path][what] != value]
    return lines


def put_right(folder, uid, gid, cache, linkable_by):
    shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir()
    make(folder, uid, gid, cache, linkable_by)
    return state(folder)
