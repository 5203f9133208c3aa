"""What can be asked of the commands: each option is declared once, on its field.

Commands build their signatures from these dataclasses, and the work takes them as they
are. Nothing heavy is imported, so that a refused option is refused at once.
"""
# ruff: noqa: RUF009

from __future__ import annotations

import math
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import typer
from typer.models import ArgumentInfo

from missratio._base.hints import did_you_mean, listed, shown

IGNORE, LEARN = "ignore", "learn"
METHODS = ("kliep", "js", "kliep-cv", "naive-bayes", "indicators", "indicators-js",
           "ulsif", "rulsif", "kernel-kliep", "kmm", "logistic", "trees",
           "imputed-logistic", "imputed-trees")  # fmt: skip
RULES = ("auto", "binomial", "paper", "bernstein", "thinning",
         "counting", "betting", "flipped-betting", "tuned-betting")  # fmt: skip
# So many choices stand beside an option in its help, more below it.
SHORT = 3
# No table is long enough to certify a lower one.
LEAST_LEVEL = 1e-12
_MOST_VALUES = 10**9
SETTINGS = Path("missratio.toml")
"""What `missratio check` writes, and other commands read."""
# Lists in it, to which the command line adds.
_ADDED = {"drop", "categorical", "missing_value", "merge"}
# Packages that make some kinds of files, and their extras.
EXTRAS = {
    ".xlsx": ("xlsxwriter", "tables"), ".html": ("vl_convert", "report"),
}  # fmt: skip


def read_share(text: Any, option: str | None = None) -> float:
    """A share between 0 and 1, as a number or in percent."""
    words = str(text).strip().replace("\u00a0", " ").replace(",", ".")
    try:
        share = float(words.removesuffix("%")) / (100.0 if words.endswith("%") else 1.0)
    except ValueError:
        said = f"{shown(text)} is not a share: write 0.05 or 5%."
        raise typer.BadParameter(said, param_hint=option) from None
    if not LEAST_LEVEL <= share < 1.0:
        meant = f" Did you mean {share:g}%?" if 1.0 <= share < 100.0 else ""
        said = f"a share must lie between 0 and 1, and be {LEAST_LEVEL:g} or more: got "
        raise typer.BadParameter(f"{said}{text}.{meant}", param_hint=option)
    return share


def read_pairs(
    words: Iterable[str], option: str, form: str, example: str
) -> dict[str, str]:
    """What texts stand for, as an option is given them: TEXT=MEANT."""
    pairs: dict[str, str] = {}
    for word in words:
        text, _, meant = (part.strip() for part in word.rpartition("="))
        if not text or not meant:
            raise ValueError(
                f"{option} takes {form}, such as {option} {example}: got {word!r}."
            )
        if pairs.setdefault(text, meant) != meant:
            raise ValueError(f"{option} names each once: got {text!r} again.")
    return pairs


def asked(
    text: str,
    default: Any = None,
    *names: str,
    panel: str | None = None,
    choices: tuple[str, ...] = (),
    suffixes: tuple[str, ...] = (),
    **more: Any,
) -> Any:
    """A field that is an option.

    Parameters
    ----------
    text : str
        What help says of it.
    default : object
        ``...`` where it is needed.
    *names : str
        What it is called, where it is a flag or the field's name doesn't say it.
    panel : str, optional
        The part of the help that it is in.
    choices, suffixes : tuple of str
        What it may be, or how a file may end; anything where these are empty.
    **more : object
        As typer takes it.
    """
    if isinstance(default, bool):
        more["metavar"] = ""
    if 0 < len(choices) <= SHORT:
        more["metavar"] = "|".join(choices)
    elif choices or suffixes:
        text += f" One of {', '.join(choices or suffixes)}."
    if choices:
        # The shell completes what was begun.
        more["autocompletion"] = lambda incomplete: [
            choice for choice in choices if choice.startswith(incomplete)
        ]
    more["show_default"] = default is not False and default not in (None, [])
    info = typer.Option(default, *names, help=text, rich_help_panel=panel, **more)
    metadata = {"typer": info, "choices": choices, "suffixes": suffixes}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=MISSING if default is ... else default, metadata=metadata)


