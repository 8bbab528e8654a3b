"""Improves a policy if the description gives a structure: rules with a proof, for any size."""

import fnmatch
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np

import surestep._arrays as arrays
import surestep.description as keys
from surestep._files import read_path
from surestep._progress import Progress, telling
from surestep._version import __version__
from surestep.algorithms.learnt_structure import drafted, learn_structure
from surestep.algorithms.node_rules import FoundRules, find_rules
from surestep.certificates.node_law import estimated_law, node_stacks, rolled_out
from surestep.certificates.node_posterior import NodePosterior
from surestep.certificates.nodes import NodeStitched
from surestep.certificates.refuting import check_node_returns
from surestep.checks import clock, declared_policy
from surestep.checks.structure import check_structure, could_miss
from surestep.checks.words import asked
from surestep.errors import CertificateRefused, InvalidLog, InvalidParameter
from surestep.io.labels.binning import Binning
from surestep.io.logs.source import LogSource
from surestep.io.logs.tables import matching
from surestep.model import Certificate, ColumnRules, FactoredLog, FactoredProblem, Structure
from surestep.model.known import Ranges, with_zero
from surestep.model.log import UNKNOWN
from surestep.model.structure import HERE, LEARN, named_values
from surestep.pipeline.current_policy import WORDS, current_policy
from surestep.pipeline.evidence import open_source
from surestep.pipeline.rules import values_in_order
from surestep.pipeline.terms import usual_train_share
from surestep.rehearsal import rehearse_nodes
from surestep.report.structured import structured_page
from surestep.results.record import InputFile
from surestep.results.structured import (
    ColumnRule,
    StructuredRecord,
    StructuredResult,
    WrittenRules,
)

USED = (  # keys that mean something beside [structure]
    *(
        "files",
        "reader",
        "query",
        "tables",
        "case",
        "ends",
        "columns",
        "bins",
        "about",
        "structure",
    ),
    *("behavior.policy", "behavior.logger", "stakes.discount", "stakes.returns", "stakes.unit"),
    *("stakes.horizon", "method.delta", "method.train_share", "method.rules", "method.worlds"),
)
DRAWN = 4_000  # rollouts behind an estimate
USUAL_WORLDS = 10  # of the stress test
MOST_DRAWN = 10_000_000  # draws of columns in all of them: about a minute of one core
USUAL_DRAWS = 200  # of a belief


def improve_structured(
    source: object,
    *,
    memory_limit: str | None = None,
    progress: Progress | bool | None = None,
) -> StructuredResult:
    """Improves the policy behind a log whose structure the description knows.

    Parameters
    ----------
    source : path or Description
        A description with tables [structure.…].
    memory_limit : str, optional
        Such as "2GB"; the rest spills to disk.
    progress : bool or callable, optional
        True shows a bar. A function is called with what is being done, how much of it is done, and
        of how much.

    Returns
    -------
    StructuredResult
        The rules, the claim about them, and the test of the structure.

    Raises
    ------
    InvalidParameter
        The structure names something that does not exist, or a key means nothing beside it.
    InvalidLog
        A row contradicts the structure.

    Examples
    --------
    See docs/structure.md.
    """
    description, frame = keys.given_as(source)
    check_keys(description)
    named = description.behavior.policy
    if named not in WORDS:
        matching(read_path(named))  # is it there?
    said = description.given()["structure"]
    with telling(progress) as tell:
        tell("reading the log", 0, 1)
        log_source = open_source(description, frame, memory_limit)
        if not isinstance(log_source, LogSource):
            raise InvalidParameter("[structure] is given beside counts; expected rows of episodes")
        log_source.check_one_decision(description.stakes.discount)
        log, binnings = factored(log_source)
        if question := asked(clock.check([log_source.why_stopped])):
            raise InvalidLog(f"{log_source.table.name}: {question}")
        stakes = description.stakes
        problem = FactoredProblem(
            log=log,
            behavior=None,  # still to come
            discount=stakes.discount or 0.0,
            # None: those of the rewards
            rest_bounds=stakes.returns and with_zero(stakes.returns),  # type: ignore[arg-type]
            return_bounds=stakes.returns,  # type: ignore[arg-type]
            horizon=stakes.horizon,
        )
        if stakes.returns is not None:
            check_node_returns(problem)
        certifier = certifier_for(description, log.num_episodes)
        choosing = certifier.parts(problem)[0].log
        tables = learn_structure(choosing, said)
        columns = dict(zip(log.structure.columns, map(list, log.structure.values), strict=False))
        structure = Structure.read(columns, log.structure.actions, tables)
        log = replace(log, structure=structure)
        choosing = replace(choosing, structure=structure)
        tell("looking for rules, and certifying", 0, 1)
        current = current_policy(named, log, choosing, log_source.columns, binnings)
        seen = Ranges(structure.reward_range, structure.reward_range).statement(declared=False)
        problem = replace(
            problem,
            log=log,
            behavior=current.rules,
            about_behavior=current.about,
            premises=(seen,) if stakes.returns is None and structure.open_columns else (),
        )
        way = partial(improved, description, templates_of(tables))
        found, claim, belief = way(problem)
        tell("testing the structure", 0, 1)
        test = check_structure(
            log, found.policy, problem.discount, behavior=problem.rolled_behavior
        )
        if structure.learnt:
            missed = could_miss(problem, found.policy)
            claim, belief = less(claim, missed), belief and less(belief, missed)
        worlds, why_none = worlds_of(problem, description.method.worlds)
        rehearsal = None
        if worlds:
            rehearsal = rehearse_nodes(
                problem,
                way,
                delta=claim.delta,
                worlds=worlds,
                progress=partial(tell, "stress test"),
            )
    first, second = certifier.parts(problem)
    record = StructuredRecord(
        surestep=__version__,
        description=keys.without_folders(description).given(),
        inputs=inputs_of(description, log_source),
        columns=columns,
        actions=[*structure.actions],
        data={"rows": log.num_steps, "episodes": log.num_episodes},
        current=current.record(structure),
        estimates=estimates(second, found.policy),
        test=msgspec.to_builtins(test),
        checks=()
        if current.rules is None or named == "estimate"
        else declared_policy.check(declared_policy.of_rules(log, current.rules, current.source)),
        learnt={
            name: {key: tables[name][key] for key, word in table.items() if word == LEARN}
            for name, table in said.items()
            if LEARN in table.values()
        },
        no_rehearsal=why_none,
    )
    result = StructuredResult(written(found), claim, record, structure, test, "", belief, rehearsal)
    visits = [np.diff(node_stacks(part.log).offsets).tolist() for part in (first, second)]
    return arrays.altered(result, report=structured_page(result, visits))


