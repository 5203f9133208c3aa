"""Files are written whole or not at all."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from missratio._files import written_whole
from missratio._files.files import check_writable


def test_nothing_is_overwritten_without_force(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")
    with pytest.raises(FileExistsError, match="force=True"):
        check_writable(path, force=False)
    with written_whole(path, force=True) as draft:
        draft.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    path = tmp_path / "out.csv"

    def race():
        with written_whole(path, force=False) as draft:
            draft.write_text("ours")
            path.write_text("theirs")

    with pytest.raises(FileExistsError):
        race()
    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_leaves_nothing_and_neither_does_a_second(tmp_path):
    code = """
import sys
from pathlib import Path
from missratio._files import written_whole

unlink = Path.unlink


def interrupted(*_, **__):
    Path.unlink = unlink
    raise KeyboardInterrupt


with written_whole(Path(sys.argv[1]), force=False):
    Path.unlink = interrupted
    raise KeyboardInterrupt
"""
    ended = subprocess.run([sys.executable, "-c", code, tmp_path / "out.csv"],
                           capture_output=True, check=False)  # fmt: skip
    assert ended.returncode != 0
    assert b"KeyboardInterrupt" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("exists", [True, False])
def test_what_a_command_uses_otherwise_is_never_overwritten(tmp_path, exists):
    path = tmp_path / "data.csv"
    if exists:
        path.write_text("a")
    other = tmp_path / ".." / tmp_path.name / "data.csv"
    with pytest.raises(FileExistsError, match="never overwritten"):
        check_writable(path, force=True, others=[None, other])


def overwrite(path):
    with written_whole(path, force=True) as draft:
        draft.write_text("after")


posix = pytest.mark.skipif(os.name != "posix", reason="files have no modes here")


@posix
def test_links_devices_and_pipes_are_never_replaced(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dangling", "pipe"):
        for force in (True, False):
            with pytest.raises(FileExistsError, match=r"is a (link|device or a pipe)"):
                check_writable(tmp_path / name, force=force)
    with pytest.raises(FileExistsError, match="is a device or a pipe"):
        check_writable(Path("/dev/null"), force=True)
    assert path.read_text() == "before"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_replaced_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "file.csv"
    path.write_text("secret")
    path.chmod(mode)
    with written_whole(path, force=True) as draft:
        # At no time wider than the file itself.
        assert stat.S_IMODE(draft.stat().st_mode) == mode
        draft.write_text("after")
    assert path.read_text() == "after"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_old_drafts_of_the_same_file_are_swept(tmp_path):
    path = tmp_path / "out.csv"
    old = [tmp_path / f".out-missratio-draft-{k}.csv" for k in "ab"]
    others = [tmp_path / ".other-missratio-draft-a.csv", tmp_path / ".out-mine.csv"]
    for draft in [*old, *others]:
        draft.write_text("left behind")
        os.utime(draft, (time.time() - 7200,) * 2)
    os.utime(old[1])
    overwrite(path)
    # One that may still be written to is left alone.
    assert {file.name for file in tmp_path.iterdir()} == {
        path.name, old[1].name, *(other.name for other in others)
    }  # fmt: skip


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace", "os.open"])
def test_a_fault_at_any_step_loses_nothing(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    path.write_text("before")

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(step, fail)
    with pytest.raises(OSError, match="No space left"):
        overwrite(path)
    monkeypatch.undo()
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_folders_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path, force=True)
    with pytest.raises(FileNotFoundError, match="no folder"):
        check_writable(tmp_path / "absent" / "x.csv", force=False)
    if sys.platform == "linux":
        with pytest.raises(OSError, match="Nothing can be written into /proc/self"):
            check_writable(Path("/proc/self/model.skops"), force=False)