def argument(text: str, metavar: str, *, needed: bool = True) -> Any:
    """A field that is given by its place."""
    usual = ... if needed else None
    info = typer.Argument(usual, help=text, metavar=metavar, show_default=False)
    metadata = {"typer": info, "choices": (), "suffixes": ()}
    return field(default=MISSING if needed else None, metadata=metadata)


Pairs = tuple[tuple[str, str, str], ...]
PANELS = (
    None, "About the promise", "Why values are missing", "How to learn",
    "Which values to look up", "How to read the table", "Files and output",
)  # fmt: skip
"""The parts of a command's help, in their order."""
_promise, _why, _learning, _look_ups, _reading, _files = (
    partial(asked, panel=panel) for panel in PANELS[1:]
)
_share = partial(asked, parser=read_share, metavar="SHARE")
# Fields of several commands.
_data = partial(
    argument, "A table: .csv, .tsv, .csv.gz, .parquet, .xlsx, .xls, .ods.", "DATA"
)
_model = partial(argument, "A file that `missratio fit` wrote.", "MODEL")
_drop = partial(
    _reading, "Columns to leave out, separated by commas; may be repeated.", []
)
_new_rows = partial(
    _promise,
    "Will new rows have blanks like those in DATA, or will they be complete? "
    "Default: blanks, unless why values are missing is said.",
    choices=("blanks", "complete"),
)
_delta = partial(_share, "Probability with which the bound may fail, such as 5%.", 0.05)
_target = partial(asked, "The column of labels.", metavar="COLUMN")


ALARM = 6
"""The exit status of a watch that found a broken promise."""


@dataclass(frozen=True)
class CommandOutcome:
    """What a command has to say, as data and as lines, and the status to leave with."""

    facts: dict[str, Any]
    lines: list[str]
    status: int = 0


class Listener:
    """Hears what is done next, and that some of it is done; this one tells nobody."""

    def step(self, what: str, total: int | None = None) -> None:
        """Begin another step, of so many parts."""

    def tick(self, parts: int) -> None:
        """Some more parts are done."""