def improved(
    description: keys.Description, templates: dict[str, list[str]], problem: FactoredProblem
) -> tuple[FoundRules, Certificate, Certificate | None]:
    """Finds rules on the first part of the log; returns them, a claim, and a belief if it fits."""
    certifier = certifier_for(description, problem.log.num_episodes)
    first, _ = certifier.parts(problem)
    most = 12 if description.method.rules is None else description.method.rules
    found = find_rules(first, certifier, templates, most=max(most, 1))
    believer = NodePosterior(
        delta=certifier.delta,
        draws=max(USUAL_DRAWS, math.ceil(2 / certifier.delta)),
        train_share=certifier.train_share,
        logger=certifier.logger,
    )
    belief = None
    with suppress(CertificateRefused):  # it takes too much memory
        belief = believer.certify(problem, found.policy)
    return found, certifier.certify(problem, found.policy), belief


def less(claim: Certificate, missed: float) -> Certificate:
    """Returns a claim less what a parent that was not learnt could cost."""
    lower = max((claim.lower or 0.0) - missed, -(claim.span or math.inf))
    return replace(claim, lower=lower, figures={**claim.figures, "could_miss": missed})


def worlds_of(problem: FactoredProblem, asked: int | None) -> tuple[int, str | None]:
    """Returns the number of worlds of the stress test, or why there is none."""
    if problem.rolled_behavior is None:
        why = "in the worlds the current policy acts, and nobody knows all of it"
        if asked:
            raise InvalidParameter(f"method.worlds is {asked}, but {why}; see behavior.policy")
        return 0, why
    draws = problem.log.num_steps * problem.structure.target.size
    worlds = min(USUAL_WORLDS, MOST_DRAWN // draws) if asked is None else asked
    why = "the log is too large for one by default" if asked is None else "none was asked for"
    return worlds, None if worlds else why


def check_keys(description: keys.Description) -> None:
    """Refuses keys that mean nothing beside a structure, and a discount that is missing."""
    if not description.structure:
        raise InvalidParameter("there is no [structure] in the description; expected `improve`")
    for path, _ in keys.leaves(description.given()):
        if path not in USED and path.partition(".")[0] not in USED:
            raise InvalidParameter(
                f"{path} means nothing beside [structure]; expected only {', '.join(USED)}"
            )
    if description.stakes.discount is None:
        raise InvalidParameter("stakes.discount is missing: how much does the next step count?")


def factored(source: LogSource) -> tuple[FactoredLog, Mapping[str, Binning]]:
    """Reads a log column by column; its structure is that of its description, as yet unlearnt."""
    steps, texts, binnings = source.by_column()
    if steps.order is not None and source.description.behavior.logger != "fixed":
        raise InvalidLog(
            f"{source.table.name}: episodes overlap in time; beside [structure] that is only "
            'possible if whoever decided never learnt (behavior.logger = "fixed")'
        )
    columns = dict[str, list[str]]()
    tables = source.description.structure
    named = named_values(source.columns.state, tables)
    both = []
    for name, (now, after) in zip(source.columns.state, texts, strict=True):
        seen = {text for text in (*now, *after) if text is not None}
        listed = [one.labels for key, one in tables.items() if fnmatch.fnmatchcase(name, key)]
        usual, _ = values_in_order(seen | named[name], name, binnings)
        columns[name] = next(map(list, filter(None, listed)), usual)
        for stray in sorted(seen - {*columns[name]})[:1]:
            raise InvalidLog(
                f"{source.table.name}: column {name!r} has the value {stray!r}, which its `values` "
                f"in [structure] do not list; they list {', '.join(columns[name])}"
            )
        place = {None: UNKNOWN} | {value: i for i, value in enumerate(columns[name])}
        both.append([[place[text] for text in one] for one in (now, after)])
    state, next_state = np.array(both).transpose(1, 2, 0)
    missing = np.argwhere(state < 0)
    for row, column in missing[:1]:
        name = source.columns.state[column]
        raise InvalidLog(
            f"{source.table.name}: column {name!r} has no value in step {row + 1} of the log, "
            f"expected one in each row; {len(missing) - 1:,} others are missing"
        )
    log = FactoredLog(
        structure=Structure.read(
            columns,
            steps.pairs.action_labels or (),
            drafted(source.description.given()["structure"]),
        ),
        state=state,
        action=steps.action,
        next_state=next_state,
        ended=steps.terminated,
        offsets=steps.episode_offsets,
        reward=steps.reward,
        propensity=steps.propensity,
    )
    return log, binnings


def certifier_for(description: keys.Description, episodes: int) -> NodeStitched:
    """Returns the certificate with the settings that were given."""
    method = description.method
    return NodeStitched(
        delta=method.delta or keys.DEFAULTS["delta"],
        train_share=method.train_share or usual_train_share(episodes),
        logger=description.behavior.logger or "adaptive",
    )


def templates_of(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Returns the actions of the members of each group, such as reboot_@."""
    parts = {name: table.get("action") for name, table in tables.items() if "*" in name}
    templates = {
        name: [one for some in action.values() for one in keys.several(some) if HERE in one]
        for name, action in parts.items()
        if isinstance(action, Mapping)
    }
    return {name: actions for name, actions in templates.items() if actions}


def written(found: FoundRules) -> WrittenRules:
    """Converts rules to the form in which they are saved."""
    rules = [
        ColumnRule(
            {name: value if isinstance(value, tuple) else (str(value), str(value))
             for name, value in when.items()},
            action,
        )
        for when, action in found.rules
    ]  # fmt: skip
    return WrittenRules(group=found.group, rules=tuple(rules), default=found.default)


def estimates(judging: FactoredProblem, policy: ColumnRules) -> dict[str, float]:
    """Estimates both returns by the part of the log that did not choose the policy.

    The return of a policy in words is the mean of rollouts in the estimated model of nodes. A
    current policy of which anything is unknown is estimated by the returns of whole episodes.
    """
    law = estimated_law(judging.log)
    begin = np.resize(judging.starts, (DRAWN, judging.starts.shape[1]))

    def returns_of(followed: ColumnRules) -> arrays.FloatArray:
        return rolled_out(judging, law[np.newaxis], followed, begin, seed=0, rest=0.0)[0]

    new, current = returns_of(policy), judging.rolled_behavior
    logged = judging.log.returns(judging.discount, judging.horizon)
    old = np.array([logged.mean()]) if current is None else returns_of(current)
    return {
        "policy": float(new.mean()),
        "behavior": float(old.mean()),
        "error": float((new - old).std() / math.sqrt(DRAWN)),
    }


def inputs_of(description: keys.Description, source: LogSource) -> list[InputFile]:
    """Returns the fingerprints of the files that went into a result."""
    files = [InputFile.of(f"log {place}", path) for place, path in enumerate(source.files, start=1)]
    policy = description.behavior.policy
    if policy not in WORDS:
        files.append(InputFile.of("behavior", read_path(policy)))
    return files
