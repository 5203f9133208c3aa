"""Imputation that knows why values are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import any_by_row
from missratio._base.callbacks import CallbackSupportMixin, run_tasks
from missratio._base.hints import entropy
from missratio._base.reading import check_no_infinity, read_table
from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread
from missratio._base.typing import FloatArray
from missratio.imputation import chains
from missratio.imputation.columns import Columns
from missratio.imputation.conditionals import RowNoise, thinned
from missratio.rows import check_inclusion, refuse_source
from missratio.tensor import in_library_of, on_host


@storable(counts=("n_imputations", "n_rounds"))
@dataclass(eq=False, repr=False)
class TiltedImputer(
    CallbackSupportMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator
):
    """Draws missing values from p(z_j | z_−j, missing) ∝ p(z_j | z_−j) φ_j(z_j).

    A value that went missing is unlike the observed ones wherever φ_j depends on it.
    For each column j in turn, a regression on the other columns is fitted where j is
    observed, with weights 1/(1 − φ_j): that recovers the law of z_j given the rest in
    complete data. For a missing entry, the prediction plus a weighted draw of the
    residuals proposes a value, accepted with probability ∝ φ_j: that is the law of
    those that go missing. Rounds over all columns make a Gibbs sampler, whose draws
    have the joint law of the missing entries. Each class is a population of its own.
    With φ constant this is ordinary multiple imputation by chained equations. Where φ
    is not known and some missing values, drawn at random, were looked up, their law is
    that of the looked-up ones (`inclusion` in `fit`), whatever φ is.

    Regressions work on normal scores of the columns, so skewed columns do no harm, and
    on indicators of categories. An imputed value is always one that was observed.

    Parameters
    ----------
    missingness : mapping from class to Missingness, Missingness, "ignore" or None
        Why values are missing, per feature. A mapping: each class has its own φ and is
        imputed on its own; a class left out is complete, or values of it were looked up
        (`inclusion`). One model: all rows are one population, whatever their labels.
        "ignore": ordinary multiple imputation, all rows one population. None: nothing
        is missing, or values were looked up. φ sees a category that is not a
        number as its place among the sorted categories.
    n_imputations : int, default=1
        How many completed tables.
    n_rounds : int, default=10
        How often each missing entry is drawn.
    bootstrap : bool, default=True
        Whether each imputation reweights the rows by a Bayesian bootstrap, so that the
        differences between imputations include the uncertainty of the regressions.
        Without it, variances by Rubin's rules are too small.
    categorical_features : "auto" or array-like, default="auto"
        Names or positions of columns of categories. "auto": in a dataframe, those that
        are not numbers.
    unlabelled : object, default=None
        The class whose conditional laws impute rows that come without labels, in
        `transform` and `impute`, where `missingness` is a mapping. None refuses such
        rows if a value is missing: which law it has depends on the class.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    convergence_ : dict of class to dict of column to ndarray
        How the chains went: means of the imputed values of each incomplete column, of
        shape (n_imputations, n_rounds). Chains that have settled wander about one
        level, without a trend. The class is None where all rows are one population.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Notes
    -----
    A pipeline gives labels to `fit_transform` in training, and none to `transform`
    afterwards. `transform` returns complete rows unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(5000, 2))
    >>> Z[:, 1] += Z[:, 0]
    >>> phi = mr.LogisticMissingness([0.0, -np.inf], [2.0, 0.0])  # large ones are lost
    >>> X = mr.corrupt(Z, phi, random_state=0)
    >>> lost = np.isnan(X[:, 0])
    >>> imputed = mr.TiltedImputer(phi, random_state=0).fit_transform(X)
    >>> float(Z[lost, 0].mean().round(1)), float(imputed[lost, 0].mean().round(1))
    (0.6, 0.6)
    >>> plain = mr.TiltedImputer("ignore", random_state=0).fit_transform(X)
    >>> float(plain[lost, 0].mean().round(1))
    -0.2
    """

    missingness: chains.Models | None = None
    _: KW_ONLY
    n_imputations: int = 1
    n_rounds: int = 10
    bootstrap: bool = True
    categorical_features: Any = "auto"
    unlabelled: Any = None
    random_state: Any = None

    def fit(
        self, X: Any, y: ArrayLike | None = None, inclusion: ArrayLike | None = None
    ) -> Self:
        """Run the chains on the rows of each class.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN, or a null, where a value is missing.
        y : array-like of shape (n_rows,), optional
            Labels; needed where `missingness` is a mapping and a value is missing.
            With `inclusion`, each class is imputed on its own.
        inclusion : array-like of shape (n_rows, n_columns), optional
            Where values were looked up, the probability with which each entry is there:
            `X, inclusion = revealed.fill(X)`. Missing values of such a class have the
            law of those that were looked up, and it needs no model.

        Returns
        -------
        Self
            The fitted imputer.
        """
        self._fit(X, y, inclusion)
        return self

    def fit_transform(
        self, X: Any, y: ArrayLike | None = None, inclusion: ArrayLike | None = None
    ) -> Any:
        """Fit, and return the first completed table.

        Parameters
        ----------
        X, y, inclusion
            As for `fit`.

        Returns
        -------
        array or dataframe of shape (n_rows, n_columns)
            Of X's kind.
        """
        return in_library_of(X, self._fit(X, y, inclusion)[0])

    def fit_impute(
        self, X: Any, y: ArrayLike | None = None, inclusion: ArrayLike | None = None
    ) -> list[Any]:
        """Fit, and return all completed tables.

        Parameters
        ----------
        X, y, inclusion
            As for `fit`.

        Returns
        -------
        list of n_imputations arrays or dataframes
            Each of X's kind.
        """
        return [in_library_of(X, table) for table in self._fit(X, y, inclusion)]

    def transform(self, X: Any) -> Any:
        """Complete rows as they are; of others, the first imputation.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            Rows without labels.

        Returns
        -------
        array or dataframe of shape (n_rows, n_columns)
            Of X's kind.

        Raises
        ------
        ValueError
            If a value is missing and `unlabelled` doesn't say as which class to impute
            the row.
        """
        return in_library_of(X, self._redraw(X, 1)[0])

    def impute(self, X: Any) -> list[Any]:
        """All imputations of rows without labels, by what was fitted.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        list of n_imputations arrays or dataframes
            Each of X's kind.
        """
        tables = self._redraw(X, self.n_imputations)
        return [in_library_of(X, table) for table in tables]

    def __sklearn_tags__(self) -> Any:
        """Missing values are welcome where it is said why they are missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missingness is not None
        return tags

    def _fit(
        self, X: Any, y: ArrayLike | None, inclusion: ArrayLike | None
    ) -> list[Any]:
        # 1. Parameters and the table.
        for name in ("n_imputations", "n_rounds"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        refuse_source(self, X, "Bring some of them into memory.")
        X, table = self._read(X, reset=True)
        missing = np.isnan(table)
        if inclusion is not None:
            inclusion = check_inclusion(inclusion, table)
        populations = chains.find_populations(
            table, y, self.missingness, self._columns, inclusion
        )
        # 2. Chains, those of all classes among threads.
        seeds = np.random.SeedSequence(entropy(self.random_state))
        drawn, kept = [], {}
        for population in populations:
            streams = seeds.spawn(self.n_imputations)
            drawn += [(population, stream) for stream in streams]
            if population.label in (None, self.unlabelled):
                kept[population.label] = seeds.spawn(1)[0]

        def chain(start: tuple[chains.Population, np.random.SeedSequence]) -> Any:
            population, stream = start
            return chains.impute_chain(population, self, np.random.default_rng(stream))

        with one_blas_thread(sum(each.table.size for each, _ in drawn)) as threads:
            ended = run_tasks(self, "chain", drawn, chain, threads)
        # 3. What they drew, how they went, and laws for rows without labels.
        completed = [table.copy(order="F") for _ in range(self.n_imputations)]
        self.convergence_: dict[Any, dict[str, FloatArray]] = {}
        self._fitted: list[chains.Fitted] = []
        for population in populations:
            label, incomplete = population.label, population.incomplete
            mine = [ended.pop(0) for _ in completed]
            means = np.array([trace for _, trace, _ in mine])
            self.convergence_[label] = {
                column.name: means[:, :, k] for k, column in enumerate(incomplete)
            }
            for whole, (imputed, _, _) in zip(completed, mine, strict=True):
                for column in incomplete:
                    rows = population.rows[column.missing]
                    whole[rows, column.position] = imputed[column.position]
            if label in kept:
                # Laws that are kept have few donors.
                rng = np.random.default_rng(kept[label])
                self._fitted = [
                    (columns, {j: thinned(law, rng) for j, law in last.items()})
                    for _, _, (columns, last) in mine
                ]
        # As plain numbers, which a model file can hold.
        self._redraw_seed = seeds.spawn(1)[0].state
        return [self._columns.complete(X, whole, missing) for whole in completed]

    def _read(self, X: Any, *, reset: bool) -> tuple[Any, FloatArray]:
        """The table as it comes, and as numbers, NaN where missing."""
        X = read_table(self, on_host(X), reset=reset, keep_frame=True, dtype="numeric")
        if reset:
            self._columns = Columns.read(X, self.categorical_features)
        table = self._columns.encode(X)
        check_no_infinity(table)
        return X, table

    def _redraw(self, X: Any, n_imputations: int) -> list[Any]:
        """Imputations of rows without labels, by the laws that were fitted.

        What a row is given depends on that row alone, not on the others or their order.
        """
        check_is_fitted(self, "convergence_")
        X, table = self._read(X, reset=False)
        missing, names = np.isnan(table), self._columns.names
        if not missing.any():
            return [X] * n_imputations
        # 1. Refuse rows that nothing was learned for. By look-ups, classes are imputed
        # on their own without a mapping.
        apart = isinstance(self.missingness, Mapping) or set(self.convergence_) - {None}
        if apart and self.unlabelled is None:
            raise ValueError(
                f"X has missing values (NaN) in column(s) "
                f"{chains.columns_missing(missing, names)}, and which law they have "
                "depends on the class, which is not known here. Give complete rows, "
                "use fit_transform(X, y) for rows with labels, or say by "
                "unlabelled=... as which class such rows are to be imputed."
            )
        known = [j for _, laws in self._fitted[:1] for j in laws]
        unknown = missing & ~np.isin(np.arange(missing.shape[1]), known)
        if unknown.any():
            whose = f" of class {self.unlabelled!r}" if apart else ""
            raise ValueError(
                f"X has missing values (NaN) in column(s) "
                f"{chains.columns_missing(unknown, names)}, where the rows{whose} that "
                "were fitted had none: no law was learned for them. Fit with rows that "
                "miss them, or give complete rows."
            )
        # 2. Rounds over the columns that they miss.
        rows, tables = np.flatnonzero(any_by_row(missing)), []
        part, absent = table[rows], missing[rows]
        seeds = np.random.SeedSequence(**self._redraw_seed).spawn(n_imputations)
        fitted = self._fitted[:n_imputations]
        for (columns, laws), seed in zip(fitted, seeds, strict=True):
            noise, design = RowNoise.of(part, seed), chains.Design(part, columns)
            whole = table.copy(order="F")
            for turn in range(self.n_rounds):
                for j, law in laws.items():
                    lacking = np.flatnonzero(absent[:, j])
                    if len(lacking):
                        stream = noise.stream(turn, j).chosen(lacking)
                        drawn = law.draw(design.others(j, lacking), stream)
                        whole[missing[:, j], j] = design.set(j, lacking, drawn)
            tables.append(self._columns.complete(X, whole, missing))
        return tables
