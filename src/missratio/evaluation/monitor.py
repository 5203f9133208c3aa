"""Has the promised error been kept since? An answer that may be asked for every day.

Rows of the controlled class arrive one by one. Row i is wrong or not, and has a weight
W with mean one (1 where nothing is missing), so that L = W·1{wrong} has the error as
its mean. A bet c in (0, 1) against "the error is at most m" multiplies its capital by

    1 + c(L/m − 1),

which has a mean of at most one while the error is at most m, whatever came before, and
never falls below zero, however large W is. By Ville's inequality the capital, and that
of any average of bets, *ever* reaches 1/δ with probability δ at most. So one may look
after every row, for ever, and false alarms stay below δ.

Bets that were made in good times have lost their capital when the bad ones begin. So a
part of the capital is kept, and after every fiftieth row some of it goes into the same
bets. After j additions 1/(1 + log(1 + j)) of that part is left, so that the j-th is
about 1/(j log² j) of it. An average of bets that begin at different rows is an average
of bets, so false alarms stay below δ; and as they all grow by the same factor, their
sum is all that has to be known.

The same bets against a grid of levels m give a lower confidence bound that holds at all
times together. With V = W·1{right}, whose mean is one minus the error, they give the
upper one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, logsumexp

from missratio._base.typing import FloatArray
from missratio.classifier import Certificate
from missratio.evaluation.metrics import Interval
from missratio.threshold import check_levels

# Against a doubled error at alpha = 0.1 the best bet is c = 0.11; twenty-four bets lose
# little to the best one anywhere between a barely raised and a total error.
BETS = np.geomspace(0.01, 0.95, 24)
# What is kept for later bets, and the rows between two additions. At alpha = 0.1 and
# delta = 0.05 a doubled error is seen after 85 rows in the median from the start, as
# without any, and after 300 where 2,000 rows at half the level came before (1,550
# without); half of the capital kept: after 94 and 240.
KEPT, ADDED_EVERY = 0.05, 50
# The version of what `to_dict` gives, and numbers that no state of rows exceeds.
STATE_VERSION = 3
MOST_ROWS, LARGEST = 2**53, 1e300
# The confidence sequence has levels from far below alpha to nearly one.
N_LEVELS, FARTHEST = 96, 4.0
# What a monitor holds of its rows: their weights, and the capitals of its bets.
_HELD = ("wrong_weight", "right_weight", "largest_weight",
         "capital", "against_less", "against_more")  # fmt: skip


class WatchedPoint(NamedTuple):
    """The state after some row.

    Parameters
    ----------
    n_rows : int
    log_capital : float
        The logarithm of the capital against "the error is at most alpha".
    low, high : float
        The confidence sequence there.
    """

    n_rows: int
    log_capital: float
    low: float
    high: float


class TypeIErrorMonitor:
    """Raises an alarm when the controlled class's error exceeds α.

    While the error is at most α, the probability that an alarm is ever raised is at
    most δ, however long you watch and however often you look. An error that rises after
    a long good stretch is seen, too. `bound` contains the error at all times
    simultaneously with probability 1 − δ, if the error is constant.

    Rows count in the order in which they came. If labels of some rows come later than
    those of others, wait until all rows up to some day have theirs.

    Parameters
    ----------
    alpha : float
        The promised bound on the error.
    delta : float, default=0.05
        The probability of a false alarm, ever.

    Attributes
    ----------
    alarm : bool
        Whether the error has been found to exceed α. It stays once it is raised.
    alarm_row : int or None
        The number of rows after which it was raised.
    n_rows : int
        Labelled rows seen so far.
    error : float
        The weighted share of wrong rows; NaN before the first row.
    capital : float
        What one unit staked on "the error exceeds α" has become. An alarm is raised
        when it reaches 1/δ.
    bound : Interval
        The confidence sequence for the error.
    history : list of WatchedPoint
        A thinned record of how it went.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> monitor = mr.TypeIErrorMonitor(alpha=0.1, delta=0.05)
    >>> monitor.update(rng.random(2000) < 0.08).alarm
    False
    >>> monitor.update(rng.random(2000) < 0.2).alarm  # the error has doubled
    True
    """

    def __init__(self, alpha: float, delta: float = 0.05) -> None:
        check_levels(alpha, delta)
        self.alpha, self.delta = float(alpha), float(delta)
        self.n_rows = 0
        self.alarm_row: int | None = None
        self.history: list[WatchedPoint] = []
        self._levels = expit(
            np.linspace(logit(alpha) - FARTHEST, logit(alpha) + FARTHEST, N_LEVELS)
        )
        self._wrong_weight = self._right_weight = self._largest_weight = 0.0
        self._capital = np.full(len(BETS), np.log(1.0 - KEPT))
        self._against_less = np.zeros((N_LEVELS, len(BETS)))
        self._against_more = np.zeros((N_LEVELS, len(BETS)))

    @classmethod
    def from_certificate(cls, certificate: Certificate) -> Self:
        """A monitor of what a certificate promises, with its α and δ.

        Parameters
        ----------
        certificate : Certificate

        Returns
        -------
        Self
            One that hasn't seen a row.
        """
        return cls(certificate.alpha, certificate.delta)

    @property
    def alarm(self) -> bool:
        """Whether the error has been found to exceed α."""
        return self.alarm_row is not None

    @property
    def error(self) -> float:
        """The weighted share of wrong rows."""
        return self._wrong_weight / self.n_rows if self.n_rows else float("nan")

    @property
    def capital(self) -> float:
        """What one unit staked on "the error exceeds α" has become."""
        return float(np.exp(min(self._log_capital(self._capital), 700.0)))

    def _log_capital(self, bets: FloatArray) -> Any:
        """The log capital of bets, on the last axis, with what is kept for later."""
        return np.logaddexp(_log_mean(bets), np.log(_kept(self.n_rows // ADDED_EVERY)))

    @property
    def bound(self) -> Interval:
        """The confidence sequence for the error, at level 1 − δ for all times."""
        enough = np.log(2.0 / self.delta)
        less = _log_mean(self._against_less) >= enough
        more = _log_mean(self._against_more) >= enough
        low = float(self._levels[less].max(initial=0.0))
        high = float(self._levels[more].min(initial=1.0))
        return Interval(low, max(low, high))

    def update(self, wrong: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Take rows of the controlled class into account, in the order they came.

        Parameters
        ----------
        wrong : array-like of shape (n_rows,)
            1 where a row was classified as the other class, else 0.
        weights : array-like of shape (n_rows,), optional
            Weights of mean one where values are missing not at random: 1/(1 − φ) for a
            row that was observed and 0 for one that was not. Rows that were not
            observed have to be given.

        Returns
        -------
        Self
            The monitor.
        """
        is_wrong = np.atleast_1d(np.asarray(wrong, dtype=np.float64))
        if is_wrong.ndim != 1 or not np.isin(is_wrong, (0.0, 1.0)).all():
            raise ValueError(
                "wrong must hold a 0 or a 1 for each row, and nothing else: got shape "
                f"{is_wrong.shape}."
            )
        n_rows = len(is_wrong)
        mass = np.asarray(1.0 if weights is None else weights, dtype=np.float64)
        if mass.shape not in ((), (n_rows,)):
            raise ValueError(
                f"weights must have one entry for each of the {n_rows} rows, got shape "
                f"{mass.shape}."
            )
        # Written so that NaN is refused, too.
        if not ((mass >= 0.0) & (mass <= LARGEST)).all():
            raise ValueError(
                f"weights must be finite and lie between 0 and {LARGEST:g}, got values "
                f"from {mass.min():g} to {mass.max():g}."
            )
        errors, rights = mass * is_wrong, mass * (1.0 - is_wrong)
        # An update leaves 16 points at most.
        length = max(1, -(-n_rows // 16))
        for start in range(0, n_rows, length):
            part = slice(start, start + length)
            self._take(errors[part], rights[part])
        return self

    def _take(self, errors: FloatArray, rights: FloatArray) -> None:
        """One chunk of L and V."""
        for state, values, levels in (
            (self._against_less, errors, self._levels),
            (self._against_more, rights, 1.0 - self._levels),
        ):
            # Rows come in few different values wherever weights do.
            for value, count in zip(*np.unique_counts(values), strict=True):
                state += count * np.log1p(BETS * (value / levels[:, None] - 1.0))
        self._wrong_weight += float(errors.sum())
        self._right_weight += float(rights.sum())
        heaviest = float((errors + rights).max(initial=0.0))
        self._largest_weight = max(self._largest_weight, heaviest)
        gains = np.log1p(BETS * (errors[:, None] / self.alpha - 1.0))
        additions = range(-self.n_rows % ADDED_EVERY, len(errors), ADDED_EVERY)
        # Each part has the rows up to the next addition, which follows it.
        for part in filter(len, np.split(gains, additions)):
            paths = self._capital + np.cumsum(part, axis=0)
            beyond = np.flatnonzero(self._log_capital(paths) >= -np.log(self.delta))
            if beyond.size and not self.alarm:
                self.alarm_row = self.n_rows + int(beyond[0]) + 1
            self._capital = paths[-1]
            self.n_rows += len(part)
            parts, rest = divmod(self.n_rows, ADDED_EVERY)
            if not rest:
                added = np.log(_kept(parts - 1) - _kept(parts))
                self._capital = np.logaddexp(self._capital, added)
        self.history.append(self._point())
        # The capital's history is thinned, so that it never holds more points.
        if len(self.history) > 512:
            self.history = self.history[::2]

    def _point(self) -> WatchedPoint:
        """The state after the last row."""
        capital = float(self._log_capital(self._capital))
        return WatchedPoint(self.n_rows, capital, *self.bound)

    def summary(self) -> str:
        """What has been found, in a sentence or two."""
        if not self.n_rows:
            return "No row has been seen yet."
        low, high = self.bound
        seen = f"{self.n_rows} rows of the controlled class: error {self.error:.1%}"
        if self.alarm and low <= self.alpha:
            # The confidence sequence is of a constant error, which this is not.
            seen += " over all of them. It has risen since the first."
        else:
            seen += (
                f", between {low:.1%} and {high:.1%} with probability "
                f"{1 - self.delta:.0%} at all times together."
            )
        if not self.alarm:
            return f"No sign that the error exceeds {self.alpha:.3g}. {seen}"
        row = self.alarm_row
        return f"ALARM after row {row}: the error exceeds {self.alpha:.3g}. {seen}"

    def to_dict(self) -> dict[str, Any]:
        """All of the state as plain data."""
        plain = ("alpha", "delta", "n_rows", "alarm_row")
        return {
            "version": STATE_VERSION,
            **{name: getattr(self, name) for name in plain},
            **{name: np.array(getattr(self, f"_{name}")).tolist() for name in _HELD},
            "history": [list(point) for point in self.history],
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """A monitor that goes on where another stopped.

        Parameters
        ----------
        state : mapping
            What `to_dict` gave.
        """
        if "capital" in state and state.get("version") != STATE_VERSION:
            raise ValueError(
                "The state was saved by another version of missratio, which bet "
                "otherwise. Start a new monitor."
            )

        def within(name: str, low: Any, high: Any) -> Any:
            numbers = np.array(state[name], dtype=np.float64)
            if numbers.shape != np.shape(low):
                raise ValueError(f"{name!r} has the shape {numbers.shape}")
            if not ((numbers >= low) & (numbers <= high)).all():
                least, most = np.min(low), np.max(high)
                raise ValueError(f"{name!r} must lie between {least:g} and {most:g}")
            return numbers if numbers.ndim else float(numbers)

        try:
            monitor = cls(state["alpha"], state["delta"])
            n_rows = monitor.n_rows = int(within("n_rows", 0, MOST_ROWS))
            if state["alarm_row"] is not None:
                monitor.alarm_row = int(within("alarm_row", 1, n_rows))
            # 1. The bets are all on the same rows, so many and so heavy.
            largest = monitor._largest_weight = within("largest_weight", 0.0, LARGEST)
            heaviest = n_rows * largest * (1.0 + 1e-9)
            wrong = monitor._wrong_weight = within("wrong_weight", 0.0, heaviest)
            right = within("right_weight", 0.0, heaviest - wrong)
            monitor._right_weight, levels = right, monitor._levels[:, None]
            less = _reach(n_rows, wrong, largest, levels)
            more = _reach(n_rows, right, largest, 1.0 - levels)
            low, high = _reach(n_rows, wrong, largest, monitor.alpha)
            # What is added to bets gains c·L/α at most from each row.
            added = np.log(KEPT) + BETS * (wrong / monitor.alpha)
            start = np.log(1.0 - KEPT)
            monitor._against_less = within("against_less", *less)
            monitor._against_more = within("against_more", *more)
            monitor._capital = within(
                "capital", start + low, np.logaddexp(start + high, added)
            )
            # 2. The history goes up to the last row, and to 1/δ with the alarm alone.
            seen, enough = 0, -np.log(monitor.delta)
            alarm_row = monitor.alarm_row or np.inf
            for point in (WatchedPoint(*each) for each in state["history"]):
                n, capital, low, high = point
                known = seen < n <= n_rows and (capital < enough or n >= alarm_row)
                if not (known and 0.0 <= low <= high <= 1.0):
                    raise ValueError(f"'history' has the point {tuple(point)}")
                seen = n
                monitor.history.append(point)
            if n_rows and not np.allclose(monitor.history[-1:], monitor._point()):
                raise ValueError("'history' ends otherwise")
            if monitor.to_dict() != dict(state):
                raise ValueError("it holds what no monitor writes")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"This is not the state of a monitor: {error!r}. Start a new one."
            ) from error
        return monitor


def _reach(n_rows: int, total: float, largest: float, levels: Any) -> Any:
    """The least and the most log capital of bets on weights of a given sum.

    A logarithm is concave: equal weights make the most, and as many of the largest as
    there can be, beside zeros, the least.
    """
    lost, count = np.log1p(-BETS), total / (largest or 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        most = n_rows * np.log1p(BETS * (total / max(n_rows, 1) / levels - 1.0))
        won = np.log1p(BETS * (largest / levels - 1.0)) - lost
        least = n_rows * lost + count * won
    # Sums are rounded.
    return least - 1e-6 * (1.0 + np.abs(least)), most + 1e-6 * (1.0 + np.abs(most))


def _kept(parts: int) -> float:
    """The part of a unit that is not bet yet when so many parts have been added."""
    return KEPT / (1.0 + float(np.log1p(parts)))


def _log_mean(log_capitals: FloatArray) -> Any:
    """The logarithm of the average over bets, the last axis."""
    return logsumexp(log_capitals, axis=-1) - np.log(len(BETS))
