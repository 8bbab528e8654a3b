"""Holds an improved policy with its certificates, report and record; saves and loads it.

A saved result is a folder: policy.csv and policy.parquet; certificate.json, the first certificate,
which alone can prove a gain, and certificates.json, a list of all; report.html; rehearsal.json
after a stress test; rules.json and card.html, for staff, if the policy follows rules; and run.json,
which holds the digests of the others. Until a stress test is finished, there is also a folder with
its finished parts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._files import read_path
from surestep._json import converted, typed
from surestep._reprs import frame_of, short_repr
from surestep._version import __version__
from surestep._words import floored, number, percent, signed
from surestep.checks.hidden_causes import odds_to_undo
from surestep.description import described
from surestep.errors import InvalidParameter, InvalidResult, SurestepError
from surestep.io.labels.binning import Binning
from surestep.io.labels.learnt_states import LearntStates
from surestep.io.labels.vocabulary import Label, read_columns, with_names
from surestep.io.logs.columns import closest
from surestep.io.logs.frames import column_names, is_frame, plain_values
from surestep.io.logs.query import Keys, Query, prepared_case
from surestep.io.logs.source import load_further
from surestep.model import Certificate, Policy
from surestep.model.certificate import VERDICT, read_unique_json
from surestep.rehearsal import Rehearsal, rehearsal_from_json
from surestep.results.findings import Conclusion, PolicyTable
from surestep.results.groups import GroupGain
from surestep.results.plots import changes_figure
from surestep.results.policy_files import columns_of, policy_csv, policy_parquet, read_policy_csv
from surestep.results.record import Record, Total, digests_of
from surestep.results.rules import Rules, read_as
from surestep.results.structured import (
    BELIEF,
    FILES_OF_RULES,
    STRUCTURED,
    StructuredRecord,
    StructuredResult,
    structured_result,
)
from surestep.results.unfinished import CERTIFICATE, REHEARSAL, REPORT, RULES, RUN, Saved, read_file

POLICY, PARQUET, CERTIFICATES = ("policy.csv", "policy.parquet", "certificates.json")
FILES = (POLICY, PARQUET, CERTIFICATE, CERTIFICATES, REPORT)
CARD = "card.html"
FOR_STAFF = (RULES, CARD)


Action = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Default:
    """A fallback: one action, whatever the state is.

    Parameters
    ----------
    action : str, sequence or mapping
        An action that the policy knows: a text, one text a column, or a row.

    Examples
    --------
    >>> from surestep.results import Default
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), worlds=0)
    >>> result.act("unheard-of", 0, Default("wait"))
    Decision(action='wait', fallback='default', followed=None)
    """

    action: object


class Decision(NamedTuple):
    """An action, and whether the policy or a fallback chose it.

    Parameters
    ----------
    action : str or tuple of str
        The action: a text, or one text a column.
    fallback : "default" or None
        The fallback that chose it; None: it is an action of π_I.
    followed : tuple of str or None
        The state whose row of the policy was followed; None where no row was.

    Examples
    --------
    >>> from surestep.results import Decision
    >>> Decision("wait", None, ("mild",)).action
    'wait'
    """

    action: Action
    fallback: Literal["default"] | None
    followed: Label | None


@dataclass(frozen=True, slots=True)
class Result(Conclusion, Saved):
    """The answer of `improve`, which `load` reads again.

    Parameters
    ----------
    table : PolicyTable
        The policy pair by pair, with all that explains it.
    certificates : tuple of Certificate
        The claims; the result stands by the first.
    record : Record
        With what it was made.
    report : str
        The page that explains it, as HTML.
    rehearsal : Rehearsal, optional
        The stress test.
    runs_query : bool, default True
        `act` may run the query that prepared the log.
    rules : Rules, optional
        The rules that the policy follows, if it follows some.
    card : str
        The rules on one page for staff, as HTML; empty without rules.

    Examples
    --------
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), worlds=0)
    >>> result.verdict, result.estimated_gain
    ('proved better', 0.5)
    >>> result.act("mild", rng=0)
    'wait'
    """

    report: str = field(repr=False)
    rehearsal: Rehearsal | None = field(default=None, repr=False, compare=False)
    runs_query: bool = field(default=True, repr=False, compare=False)
    rules: Rules | None = field(default=None, repr=False)
    card: str = field(default="", repr=False)

    __repr__ = short_repr(
        "table.pairs.num_states",
        "table.pairs.num_pairs",
        "certificate.kind",
        "certificate.standing",
        "certificate.lower",
        "certificate.delta",
    )

    def __str__(self) -> str:
        """Returns the verdict, the claim that the result stands by, and the estimated gain."""
        claim = self.certificate
        unit = self.record.unit
        estimate = f"estimated gain {signed(self.estimated_gain)} {unit}"
        if claim.lower is None or claim.says_nothing:
            return f"{self.verdict}; no useful guarantee ({claim.kind}); {estimate}"
        lower = floored(claim.lower)
        least = (
            f"gain of at least {number(lower)}"
            if lower > 0
            else f"loss of at most {number(-lower)}"
        )
        confidence = f"{percent(1 - claim.delta)} confidence ({claim.kind})"
        most = self.record.description.get("groups", {}).get("not_worse_by")
        known = any(group.spared for group in self.groups) and self.verdict.startswith("proved")
        spared = f", and in no group worse by more than {number(most)}" if known else ""
        return f"{self.verdict}{spared}: a {least} {unit} with {confidence}; {estimate}"

    @property
    def totals(self) -> tuple[Total, ...]:
        """Returns undiscounted totals and shares before and after, estimated by a model.

        There are none where episodes do not end in the model, unless `horizon` was given.
        """
        return self.record.totals

    @property
    def groups(self) -> tuple[GroupGain, ...]:
        """Returns the gain of each group of episodes, with its interval."""
        return self.record.groups

    @property
    def hidden_odds(self) -> float | None:
        """Returns the odds by which a hidden cause must tilt decisions to undo the gain (Γ).

        None if no gain is claimed, or if the current policy is known, so that no cause is hidden.
        """
        return odds_to_undo(self.record.checks)

    def plot(self) -> Any:
        """Draws the changes that matter most, with Matplotlib.

        Returns
        -------
        matplotlib.figure.Figure
            How often an action is taken today, and then; notebooks show it.
        """
        return changes_figure(self.table)

    def to_frame(self) -> Any:
        """Returns the rows of policy.csv as a data frame.

        Returns
        -------
        DataFrame
            That of the first of pandas, polars and Arrow that is installed.
        """
        return frame_of(columns_of(self.table))

    @property
    def certificate(self) -> Certificate:
        """The first certificate, of the kind chosen before the data; only it can prove a gain."""
        return self.certificates[0]

    @property
    def policy(self) -> Policy:
        """The new policy (π_I) over numbered states and actions; `table.vocabulary` names these."""
        return self.table.policy

    @property
    def memory_steps(self) -> int:
        """Returns the number of past steps in a state; an `Episode` remembers these."""
        return int(self.record.description.get("memory", {}).get("steps", 0))

    def act(
        self,
        state: object,
        rng: np.random.Generator | int,
        fallback: Default | None = None,
        *,
        tables: Mapping[str, str] | None = None,
    ) -> Any:
        """Draws an action from π_I(·|state).

        Parameters
        ----------
        state : str, sequence, mapping or table
            A label, one text a column, or a row: a mapping from the columns of the state to values,
            raw ones where a column is binned, or a row of pandas. A table (pandas, polars, Arrow)
            has a state a row. Where a query prepared the log, a table or a list of mappings has the
            rows of a case so far, as the log has them: the action is for the last.
        rng : Generator or int
            The source of random numbers, or its seed.
        fallback : Default, optional
            It acts in a state that is not known, or that the log never decides in.
        tables : mapping, optional
            The files of the further tables of the query, by their names.

        Returns
        -------
        str, tuple of str, Decision or list
            The action: a text, or one text a column. With a fallback, a `Decision` that says whose
            it is. For a table, a list with one answer a row.

        Raises
        ------
        InvalidParameter
            The state is not known, and there is no fallback.
        """
        rng = arrays.generator(rng)
        if fallback is not None:
            arrays.expect("fallback", fallback, Default)
        several = isinstance(state, list) and all(isinstance(row, Mapping) for row in state)
        if self.record.query is not None and (several or is_frame(state)):
            return self._answer(self._prepared(state, tables or {}), rng, fallback)
        if not is_frame(state):
            return self._answer(state, rng, fallback)
        answers = list[Any]()
        for place, row in enumerate(self._rows_of(state), start=1):
            try:
                answers.append(self._answer(row, rng, fallback))
            except InvalidParameter as problem:
                raise InvalidParameter(f"row {place:,}: {problem}") from None
        return answers

    def _answer(
        self, state: object, rng: np.random.Generator, fallback: Default | None
    ) -> Action | Decision:
        """Draws an action in one state; the fallback acts if the policy does not know the state.

        It also acts in a state in which the log never decides, unless π_b was given.
        """
        table = self.table
        words = table.vocabulary
        if fallback is None:
            s = words.index("state", state)
            if table.quiet[s]:
                raise InvalidParameter(
                    f"nothing is ever decided in state {state!r}: episodes end there, or the log "
                    "goes no further"
                )
            return self._drawn(s, rng)
        _, _, label = words.read("state", state)
        place = words.state_places.get(label, -1)
        behavior_known = self.record.parameters.behavior in ("table", "uniform")
        decides = place >= 0 and not table.quiet[place]
        if decides and (behavior_known or table.all_decisions[place] > 0):
            return Decision(self._drawn(place, rng), None, label)
        default = words.actions[words.index("action", fallback.action)]
        return Decision(as_action(default), "default", None)

    def _drawn(self, state: int, rng: np.random.Generator) -> Action:
        """Draws an action from π_I(·|state) for a numbered state."""
        pairs = self.table.pairs
        run = slice(pairs.offsets[state], pairs.offsets[state + 1])
        chosen = rng.choice(pairs.action[run], p=self.table.probability[run])
        return as_action(self.table.vocabulary.actions[int(chosen)])

    def _prepared(self, case: Any, tables: Mapping[str, str]) -> dict[str, object]:
        """Runs the query on the rows of a case so far; returns its row for the last of them."""
        query = self.record.description["query"]
        said = self.record.query or {}
        if not self.runs_query:
            raise InvalidParameter(
                f"the result was made by a query that may not be yours: {query!r}; read it, then "
                "allow it with load(folder, allow_query=True)"
            )
        lacking = set(self.record.description.get("tables", ())) - set(tables)
        if lacking:
            raise InvalidParameter(
                f"the query takes the table {min(lacking)!r}; expected its file among `tables`"
            )
        if is_frame(case):
            case = rows_in(case, [str(name) for name in column_names(case)])
        load_tables = partial(
            load_further,
            description=described(
                {"tables": tables, "reader": self.record.description.get("reader", {})}
            ),
        )
        return prepared_case(
            Query(query),
            Keys(said["keys"][0], said["keys"][1], ()),
            said["types"],
            case,
            load_tables,
        )

    def _rows_of(self, frame: object) -> list[dict[str, object]]:
        """Returns the rows of a table, with the columns that determine states."""
        words = self.table.vocabulary
        plain = [name for name in words.state_columns if name not in words.learnt]
        columns = dict.fromkeys(
            [*plain, *chain(*(learnt.columns for learnt in words.learnt.values()))]
        )
        there = [str(name) for name in column_names(frame)]
        for name in columns:
            if name not in there:
                raise InvalidParameter(f"there is no column {name!r}; {closest(name, there)}")
        return rows_in(frame, [*columns])

    def contents(self) -> dict[str, bytes]:
        """Returns all files but the record.

        Returns
        -------
        dict of str to bytes
            The content of each file by its name.
        """
        tested, ruled = self.rehearsal, self.rules
        return {
            POLICY: policy_csv(self.table),
            PARQUET: policy_parquet(self.table),
            CERTIFICATE: f"{self.certificate.to_json(self.verdict)}\n".encode(),
            CERTIFICATES: f"{certificates_to_json(self.certificates)}\n".encode(),
            REPORT: self.report.encode(),
            **({} if tested is None else {REHEARSAL: f"{tested.to_json()}\n".encode()}),
            **({} if ruled is None else {RULES: f"{ruled.to_json()}\n".encode()}),
            **({} if ruled is None else {CARD: self.card.encode()}),
        }


def as_action(label: Label) -> Action:
    """Returns an action as a text if it has one column, else as a tuple of texts."""
    return label[0] if len(label) == 1 else label


def rows_in(frame: object, columns: Sequence[str]) -> list[dict[str, object]]:
    """Returns the rows of a table as dictionaries of these columns."""
    rows = zip(*(plain_values(frame, name) for name in columns), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def load(directory: str | Path, *, allow_query: bool = False) -> Any:
    """Loads a result that `save` wrote.

    Parameters
    ----------
    directory : str or path
        The folder.
    allow_query : bool, default False
        Let `act` run the query that prepared the log, which may be somebody else's.

    Returns
    -------
    Result or StructuredResult
        The result; one for a log with a structure is a `StructuredResult`.

    Raises
    ------
    InvalidResult
        The folder holds no result, or one whose files were changed.

    Examples
    --------
    >>> import tempfile
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     surestep.improve(table, discount=0, worlds=0).save(f"{folder}/result")
    ...     surestep.load(f"{folder}/result").act("mild", rng=0)
    'wait'
    """
    folder = read_path(directory)
    if not (folder / RUN).is_file():
        raise InvalidResult(f"{folder} holds no result: there is no {RUN} in it")
    try:
        text = text_of(folder, RUN)
        if STRUCTURED in text:
            structured = read_as(StructuredRecord, RUN, text)
            check_files(folder, structured.outputs, FILES_OF_RULES, (BELIEF, REHEARSAL))
            return structured_result(structured, partial(text_of, folder))
        record, digests = Record.from_json(text)
        with_rules = RULES in digests
        check_files(folder, digests, (*FILES, *(FOR_STAFF if with_rules else ())), (REHEARSAL,))
        result = Result(
            read_table(folder, record),
            certificates_from_json(text_of(folder, CERTIFICATES)),
            record,
            text_of(folder, REPORT),
            rehearsal_from_json(text_of(folder, REHEARSAL)) if REHEARSAL in digests else None,
            runs_query=allow_query,
            rules=Rules.from_json(text_of(folder, RULES)) if with_rules else None,
            card=text_of(folder, CARD) if with_rules else "",
        )
        stood_by = read_unique_json(text_of(folder, CERTIFICATE))
        same = Certificate.from_content(stood_by) == result.certificate
        if record.versions.get("surestep") == __version__:  # or its rules may differ
            same = same and stood_by.get(VERDICT) == result.verdict
        if not same:
            raise InvalidResult(
                f"{CERTIFICATE} is not the first of {CERTIFICATES} with the verdict "
                f"{result.verdict!r}"
            )
        return result
    except SurestepError as problem:
        raise type(problem)(f"{folder}: {problem}") from None


def check_files(
    folder: Path, digests: Mapping[str, str], needed: Sequence[str], known: Sequence[str]
) -> None:
    """Refuses a record that lists other files, and files that were changed."""
    if {*digests} - {*known} != {*needed}:
        raise InvalidResult(
            f"{RUN} lists the files {', '.join(digests)}, expected {', '.join(needed)}"
        )
    for name, digest in digests_of({name: read_file(folder, name) for name in digests}).items():
        if digest != digests[name]:
            raise InvalidResult(
                f"{name} was changed after it was written: its digest is not that of {RUN}; "
                "expected the files as `surestep improve` wrote them"
            )


def with_table(result: object) -> Result:
    """Returns a result, loaded if a folder is given; refuses one without a table of situations."""
    given = result if isinstance(result, Result | StructuredResult) else load(read_path(result))
    if not isinstance(given, Result):
        raise InvalidResult(
            "the result rests on a [structure]: it has rules over columns, and no table of "
            "situations, which this needs; load, verify and act take it"
        )
    return given


def certificates_to_json(certificates: Sequence[Certificate]) -> str:
    """Returns certificates as a list in JSON."""
    return json.dumps(
        [certificate.content() for certificate in certificates],
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )


def certificates_from_json(text: str) -> tuple[Certificate, ...]:
    """Reads certificates from JSON: a single one, or a list."""
    content = read_unique_json(text)
    listed = content if isinstance(content, list) else [content]
    if not listed:
        raise InvalidResult("the list of certificates is empty, expected at least one")
    return tuple(map(Certificate.from_content, listed))


def read_table(folder: Path, record: Record) -> PolicyTable:
    """Reads policy.csv, with the labels, bins and display names in the record."""
    words = record.vocabulary
    try:
        states = read_columns("state", words["state_columns"])
        actions = read_columns("action", words["action_columns"])
        binnings = typed(words["binnings"], dict[str, Binning], "binnings")
        ends = [tuple(label) for label in words["states_without_decision"]]
        learnt = converted(words["learnt"], dict[str, LearntStates], "learnt states", InvalidResult)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise InvalidResult(f"{RUN}: the vocabulary is damaged ({problem!r})") from None
    table = read_policy_csv(text_of(folder, POLICY), states, actions, binnings, ends)
    vocabulary = replace(table.vocabulary, learnt=learnt)
    return replace(table, vocabulary=with_names(vocabulary, record.description.get("names", {})))


def text_of(folder: Path, name: str) -> str:
    """Reads a file of text."""
    try:
        return read_file(folder, name).decode()
    except UnicodeDecodeError:
        raise InvalidResult(f"{name} is not UTF-8") from None
