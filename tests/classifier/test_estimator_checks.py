"""scikit-learn's own checks of estimators, with the failures that are meant."""

from classifiers import certified
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from missratio import KLIEP


def lenient(estimator, **options):
    """Levels that the checks' small tables can meet, or else everything is refused."""
    levels = {"alpha": 0.2, "delta": 0.2, "on_infeasible": "reject_all"}
    return certified(estimator, controlled_class=None, **levels, **options)


NAN = {
    "check_estimators_nan_inf": (
        "a row with NaN to be classified gets the controlled class, by contract"
    ),
    "check_classifiers_train": "the threshold isn't where probabilities are even",
}
# All rows but one class's have weight 0 here, and LogisticRegression's scores are the
# same for all: none is above the threshold, and all get the controlled class.
ONE_LABEL = {
    "check_classifiers_one_label_sample_weights": (
        "where scores tell nothing all rows get the controlled class"
    )
}
EXPECTED = {
    LogisticRegression: NAN | ONE_LABEL,
    KLIEP: NAN,
    type(None): NAN | ONE_LABEL,
}


@parametrize_with_checks(
    [
        lenient(None),
        lenient(LogisticRegression()),
        lenient(KLIEP(l2=0.1), missingness_delta=0.1, odds_factor=1.5),
    ],
    expected_failed_checks=lambda classifier: EXPECTED[type(classifier.estimator)],
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
