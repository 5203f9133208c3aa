"""scikit-learn's own checks of estimators, with the failures that are meant."""

from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from missratio import ImputationEnsemble, TiltedImputer

IMPUTERS = [TiltedImputer(), TiltedImputer("ignore", random_state=0)]
ENSEMBLE = ImputationEnsemble(
    TiltedImputer("ignore", n_imputations=2, random_state=0), LogisticRegression()
)


@parametrize_with_checks([*IMPUTERS, ENSEMBLE])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
