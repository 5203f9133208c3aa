"""Files are written whole or not at all."""

import pytest

from missratio._files import check_writable, written_whole


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


def test_a_failure_leaves_nothing(tmp_path):
    def stop():
        with written_whole(tmp_path / "out.csv", force=False) as draft:
            draft.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert list(tmp_path.iterdir()) == []


def test_inputs_are_never_overwritten(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a")
    with pytest.raises(FileExistsError, match="never overwritten"):
        check_writable(path, force=True, inputs=[tmp_path / "." / "data.csv"])


def test_folders_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path, force=True)
    with pytest.raises(FileNotFoundError, match="no folder"):
        check_writable(tmp_path / "absent" / "x.csv", force=False)
