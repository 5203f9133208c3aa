"""Workbooks that can't be written say what the system says."""

import errno

import pytest

from missratio._files.workbooks import close_workbook


class Book:
    """A workbook whose writing fails, as xlsxwriter's: by an error of its own."""

    def __init__(self, error):
        self.error = error

    def close(self):
        try:
            raise self.error
        except OSError as error:
            raise RuntimeError(error)  # noqa: B904


def test_a_full_disk_is_an_error_of_the_system():
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space left") as caught:
        close_workbook(Book(full))
    assert caught.value is full


def test_other_errors_keep_their_names():
    with pytest.raises(KeyError, match="sheet"):
        close_workbook(Book(KeyError("sheet")))
