"""What a person writes down about missing values is the model that is meant."""

import numpy as np
import pytest

from missratio._files.cells import Cells
from missratio.app.tables.columns import Encoder, TableColumn
from missratio.app.workflow.phi_file import read_missingness
from missratio.exceptions import TableError

ENCODER = Encoder(
    (TableColumn("pulse"), TableColumn("sugar"), TableColumn("ward", ("east", "west"))),
    Cells(),
)
ROW = np.array([[130.0, 5.0, 0.0]])


@pytest.fixture
def models(tmp_path):
    def read(text, labels=("sick", "well")):
        path = tmp_path / "phi.toml"
        path.write_text(text, encoding="utf-8")
        return read_missingness(path, ENCODER, labels)

    return read


VALUES = '[classes.well]\nmissing = "values"\nkind = "{}"\nfeatures.pulse = '
ROWS = '[classes.well]\nmissing = "rows"\nkind = "{}"\n'
STEP, LOGISTIC = VALUES.format("step"), VALUES.format("logistic")
DIRECTION = "direction = { pulse = 1, sugar = -2 }\nthreshold = 119\nprobability = 0.9"
MEANT = {
    LOGISTIC + "{ intercept = -13.0, coef = 0.1 }": [[0.5, 0, 0]],
    LOGISTIC + "{ at = [[100, 0.2], [160, 0.8]] }": [[0.5, 0, 0]],
    LOGISTIC + "{ at = [[100, 0.2]] }": [[0.2, 0, 0]],
    # Some editors put a mark before the text.
    f"\ufeff{STEP}{{ above = 120, probability = 0.8 }}": [[0.8, 0, 0]],
    STEP + "{ below = 120, probability = 0.8 }": [[0, 0, 0]],
    ROWS.format("step") + DIRECTION: [0.9],
    ROWS.format("logistic") + "intercept = -13.0\ncoef.pulse = 0.1": [0.5],
}


@pytest.mark.parametrize("text", MEANT)
def test_what_is_written_is_what_is_meant(models, text):
    phi = models(text)["well"]
    np.testing.assert_allclose(phi.missing_probability(ROW), MEANT[text])
    assert phi.rowwise == ("rows" in text)


HEAD = '[classes.well]\nmissing = "values"\nkind = "logistic"\n'
PULSE = f"{HEAD}features.pulse = "
REFUSED = {
    "x = [": "is no TOML file",
    "[class.well]\n": "'class' is not known here. Did you mean 'classes'",
    "# Nothing.": "has no 'classes'",
    "[classes.wel]\n": "no class 'wel'. Did you mean 'well'",
    "[classes.well]\n": "has no 'missing'",
    '[classes.well]\nmissing = "row"\n': "one of 'values', 'rows', got 'row'. Did you",
    '[classes.well]\nmissing = "rows"\nkind = "linear"\n': "one of 'logistic', 'step'",
    HEAD: "has no 'features'",
    f"{HEAD}[classes.well.features]\n": "names no column",
    f"{HEAD}features.puls = {{ coef = 1 }}": "'puls'. Did you mean 'pulse'",
    f"{HEAD}features.ward = {{ intercept = 1, coef = 1 }}": "'intercept' is not known",
    f"{HEAD}features.ward.levels = {{ eats = 0.5 }}": "'eats' is not known here. Did",
    f"{HEAD}features.ward.levels = {{ east = 1.0 }}": "below 1",
    f"{HEAD}features.ward.levels = {{}}": "not all of them 0",
    PULSE + "{ intercept = 1 }": r"features.pulse\] has no 'coef'",
    PULSE + "{ intercept = 1, coef = '1' }": "coef must be a number",
    PULSE + "{ intercept = 1, coef = 1, x = 1 }": "'x' is not known",
    PULSE + "1": "must be a table",
    PULSE + "{ at = [[1, 0.1]], coef = 1 }": "either at, or intercept",
    **{
        PULSE + f"{{ at = [{at}] }}": r"such as \[\[60, 0.1\], \[100, 0.6"
        for at in ("", "[1, 0]", "[1, 0.1], [1, 0.2]", "[1, '2']", "1, 0.1")
    },
    PULSE + "{ at = 1 }": r"such as \[\[60, 0.1\], \[100, 0.6",
    PULSE + "{ at = [[1, 0.1], [2, 0.2], [3, 0.3]] }": r"such as \[\[60, 0.1\], ",
    PULSE + "{ intercept = 1, coef = inf }": "coef must be finite",
    STEP + "{ above = 1, below = 1, probability = 0.1 }": "above or below",
    STEP + "{ above = 1, probability = 1 }": r"must lie in \[0, 1\)",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_understood_is_refused(models, text):
    with pytest.raises(TableError, match=REFUSED[text]):
        models(text)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(TableError, match="is a folder"):
        read_missingness(tmp_path, ENCODER, (0, 1))