@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    """What every command takes.

    `READS` and `WRITES` name the files that are never overwritten, and those that are
    made; a command that `RESUMES` goes on where it was interrupted. Of `CONFLICTS` the
    first and any of the second don't go together, and of `NEEDS` the first is of no use
    without the second, both with the reason; each is an option that is given, or
    ``option=value``. `NAMES` is what messages call other conditions.
    """

    quiet: bool = _files("Print nothing but errors.", False, "--quiet", "-q")
    as_json: bool = _files("Print one JSON object, and nothing else.", False, "--json")

    READS: ClassVar[tuple[str, ...]] = ()
    WRITES: ClassVar[tuple[str, ...]] = ("out",)
    RESUMES: ClassVar[bool] = False
    NAMES: ClassVar[dict[str, str]] = {}
    CONFLICTS: ClassVar[Pairs] = ()
    NEEDS: ClassVar[Pairs] = ()

    def paths(self, names: Iterable[str]) -> list[Path]:
        """Files by the names of their options, those that are given."""
        every = (getattr(self, name) for name in names)
        return [path for path in every if path is not None]

    def check(self) -> None:
        """Refuse what isn't among the choices, contradicts itself, or can't be made."""
        for path in self.paths(self.WRITES):
            module, extra = EXTRAS.get(path.suffix.lower(), ("", ""))
            if module and find_spec(module) is None:
                raise ModuleNotFoundError(
                    f"{path} needs the package {module}: pip install "
                    f"'missratio[{extra}]'."
                )
        for each in fields(self):
            value, choices = getattr(self, each.name), each.metadata["choices"]
            if choices and value not in (None, *choices):
                raise ValueError(
                    f"{self._called(each.name)} must be one of {listed(choices)}, got "
                    f"{value!r}.{did_you_mean(value, choices)}"
                )
            ends = each.metadata["suffixes"]
            if ends and value is not None and value.suffix.lower() not in ends:
                raise ValueError(
                    f"{self._called(each.name)} must end in one of {', '.join(ends)}: "
                    f"got {value.name!r}."
                )
        for first, others, reason in self.CONFLICTS:
            for second in filter(self._given, others.split()):
                if self._given(first):
                    raise ValueError(
                        f"{self._called(first)} and {self._called(second)} don't go "
                        f"together: {reason}. Leave out one."
                    )
        for first, second, reason in self.NEEDS:
            if self._given(first) and not self._given(second):
                raise ValueError(
                    f"{self._called(first)} needs {self._called(second)}: {reason}."
                )

    def command(
        self,
        name: str,
        kind: type[CommandOptions],
        settings: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        """Another command with the same options, to be pasted into a shell.

        Parameters
        ----------
        name : str
        kind : type
            The options that it takes; those that it shares with this one are kept.
        settings : mapping, optional
            What need not be said; by default what `missratio.toml` says.
        **changes : object
            Options that are different; None for those that are left out.
        """
        words, changes = ["missratio", name], {"quiet": 0, "as_json": 0, **changes}
        said = read_settings() if settings is None else settings
        for each in fields(kind):
            info, usual = each.metadata["typer"], each.default
            if each.default_factory is not MISSING:
                usual = each.default_factory()
            value = changes.get(each.name, getattr(self, each.name, None))
            if (known := said.get(each.name)) is not None:
                usual = read_share(known) if isinstance(value, float) else known
                if isinstance(value, list):
                    # Lists on the command line add to those of the settings.
                    usual = known if isinstance(known, list) else [known]
                    value = [word for word in value if word not in usual]
            if isinstance(info, ArgumentInfo):
                words[2:2] = [str(value)] * (value != usual)
            elif value and value != usual:
                option = next(
                    (word for word in info.param_decls or () if word.startswith("--")),
                    f"--{each.name.replace('_', '-')}",
                )
                for word in value if isinstance(value, list) else [value]:
                    text = f"{word:g}" if isinstance(word, float) else str(word)
                    words += [option] if word is True else [option, text]
        return shlex.join(words)

    def _given(self, condition: str) -> bool:
        name, _, value = condition.partition("=")
        given = getattr(self, name)
        return given == value if value else given not in (None, False, [])

    def _called(self, condition: str) -> str:
        name, _, value = condition.partition("=")
        option = f"--{name.replace('_', '-')}" + f" {value}" * bool(value)
        return self.NAMES.get(name, option)


@dataclass(frozen=True, kw_only=True)
class Writing(CommandOptions):
    """A command that writes what wasn't there."""

    force: bool = _files("Overwrite the output.", False, "--force")


@dataclass(frozen=True, kw_only=True)
class Reading(CommandOptions):
    """How the file of a table is read."""

    encoding: str | None = _reading("Character encoding of a CSV file. Default: UTF-8.")
    sheet: str | None = _reading("Sheet of a workbook. Default: the first visible one.")
    header_row: int | None = _reading(
        "The line of the column names. Default: the first that isn't blank.", min=1
    )

    @property
    def how(self) -> dict[str, Any]:
        """The same, as `open_table` takes it."""
        names = ("encoding", "sheet", "header_row")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class CellOptions(Reading, Writing):
    """A table, and what its cells mean."""

    data: Path = _data()
    versus: str | None = _reading(
        "With more than two labels: the one to keep beside --controlled, or 'rest' to "
        "take all others as one class.",
        metavar="LABEL|rest",
    )
    drop: list[str] = _drop()
    categorical: list[str] = _reading(
        "Columns of numbers that are categories, separated by commas; may be repeated.",
        [],
    )
    missing_value: list[str] = _reading(
        "What marks a missing cell beside a blank, NA, NaN and null; may be repeated.",
        [],
    )
    merge: list[str] = _reading(
        "A text that means the same as another, such as Well=well; may be repeated.",
        [],
        metavar="TEXT=MEANT",
    )
    skip_unlabelled: bool = _reading(
        "Leave out rows without a label.", False, "--skip-unlabelled"
    )

    READS: ClassVar[tuple[str, ...]] = ("data",)

    @property
    def cells(self) -> dict[str, Any]:
        """What cells mean, as `read_labelled` takes it."""
        return {
            "drop": self.drop,
            "categorical": self.categorical,
            "missing_values": self.missing_value,
            "skip_unlabelled": self.skip_unlabelled,
            "merge": self.merged,
        }

    @cached_property
    def merged(self) -> dict[str, str]:
        """What texts mean that mean the same as another."""
        return read_pairs(self.merge, "--merge", "TEXT=MEANT", "Well=well")

    def check(self) -> None:
        """Refuse what --merge can't mean, too."""
        super().check()
        assert self.merged is not None


@dataclass(frozen=True, kw_only=True)
class CheckOptions(CellOptions):
    """What is known of a table that is looked at first."""

    target: str | None = _target()
    controlled: str | None = asked("The label whose error is bounded.", metavar="LABEL")
    alpha: str | None = asked("Bound on its error, such as 10%.", metavar="SHARE")
    new_rows: str | None = _new_rows()
    out: Path | None = _files("A page on it.", suffixes=(".html", ".md"))

    def check(self) -> None:
        """Refuse what is no share, too."""
        super().check()
        if self.alpha is not None:
            read_share(self.alpha, "--alpha")


@dataclass(frozen=True, kw_only=True)
class QueryOptions(CellOptions):
    """What is asked of a plan of look-ups."""

    target: str = _target(...)
    out: Path = asked("The table to fill in.", ..., suffixes=(".csv", ".xlsx"))
    controlled: str = asked("The label whose error is bounded.", ..., metavar="LABEL")
    alpha: float = _share("Bound on its error, as 0.05 or 5%.", 0.05)
    delta: float = _delta()
    seed: int = asked("Random seed: a larger plan extends a smaller one.", 0, min=0)
    budget: int | None = _look_ups(
        "Values to look up in all, spent where they buy the most power.",
        min=1, max=_MOST_VALUES,
    )  # fmt: skip
    per_feature: int | None = _look_ups(
        "Values for each class and column. Default: 30 without --budget.",
        min=1, max=_MOST_VALUES,
    )  # fmt: skip
    id_column: str | None = _look_ups(
        "A column that identifies a row; it is copied to the plan.", None, "--id"
    )

    CONFLICTS: ClassVar[Pairs] = (
        ("budget", "per_feature", "both say how many values to look up"),
    )


@dataclass(frozen=True, kw_only=True)
class FitOptions(CellOptions):
    """What is asked of a fit."""

    target: str = _target(...)
    out: Path = asked("The model file.", Path("model.skops"))
    controlled: str | None = asked(
        "The label whose error is bounded; left out where --alpha names several.",
        metavar="LABEL",
    )
    alpha: list[str] = asked(
        "Bound on the error of the controlled class, such as 0.05 or 5%; or "
        "LABEL=SHARE, repeated, to bound the errors of several classes together.",
        ["5%"],
        metavar="SHARE|LABEL=SHARE",
    )
    delta: float = _delta()
    seed: int = asked("Random seed for the train/calibration split.", 0, min=0)
    ordered: str | None = _promise(
        "Labels with commas between, the most severe first: --alpha then bounds "
        "the share of each class but the last that is called less severe.",
        metavar="LABELS",
    )
    groups: str | None = _promise(
        "A column of groups, which is no feature then: the error of --controlled is "
        "bounded in each group, by a threshold of its own.",
        metavar="COLUMN",
    )
    group_alpha: list[str] = _promise(
        "Bound on the error in one group; the others have --alpha. May be repeated.",
        [],
        metavar="GROUP=SHARE",
    )
    new_rows: str | None = _new_rows()
    odds_factor: float = _promise(
        "Keep the guarantee if the odds of being missing are wrong by this factor.", 1.0
    )
    on_infeasible: str = _promise(
        "If nothing can be certified: raise, or reject_all: every row is controlled.",
        "raise",
        choices=("raise", "reject_all"),
    )
    missingness: str | None = _why(
        "Why values are missing: 'learn' to learn it from the table, a TOML file "
        "that says so, or 'ignore', as --new-rows blanks.",
        metavar="learn|FILE|ignore",
    )
    assume: list[str] = _why(
        'What you know of missing values, such as "HbA1c: 30% of sick, higher more '
        'likely" (or lower; slightly or much more likely; of all); may be repeated. '
        "Other columns: --missingness learn.",
        [],
        metavar="TEXT",
    )
    queries: Path | None = _why(
        "A plan that `missratio query` wrote, filled in.", metavar="PLAN"
    )
    method: str = _learning(
        "auto: compare the others on training rows left out in turn, and take the one "
        "with most power. Indicators say what is missing; imputed: missing values are "
        "drawn by why they are missing; the others are density ratios, by Gaussian "
        "kernels from ulsif to kmm, logistic regression and boosted trees.",
        "auto",
        choices=("auto", *METHODS),
    )
    compare_seconds: float = _learning(
        "Processor seconds for --method auto to compare methods; 0 for none.", 20.0
    )
    calibration_size: float = _share(
        "Share of a bounded class's rows that certify the threshold; the rest train.",
        0.5,
        panel="How to learn",
    )
    rule: str = _learning(
        "The rule that chooses and certifies the threshold.", "auto", choices=RULES
    )

    READS: ClassVar[tuple[str, ...]] = ("data", "phi_file", "queries")
    NAMES: ClassVar[dict[str, str]] = {
        "several": "--alpha LABEL=SHARE",
        "phi_file": "--missingness FILE",
    }
    _REASONS = "both say what blanks mean"
    CONFLICTS: ClassVar[Pairs] = (
        ("groups", "several",
         "the error of one class (--controlled) is bounded in each group"),
        ("several", "controlled versus", "all labels are told apart"),
        ("several", "queries",
         "in Python, fill look-ups in by revealed.fill and give inclusion= to "
         "MulticlassNeymanPearsonClassifier.fit; or take --missingness learn"),
        ("several", "on_infeasible=reject_all",
         "a row can't be given to several classes"),
        ("missingness=ignore", "queries new_rows=complete assume", _REASONS),
        ("queries", "phi_file assume", _REASONS),
        ("new_rows=blanks", "assume queries phi_file missingness=learn",
         "it needs no model of missingness, and has no use for one"),
    )  # fmt: skip
    NEEDS: ClassVar[Pairs] = (
        ("ordered", "several", "it is for bounds on several classes, one for each "
         "class but the last"),
        ("group_alpha", "groups", "say which column tells groups apart"),
    )  # fmt: skip

    @property
    def cells(self) -> dict[str, Any]:
        """What cells mean, and which column tells groups apart."""
        return {**super().cells, "groups": self.groups}

    @property
    def trial(self) -> dict[str, Any]:
        """What a trial of a certificate needs to know, as classifiers call it."""
        return {
            "alpha": next(iter(self.levels.values())),
            "delta": self.delta,
            "calibration_size": self.calibration_size,
            "random_state": self.seed,
        }

    def query_command(self, settings: Mapping[str, Any] | None, **changes: Any) -> str:
        """The command that plans look-ups for the same fit, as `command` gives it."""
        drop = [*self.drop, *filter(None, [self.groups])]
        given = {"force": False, "drop": drop, "alpha": self.trial["alpha"], **changes}
        return self.command("query", QueryOptions, settings, **given)

    @property
    def several(self) -> bool:
        """Whether the errors of several classes are bounded together."""
        return any("=" in word for word in self.alpha)

    @cached_property
    def levels(self) -> dict[str, float]:
        """α of each bounded class, by its label as it was typed."""
        if self.several:
            pairs = read_pairs(self.alpha, "--alpha", "LABEL=SHARE", "old=5%")
            return {k: read_share(v, f"--alpha {k}") for k, v in pairs.items()}
        if len(self.alpha) > 1:
            raise ValueError(
                f"--alpha was given {len(self.alpha)} times. Name a class with each, "
                f"such as --alpha LABEL={self.alpha[0]}."
            )
        if self.controlled is None:
            raise ValueError(
                "Say which error to bound: --controlled LABEL for one class, or "
                "--alpha LABEL=SHARE for each of several."
            )
        return {self.controlled: read_share(self.alpha[0], "--alpha")}

    @cached_property
    def group_levels(self) -> dict[str, float]:
        """α of groups that have one of their own, by their names as typed."""
        form = ("--group-alpha", "GROUP=SHARE", "old=5%")
        pairs = read_pairs(self.group_alpha, *form)
        return {k: read_share(v, f"--group-alpha {k}") for k, v in pairs.items()}

    @property
    def phi_file(self) -> Path | None:
        """The file that says why values are missing."""
        given = self.missingness
        return None if given in (None, LEARN, IGNORE) else Path(str(given))

    @property
    def undecided(self) -> bool:
        """Whether nothing says for which rows the promise is to be."""
        said = {self.new_rows, self.missingness, self.queries}
        return said == {None} and not self.assume

    @property
    def as_observed(self) -> bool:
        """Whether rows to be classified lose values as these did, if these do."""
        ignored = self.missingness == IGNORE
        return ignored or self.new_rows == "blanks" or self.undecided

    def check(self) -> None:
        """Refuse levels that are no shares, too, and files that aren't there."""
        super().check()
        assert self.levels
        assert self.group_levels is not None
        for name, least in (("compare_seconds", 0.0), ("odds_factor", 1.0)):
            if not least <= (value := getattr(self, name)) < math.inf:
                raise ValueError(
                    f"{self._called(name)} must be {least:g} or more, and finite: got "
                    f"{value:g}."
                )
        if self.assume:
            from missratio.learning import Assumption

            for text in self.assume:
                Assumption.read(text)
        if self.queries is not None and not self.queries.exists():
            raise FileNotFoundError(f"There is no plan {self.queries}.")
        if self.phi_file is not None and not self.phi_file.exists():
            raise FileNotFoundError(
                f"There is no file {self.phi_file}. To do without, say --new-rows "
                "blanks."
            )


@dataclass(frozen=True, kw_only=True)
class PredictOptions(Reading, Writing):
    """What is asked of predictions."""

    model_file: Path = _model()
    data: Path = _data()
    out: Path = asked("The predictions.", ..., suffixes=(".csv", ".parquet", ".xlsx"))
    drop: list[str] = _drop()
    keep: list[str] = _files(
        "Columns to copy to the output, separated by commas; may be repeated.", []
    )
    escape: bool = _files(
        "Escape text in a CSV file that a spreadsheet would run as a formula.",
        True,
        "--escape-formulas/--no-escape-formulas",
    )

    READS: ClassVar[tuple[str, ...]] = ("model_file", "data")


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Writing):
    """What is asked of a report."""

    model_file: Path = _model()
    out: Path = asked("The page.", ..., suffixes=(".html", ".md", ".json"))

    READS: ClassVar[tuple[str, ...]] = ("model_file",)


