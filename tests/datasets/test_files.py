"""Files come from the data folder, else from their publisher, and are the known."""

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from missratio import datasets
from missratio.datasets import files

CONTENT = b"the publisher's file"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def publisher(monkeypatch):
    """What is served: a list that is empty or holds the content."""
    served = []

    def download(_, url, output_file, __):
        if not served:
            raise OSError(f"404 for {url}")
        Path(output_file).write_bytes(served[0])

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", download)
    source = replace(files.SOURCES["ctg"], sha256=DIGEST)
    monkeypatch.setitem(files.SOURCES, "ctg", source)
    return served


def test_an_absent_file_is_downloaded_once(tmp_path, publisher):
    publisher.append(CONTENT)
    folder = tmp_path / "new" / "folder"
    path = datasets.fetch("ctg", data_home=folder)
    assert path.read_bytes() == CONTENT
    assert [file.name for file in folder.iterdir()] == ["CTG.xls"]
    publisher.clear()
    assert datasets.fetch("ctg", data_home=folder) == path


@pytest.mark.parametrize(
    ("page", "reason"), [([], "404"), ([b"something else"], DIGEST)]
)
@pytest.mark.parametrize("verify", [True, False])
def test_a_download_that_is_not_the_known_file_leaves_nothing(
    tmp_path, publisher, page, reason, verify
):
    publisher.extend(page)
    with pytest.raises(FileNotFoundError, match=reason) as caught:
        datasets.fetch("ctg", data_home=tmp_path, verify=verify)
    assert f"put it into {tmp_path}" in str(caught.value)
    assert "MISSRATIO_DATA" in str(caught.value)
    assert "archive.ics.uci.edu/dataset/193" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "file"), [("fire", "smoke_detection_iot.csv"), ("weather", "weatherAUS")]
)
def test_kaggle_needs_an_account_and_the_error_names_file_and_folder(
    tmp_path, name, file
):
    with pytest.raises(FileNotFoundError, match="Kaggle lets only account") as caught:
        datasets.fetch(name, data_home=tmp_path)
    for part in (file, str(tmp_path), "https://www.kaggle.com/datasets/"):
        assert part in str(caught.value)


def test_a_file_of_the_users_that_is_not_the_known_one_is_refused(tmp_path):
    path = tmp_path / "CTG.xls"
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="damaged or another edition") as caught:
        datasets.fetch("ctg", data_home=tmp_path)
    assert hashlib.sha256(b"damaged").hexdigest() in str(caught.value)
    assert "verify=False" in str(caught.value)
    assert path.read_bytes() == b"damaged"
    assert datasets.fetch("ctg", data_home=tmp_path, verify=False) == path


@pytest.mark.parametrize("cut", [10, -10])
def test_a_truncated_gzip_file_is_damaged_even_unverified(tmp_path, cut):
    path = tmp_path / "weatherAUS.csv.gz"
    path.write_bytes(gzip.compress(b"Date,Location\n" * 100)[:cut])
    with pytest.raises(ValueError, match="is damaged"):
        datasets.fetch("weather", data_home=tmp_path, verify=False)
    assert datasets.available(tmp_path)[2].digest == "differs"


def test_the_digest_is_of_the_content_so_that_either_file_will_do(
    tmp_path, monkeypatch
):
    source = replace(files.SOURCES["weather"], sha256=DIGEST)
    monkeypatch.setitem(files.SOURCES, "weather", source)
    plain = tmp_path / "weatherAUS.csv"
    plain.write_bytes(CONTENT)
    assert datasets.fetch("weather", data_home=tmp_path) == plain
    packed = tmp_path / "weatherAUS.csv.gz"
    packed.write_bytes(gzip.compress(CONTENT))
    assert datasets.fetch("weather", data_home=tmp_path) == packed


def test_the_list_says_what_is_at_hand(tmp_path):
    assert [entry.digest for entry in datasets.available(tmp_path)] == ["absent"] * 3
    (tmp_path / "CTG.xls").write_bytes(b"damaged")
    (tmp_path / "smoke_detection_iot.csv").write_bytes(b"")
    ctg, fire, weather = datasets.available(tmp_path)
    assert (ctg.digest, fire.digest, weather.digest) == ("differs", "unknown", "absent")
    assert fire.path == tmp_path / "smoke_detection_iot.csv"
    assert weather.path is None
    assert weather.account_needed
    assert not ctg.account_needed
    with pytest.raises(ValueError, match=r"'ctg', 'fire', 'weather'.*mean 'weather'"):
        datasets.fetch("wether")


def test_the_folder_is_named_or_in_the_environment_or_the_platforms(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MISSRATIO_DATA", str(tmp_path / "set"))
    assert datasets.data_folder() == tmp_path / "set"
    assert datasets.data_folder(tmp_path) == tmp_path
    monkeypatch.delenv("MISSRATIO_DATA")
    assert "missratio" in datasets.data_folder().parts


@pytest.mark.data
def test_the_files_at_hand_are_those_that_are_pinned(data_folder):
    found = {entry.name: entry for entry in datasets.available(data_folder)}
    assert found["ctg"].digest == "matches"
    assert found["weather"].digest == "matches"
