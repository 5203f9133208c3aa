"""A model made by the command line predicts dataframes, as the command does files."""

import numpy as np
import pyarrow as pa
import pytest
from commands import run
from optional_packages import optional

import missratio as mr
from missratio.exceptions import TableError

pd = optional("pandas")
pl = optional("polars")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("frames")


@pytest.fixture(scope="module")
def model(folder):
    """A model of numbers, categories and yes-or-no, some of them blank."""
    rng, n = np.random.default_rng(0), 800
    sick = np.arange(n) % 2
    pulse = rng.normal(80 + 20 * sick, 10).round(1)
    table = {
        "id": [f"P{i}" for i in range(n)],
        "pulse": np.where(rng.uniform(size=n) < 0.1, np.nan, pulse),
        "ward": rng.choice(["east", "west", ""], n),
        "smokes": rng.uniform(size=n) < 0.3 + 0.4 * sick,
        "state": np.array(["well", "sick"])[sick],
    }
    pd.DataFrame(table).to_csv(folder / "t.csv", index=False)
    how = "--target state --controlled well --alpha 0.2 --drop id --method trees"
    how += " --missingness ignore -q --out"
    run("fit", folder / "t.csv", how, folder / "m.skops")
    return mr.load_model(folder / "m.skops")


ROWS = {
    "ward": ["west", None, "north", "east"],
    "smokes": [True, False, True, False],
    "pulse": [120.0, 60.0, 120.0, np.nan],
}
FRAMES = {
    "pandas": pd.DataFrame(ROWS),
    "pandas categories": pd.DataFrame(ROWS).astype({"ward": "category"}),
    "texts": pd.DataFrame(
        {
            "pulse": ["120", "60.0", " 120 ", "NA"],
            "ward": [" west", "", "north", "east"],
            "smokes": ["True", "False", "True", "False"],
        }
    ),
    "polars": pl.DataFrame(ROWS, strict=False),
    "pyarrow": pa.table(ROWS),
    "with the target": pd.DataFrame(ROWS).assign(state="well", id=range(4)),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_dataframes_of_every_kind_are_read_alike(model, kind):
    labels, expected = model.predict(FRAMES[kind]), model.predict(FRAMES["pandas"])
    assert labels.tolist() == expected.tolist()
    np.testing.assert_array_equal(
        model.score_samples(FRAMES[kind]), model.score_samples(FRAMES["pandas"])
    )


def test_rows_get_the_label_that_they_should(model):
    labels = model.predict(FRAMES["pandas"])
    assert labels.tolist()[:3] == ["sick", "well", "well"]
    scores = model.score_samples(FRAMES["pandas"])
    # A ward that was never seen can't be scored; a blank one and a blank pulse can.
    assert np.isneginf(scores).tolist() == [False, False, True, False]
    assert ((scores > model.certificate.threshold) == (labels == "sick")).all()
    assert model.classes_.tolist() == ["sick", "well"]
    assert set(model.feature_names_in_) == set(ROWS)


def test_files_and_dataframes_agree(model, folder):
    out = folder / "p.csv"
    run("predict", folder / "m.skops", folder / "t.csv", "-q --force --out", out)
    found, frame = pd.read_csv(out), pd.read_csv(folder / "t.csv")
    assert model.predict(frame).tolist() == found["label"].tolist()
    np.testing.assert_allclose(model.score_samples(frame), found["score"])


MISTAKES = {
    "array": (np.zeros((2, 3)), TypeError, "give a dataframe"),
    "absent": (FRAMES["pandas"].rename(columns={"pulse": "puls"}), TableError,
               "lacks 'pulse'. Did you mean 'puls'"),
    "extra": (FRAMES["pandas"].assign(age=3), TableError,
              "doesn't know: 'age'. Leave them out, such as by X"),
    "text": (FRAMES["pandas"].assign(pulse="high"), TableError,
             "'pulse' holds numbers: 'high' in row 1"),
    "mixed": (FRAMES["pandas"].assign(ward=["a", 1, 2.0, None]), TableError,
              "several kinds"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(model, mistake):
    frame, error, match = MISTAKES[mistake]
    with pytest.raises(error) as caught:
        model.predict(frame)
    assert match in str(caught.value)