@dataclass(frozen=True, kw_only=True)
class WatchOptions(Reading):
    """What is asked of a watch."""

    model_file: Path = _model()
    labelled: Path = argument(
        "A table of rows that came since, with their labels.", "LABELLED"
    )
    skip_unlabelled: bool = _reading(
        "Leave out rows that will never get a label.", False, "--skip-unlabelled"
    )
    state: Path | None = asked(
        "The file that keeps the counts so far. Default: MODEL.watch.json.",
        metavar="FILE",
    )

    READS: ClassVar[tuple[str, ...]] = ("model_file", "labelled")
    WRITES: ClassVar[tuple[str, ...]] = ("counts",)

    @property
    def counts(self) -> Path:
        """The file that keeps the counts so far."""
        return self.state or Path(f"{self.model_file}.watch.json")


def read_settings() -> dict[str, Any]:
    """What `missratio.toml` in this folder says; nothing where there is none."""
    if not SETTINGS.is_file():
        return {}
    try:
        given = tomllib.loads(SETTINGS.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{SETTINGS} is not a TOML file: {error}.") from error
    known = {each.name for kind in WITH_SETTINGS.values() for each in fields(kind)}
    for name, value in given.items():
        words = value if isinstance(value, list) else [value]
        if name in _ADDED:
            given[name] = list(map(str, words))
        if not all(isinstance(word, str | int | float) for word in words):
            raise ValueError(
                f"{SETTINGS}: {name} must be a text, a number, true or false, or a "
                f"list of these: got {shown(value)}."
            )
        if name not in known:
            raise ValueError(
                f"{SETTINGS} says {name!r}, which is no option."
                f"{did_you_mean(name, known)} It may have {listed(sorted(known))}."
            )
    if "data" in given:
        given["data"] = Path(str(given["data"]))
    return given


def with_settings(given: dict[str, Any], remembered: set[str]) -> dict[str, Any]:
    """Options of which `missratio.toml` gives those that are `remembered`.

    Lists on the command line add to its own. A sheet, a line of names or an encoding
    says nothing of files of another kind, and what is said of one sheet nothing of
    another. Where several classes are bounded, none is the controlled one.
    """
    said, table = read_settings(), given.get("labelled", given.get("data"))
    if isinstance(levels := given.get("alpha"), list) and any("=" in x for x in levels):
        given |= dict.fromkeys(remembered & {"controlled", "versus"})
    sheet = given.get("sheet")
    if "merge" in given and str(said.get("sheet", sheet)) != str(sheet):
        given |= dict.fromkeys(remembered & {"header_row"})
        return given | {name: [] for name in remembered & _ADDED}
    for name in _ADDED & said.keys():
        # New tables have columns of their own to leave out.
        if "merge" in given and name not in remembered:
            given[name] = list(dict.fromkeys([*said[name], *given[name]]))
    if table and "data" in said and table.suffix.lower() != said["data"].suffix.lower():
        given |= dict.fromkeys(remembered & {"encoding", "sheet", "header_row"})
    return given


WITH_SETTINGS: dict[str, type[CommandOptions]] = {
    "check": CheckOptions,
    "query": QueryOptions,
    "fit": FitOptions,
}
"""The commands that `missratio.toml` is for."""


def default_options() -> dict[str, dict[str, Any]]:
    """The same as defaults of each command's options."""
    given = read_settings()
    # New tables are other files, which are read in the same way.
    kinds = {**WITH_SETTINGS, "predict": Reading, "watch": Reading}
    defaults: dict[str, dict[str, Any]] = {command: {} for command in kinds}
    for command, kind in kinds.items():
        for option in (option for option in fields(kind) if option.name in given):
            value, several = given[option.name], option.type == "list[str]"
            alone = several and not isinstance(value, list)
            defaults[command][option.name] = [value] if alone else value
    return defaults
