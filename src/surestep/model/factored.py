"""Defines logs and policies by columns, for worlds whose states nobody can enumerate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

import surestep._arrays as arrays
from surestep._names import refuse_unknown
from surestep._settings import Each, read_arrays
from surestep.errors import InvalidLog, InvalidParameter, InvalidPolicy
from surestep.model.noun import noun
from surestep.model.policy import Policy
from surestep.model.statements import Statement
from surestep.model.structure import HERE, LEFT, RIGHT, SAME_REWARD, Structure, star_of

MISSING = -1  # a value that nobody knows
MOST_COMBINATIONS = 2**20  # of values that rules look at: for each the first rule is kept
Rule = tuple[Mapping[str, object], str]  # conditions, and the action to take where they hold


@noun("num_steps", "num_episodes")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactoredLog(arrays.ByValue, arrays.Frozen, arrays.Remembering):
    """The steps of episodes, with a number for the value of every column; −1 for a missing one.

    A step whose outcome nobody knows is in the log, with −1 for its next columns, unless a clock
    had stopped the recording before the outcome: then it is left out.

    Parameters
    ----------
    structure : Structure
        The columns and actions; what a row contradicts is refused.
    state : array of int [N, C]
        The columns before each step.
    action : array of int [N]
        The actions.
    next_state : array of int [N, C]
        The columns after each step; −1 where it ended and nobody saw them.
    ended : array of bool [N]
        Whether the process was over after the step.
    offsets : array of int [E+1]
        Where episodes begin.
    reward : array of float [N], optional
        The rewards. A structure that knows the rewards as a function does not need them.
    propensity : array of float [N], optional
        The probability that each action had.

    Raises
    ------
    InvalidLog
        A row has a value that its column does not have, or contradicts what is known.

    Examples
    --------
    >>> from surestep.model import FactoredLog, Structure
    >>> structure = Structure.read(
    ...     {"lamp": ["off", "on"]}, ["wait", "switch"], {"lamp": {"parents": ["lamp"]}})
    >>> FactoredLog(structure=structure, state=[[0], [1]], action=[1, 0], next_state=[[1], [1]],
    ...     ended=[False, False], offsets=[0, 2])
    FactoredLog(num_steps=2, num_episodes=1)
    """

    structure: Structure
    state: arrays.IntArray
    action: Annotated[arrays.IntArray, Each("N", below="A")]
    next_state: arrays.IntArray
    ended: Annotated[arrays.BoolArray, Each("N")]
    offsets: arrays.IntArray
    reward: Annotated[arrays.FloatArray | None, Each("N")] = None
    propensity: Annotated[arrays.FloatArray | None, Each("N")] = None

    def __post_init__(self) -> None:
        structure, sizes = self.structure, self.structure.sizes
        steps = len(self.action)
        for name in ("state", "next_state"):
            given = getattr(self, name)
            table = arrays.whole_numbers(name, given, (steps, sizes.size), InvalidLog)
            for row, column in np.argwhere((table < MISSING) | (table >= sizes))[:1]:
                raise InvalidLog(
                    f"row {row + 1}: column {structure.columns[column]!r} of {name} has the number "
                    f"{table[row, column]}, expected 0 to {sizes[column] - 1}, or -1 if missing"
                )
            arrays.keep(self, **{name: table.astype(np.int16)})
        read_arrays(self, InvalidLog, {"N": steps, "A": structure.num_actions}, {})
        arrays.keep(
            self,
            offsets=arrays.read_full_offsets(
                "offsets",
                self.offsets,
                steps,
                InvalidLog,
                (lambda episode: f"episode {episode + 1}", "step"),
            ),
        )
        if self.ended.any() and not structure.has_end:
            raise InvalidLog(
                f"row {self.ended.argmax() + 1} ends its episode, and the structure has no table "
                "for ends; expected [structure.end] with its parents"
            )
        self.check_known()
        self.check_rewards()

    def check_known(self) -> None:
        """Refuses the first row that contradicts what is known of a node."""
        structure = self.structure
        node, drawn = self.draws()
        known = np.where(node >= 0, structure.known[node], MISSING)
        for d, row in np.argwhere(((known >= 0) & (drawn >= 0) & (known != drawn)).T)[:1]:
            labels = structure.values[structure.target[d]]
            raise InvalidLog(
                f"row {row + 1} contradicts the structure: "
                f"{structure.node_names[node[row, d]]} is known to lead to "
                f"{labels[known[row, d]]!r}, and it led to {labels[drawn[row, d]]!r}"
            )

    def check_rewards(self) -> None:
        """Refuses the first reward that the known function does not give."""
        structure = self.structure
        if self.reward is None:
            if structure.draws_reward:
                raise InvalidLog("the structure has a node for the reward, and the log no rewards")
            return
        values = self.values()
        unlisted = (values[:, -1] < 0) & structure.draws_reward
        for row in np.flatnonzero(unlisted)[:1]:
            raise InvalidLog(
                f"row {row + 1} has the reward {self.reward[row]:g}, which structure.reward does "
                f"not list; it lists {', '.join(structure.values[-1])}"
            )
        rows = np.flatnonzero((values[:, structure.rewards.place] >= 0).all(axis=1))
        known = structure.reward_of(values[rows], self.action[rows])
        slack = SAME_REWARD * max(1.0, *map(abs, structure.reward_range))
        for place in np.flatnonzero(np.abs(known - self.reward[rows]) > slack)[:1]:
            raise InvalidLog(
                f"row {rows[place] + 1} contradicts the structure: its reward is "
                f"{self.reward[rows[place]]:g}, and structure.reward gives {known[place]:g}"
            )

    @property
    def num_steps(self) -> int:
        """Returns the number of steps."""
        return int(self.action.size)

    @property
    def num_episodes(self) -> int:
        """Returns the number of episodes."""
        return int(self.offsets.size - 1)

    @property
    def starts(self) -> arrays.IntArray:
        """Returns the columns at the starts of episodes [E, C]."""
        return self.state[self.offsets[:-1]]

    @property
    def earned(self) -> arrays.FloatArray:
        """Returns the rewards [N], of the log or by the known function.

        A reward that depends on what nobody saw counts as the greatest of all: then returns of
        practice are not too low to compare with.
        """
        if self.reward is not None:
            return self.reward
        structure, values = self.structure, self.values()
        seen = (values[:, structure.rewards.place] >= 0).all(axis=1)
        known = structure.reward_of(np.maximum(values, 0), self.action)
        return np.where(seen, known, structure.reward_range[1])

    def values(self) -> arrays.IntArray:
        """Returns all values of each step.

        Returns
        -------
        array of int [N, 2C + 2]
            The columns now, those of the next state, the end and the reward; −1 where unknown.
        """
        labels = np.array(self.structure.values[-1], np.float64)
        number = np.full(self.num_steps, MISSING, np.int16)
        if self.reward is not None:
            off = np.abs(self.reward[:, np.newaxis] - labels)
            number = np.where(
                off.min(axis=1) <= SAME_REWARD * (1 + abs(labels).max()),
                off.argmin(axis=1),
                MISSING,
            )
        # Nobody saw whether a step ended of which nobody knows where it led.
        unseen = ~self.ended & (self.next_state < 0).all(axis=1)
        over = np.where(unseen, MISSING, self.ended)
        both = np.column_stack([self.state, self.next_state, over, number])
        return np.asfortranarray(both, np.int16)

    def draws(self) -> tuple[arrays.IntArray, arrays.IntArray]:
        """Returns the node and the value of each draw, in the order of decisions.

        Returns
        -------
        tuple of arrays of int [N, D]
            The nodes, −1 where a parent is missing; and the values, −1 where nobody knows it, −2
            where nothing was drawn, as the step had ended.
        """
        values, target = self.values(), self.structure.target
        columns, nodes = len(self.structure.columns), self.structure.nodes
        node = np.empty((self.num_steps, target.size), np.int32)
        drawn = values[:, columns + target].astype(np.int32)
        for d in range(target.size):
            whole = (values[:, nodes.looked_at(d)] >= 0).all(axis=1)
            node[:, d] = np.where(whole, nodes.at(d, values, self.action), MISSING)
            if columns in target[:d]:
                drawn[self.ended, d] = MISSING - 1
        return node, drawn

    def returns(self, discount: float, within: int | None = None) -> arrays.FloatArray:
        """Returns the discounted return of every episode.

        Parameters
        ----------
        discount : float
            The discount γ.
        within : int, optional
            Count only the first so many steps; by default all.

        Returns
        -------
        array of float [E]
            The returns; see `earned`.
        """
        step = arrays.ranges(0, arrays.run_lengths(self.offsets))
        weight = np.where(step < (within or np.inf), float(discount) ** step, 0.0)
        return arrays.run_sums(weight * self.earned, self.offsets)

    def episodes(self, chosen: arrays.IntArray) -> FactoredLog:
        """Returns a log of some of the episodes, in the order given.

        Parameters
        ----------
        chosen : array of int
            Their numbers.

        Returns
        -------
        FactoredLog
            The log.
        """
        lengths = arrays.run_lengths(self.offsets)[chosen]
        rows = arrays.ranges(self.offsets[:-1][chosen], lengths)
        return arrays.altered(
            self,
            state=self.state[rows],
            action=self.action[rows],
            next_state=self.next_state[rows],
            ended=self.ended[rows],
            offsets=arrays.offsets_of(lengths),
            reward=None if self.reward is None else self.reward[rows],
            propensity=None if self.propensity is None else self.propensity[rows],
        )


@noun("num_rules", "default")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnRules(arrays.ByValue, arrays.Frozen, arrays.Remembering):
    """A policy as an ordered list of rules over columns.

    The first rule that holds for any member decides, for the first member for which it holds. A
    global rule has one member, which looks at all columns; a local one has the members of a group,
    and looks at a member and its neighbours.

    Parameters
    ----------
    actions : tuple of str
        The names of the actions.
    slots : array of int [M, W]
        The columns that each member looks at; −1 beyond the ends of a row.
    sizes : array of int [W]
        Their numbers of values.
    edge : int
        The value that counts beyond the ends of a row.
    member_actions : array of int [M, Q]
        The actions that rules can take for each member.
    low, high : array of int [R, W]
        The least and the greatest value with which each rule holds.
    choice : array of int [R + 1]
        What each rule takes of the actions of its member; last, the action if no rule holds.
    chance : array of float [R + 1]
        The chance of a random action instead.
    law : array of float [R + 1, A], optional
        The chances of these random actions; by default each is as likely. What a row leaves of 1,
        nobody knows: rollouts are cut there.

    Examples
    --------
    >>> from surestep.model import ColumnRules, Structure
    >>> structure = Structure.read(
    ...     {"lamp": ["off", "on"]}, ["wait", "switch"], {"lamp": {"parents": ["lamp"]}})
    >>> rules = ColumnRules.of(structure, [({"lamp": "off"}, "switch")], "wait")
    >>> rules.act(np.array([[0], [1]])).tolist()
    [1, 0]
    """

    actions: tuple[str, ...]
    slots: arrays.IntArray
    sizes: arrays.IntArray
    edge: int
    member_actions: arrays.IntArray
    low: arrays.IntArray
    high: arrays.IntArray
    choice: arrays.IntArray
    chance: arrays.FloatArray
    law: arrays.FloatArray | None = None

    @classmethod
    def of(
        cls,
        structure: Structure,
        rules: Sequence[Rule],
        default: str,
        *,
        group: str | None = None,
        chance: float | Sequence[float] = 0.0,
    ) -> ColumnRules:
        """Returns the policy of rules in words.

        Parameters
        ----------
        structure : Structure
            The columns and actions.
        rules : sequence of tuples
            Conditions and an action each. A condition is a column with its value, or with a tuple
            of its least and its greatest; in a group it is "@", "@left" or "@right". The leaves of
            a tree are such rules.
        default : str
            The action if no rule holds.
        group : str, optional
            The group of local rules; their actions have an @ for the member, as "reboot_@".
        chance : float or sequence of float, default 0.0
            The chance of a random action: one, or one a rule and a last one for the default.

        Returns
        -------
        ColumnRules
            The policy.

        Raises
        ------
        InvalidParameter
            A rule names a column, value or action that does not exist.
        """
        names = [HERE, LEFT, RIGHT]
        if group is None:
            used = {name for conditions, _ in rules for name in conditions}
            names = [name for name in structure.columns if name in used] or [structure.columns[0]]
            slots = np.array([[structure.columns.index(name) for name in names]])
            stars = [""]
            labels = [structure.values[c] for c in slots[0]]
        else:
            slots = structure.slots(group)
            stars = [star_of(group, structure.columns[c]) for c in slots[:, 0]]
            labels = 3 * [structure.values[slots[0, 0]]]
        sizes = np.array([len(several) for several in labels])
        known = structure.columns if group is None else names
        low = np.zeros((len(rules), len(names)), np.int64)
        high = np.tile(sizes - 1, (len(rules), 1))
        for r, (conditions, _) in enumerate(rules):
            for name, wanted in conditions.items():
                refuse_unknown(f"rule {r + 1} has the condition {name!r}", name, known)
                slot = names.index(name)
                ends = wanted if isinstance(wanted, tuple) else (wanted, wanted)
                for label in ends:
                    refuse_unknown(f"rule {r + 1}: {name} = {label!r}", str(label), labels[slot])
                low[r, slot], high[r, slot] = (labels[slot].index(str(label)) for label in ends)
                if low[r, slot] > high[r, slot]:
                    raise InvalidParameter(
                        f"rule {r + 1}: {name} = {wanted!r} never holds, as the values are "
                        f"{', '.join(labels[slot])}; expected the lower one first"
                    )
        spelled = [*dict.fromkeys(action for _, action in rules)] or [default]
        random = np.broadcast_to(np.asarray(chance, np.float64), (len(rules) + 1,)).copy()
        for r in np.flatnonzero(~((random >= 0) & (random <= 1)))[:1]:
            raise InvalidParameter(f"rule {r + 1} has the chance {random[r]:g}, expected 0 to 1")
        return cls(
            actions=structure.actions,
            slots=slots,
            sizes=sizes,
            edge=0 if group is None else structure.edges[group] or 0,
            member_actions=np.array(
                [[action_of(structure, a.replace(HERE, star)) for a in spelled] for star in stars]
            ),
            low=low,
            high=high,
            choice=np.array(
                [*(spelled.index(action) for _, action in rules), action_of(structure, default)]
            ),
            chance=random,
        )

    @classmethod
    def of_laws(
        cls,
        structure: Structure,
        conditions: Sequence[Mapping[str, object]],
        law: object,
    ) -> ColumnRules:
        """Returns the policy that draws its action by a law for each rule.

        Parameters
        ----------
        structure : Structure
            The columns and actions.
        conditions : sequence of mappings
            When each rule holds, as in `of`.
        law : array of float [R + 1, A]
            The chances of all actions for each rule, and last where no rule holds. They may sum to
            less than 1 where nobody knows the rest.

        Returns
        -------
        ColumnRules
            The policy; its actions without chance are the most likely ones.

        Raises
        ------
        InvalidPolicy
            The chances of a rule are no chances, or sum to more than 1.

        Examples
        --------
        >>> from surestep.model import ColumnRules, Structure
        >>> structure = Structure.read(
        ...     {"lamp": ["off", "on"]}, ["wait", "switch"], {"lamp": {"parents": ["lamp"]}})
        >>> rules = ColumnRules.of_laws(structure, [{"lamp": "off"}], [[0.2, 0.8], [1.0, 0.0]])
        >>> rules.chances(np.array([[0], [1]])).tolist()
        [[0.2, 0.8], [1.0, 0.0]]
        """
        shape = len(conditions) + 1, structure.num_actions
        rows = arrays.floats("law", law, shape, InvalidPolicy)
        sums = rows.sum(axis=1)
        wrong = (rows < 0).any(axis=1) | (sums > 1 + arrays.SUM_TOLERANCE)
        for r, others in arrays.first_where(wrong, "rule"):
            raise InvalidPolicy(
                f"law of rule {r + 1} is {rows[r].tolist()}, expected chances that sum to at most 1"
                f"{others}"
            )
        names = [structure.actions[a] for a in rows.argmax(axis=1)]
        rules = cls.of(structure, [*zip(conditions, names, strict=False)], names[-1], chance=1.0)
        whole = np.where(sums > 1 - arrays.SUM_TOLERANCE, sums, 1.0)
        return arrays.altered(rules, law=rows / whole[:, np.newaxis])

    @property
    def num_rules(self) -> int:
        """Returns the number of rules."""
        return int(self.low.shape[0])

    @property
    def default(self) -> str:
        """Returns the action if no rule holds."""
        return self.actions[int(self.choice[-1])]

    def deciding(self, state: arrays.IntArray) -> tuple[arrays.IntArray, arrays.IntArray]:
        """Returns the rule that decides in each state, and its action.

        Parameters
        ----------
        state : array of int [N, C]
            The columns.

        Returns
        -------
        tuple of arrays of int [N]
            The rules, counted from 0, or R where none holds; and the actions without chance.
        """
        values = np.where(self.slots < 0, self.edge, state[:, self.slots])
        missing = (values < 0).any(axis=2)
        first = self.first().reshape(self.sizes)[tuple(np.moveaxis(values, 2, 0))]
        rules = np.where(missing, self.num_rules, first)
        rule = rules.min(axis=1)
        return rule, self.taken[rules.argmin(axis=1), rule]

    def chances(self, state: arrays.IntArray) -> arrays.FloatArray:
        """Returns the chance of each action in each state.

        Parameters
        ----------
        state : array of int [N, C]
            The columns.

        Returns
        -------
        array of float [N, A]
            The chances; they sum to less than 1 where nobody knows the rest.
        """
        rule, action = self.deciding(state)
        chances: arrays.FloatArray = self.chance[rule, np.newaxis] * self.random_actions[rule]
        chances[np.arange(action.size), action] += 1 - self.chance[rule]
        return chances

    def act(
        self, state: arrays.IntArray, rng: np.random.Generator | None = None
    ) -> arrays.IntArray:
        """Returns an action for each state.

        Parameters
        ----------
        state : array of int [N, C]
            The columns.
        rng : numpy.random.Generator, optional
            The source of random actions; without it, none is random.

        Returns
        -------
        array of int [N]
            The actions.
        """
        rule, action = self.deciding(state)
        if rng is None:
            return action
        random = rng.random(len(state)) < self.chance[rule]
        if self.law is None:
            return np.where(random, rng.integers(len(self.actions), size=len(state)), action)
        drawn = (rng.random((len(state), 1)) >= self.cumulated[rule]).sum(axis=1)
        for place in np.flatnonzero(drawn == len(self.actions))[:1]:
            raise InvalidParameter(
                f"nobody knows what is done in state {place + 1} of those given; expected states "
                "in which the chances of actions sum to 1"
            )
        return np.where(random, drawn, action)

    @property
    def taken(self) -> arrays.IntArray:
        """Returns the actions of each rule for each member [M, R + 1]; last, if no rule holds."""
        idle = np.full(len(self.slots), self.choice[-1])
        return np.column_stack([self.member_actions[:, self.choice[:-1]], idle])

    @property
    def is_whole(self) -> bool:
        """Tells whether it is known everywhere what is done."""
        reached = np.unique(self.first())
        return bool((self.random_actions[reached].sum(axis=1) > 1 - arrays.SUM_TOLERANCE).all())

    @property
    def random_actions(self) -> arrays.FloatArray:
        """Returns the chances of random actions [R + 1, A]."""
        if self.law is not None:
            return self.law
        return np.full((self.chance.size, len(self.actions)), 1 / len(self.actions))

    @property
    def cumulated(self) -> arrays.FloatArray:
        """Returns the cumulated chances of random actions [R + 1, A]."""
        sums: arrays.FloatArray = self.random_actions.cumsum(axis=1)
        last = sums[:, -1:]
        return sums / np.where(last > 1 - arrays.SUM_TOLERANCE, last, 1.0)

    def first(self) -> arrays.IntArray:
        """Returns the first rule that holds for each combination of the values that count.

        Returns
        -------
        array of int
            The rules, or R where none holds; the last value changes fastest.

        Raises
        ------
        InvalidParameter
            There are too many combinations.
        """
        number = math.prod(self.sizes.tolist())
        if number > MOST_COMBINATIONS:
            raise InvalidParameter(
                f"rules look at columns with {number} combinations of values, expected at most "
                f"{MOST_COMBINATIONS}; name fewer columns"
            )

        def found() -> arrays.IntArray:
            first = np.full(self.sizes, self.num_rules)
            for r in reversed(range(self.num_rules)):
                first[tuple(map(slice, self.low[r], self.high[r] + 1))] = r
            return arrays.freeze(first.ravel())

        return self.remembered("first", found)


def action_of(structure: Structure, name: str) -> int:
    """Returns the number of an action."""
    refuse_unknown(f"a rule takes {name!r}", name, structure.actions)
    return structure.actions.index(name)


@noun("structure", "log", "discount", "return_bounds")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactoredProblem(arrays.ByValue):
    """A log by columns, the current policy as rules, and what else a claim needs to know.

    Parameters
    ----------
    log : FactoredLog
        The log, with its structure.
    behavior : ColumnRules, Policy or None
        The current policy π_b: rules, or a table over all states, which are numbers whose digits
        are the columns. None: nobody knows it, and the returns of the log are compared with.
    discount : float
        The discount γ.
    start : tuple of int, optional
        The one state in which episodes start, if it is known; else the log's starts are used.
    rest_bounds : tuple of float, optional
        Bounds of the discounted return from any step on; by default those of the rewards.
    return_bounds : tuple of float, optional
        Bounds of the return of every episode; by default the same.
    horizon : int, optional
        The steps that count; by default all.
    about_behavior : tuple of Statement, optional
        What a claim assumes about π_b; by default that it is known.
    premises : tuple of Statement, default ()
        What else every claim assumes.

    Raises
    ------
    InvalidParameter
        The bounds are not known and γ is 1.

    Examples
    --------
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(4)
    >>> world.problem(world.sample(world.first_failed(0.3), 5, rng=1)).return_bounds[0]
    3.0
    """

    log: FactoredLog
    behavior: ColumnRules | Policy | None
    discount: float
    start: tuple[int, ...] | None = None
    rest_bounds: tuple[float, float] = field(default=None)  # type: ignore[assignment]
    return_bounds: tuple[float, float] = field(default=None)  # type: ignore[assignment]
    horizon: int | None = None
    about_behavior: tuple[Statement, ...] = (Statement("behavior-known"),)
    premises: tuple[Statement, ...] = ()

    def __post_init__(self) -> None:
        arrays.read_discount(self.discount)
        rest: tuple[float, float] | None = self.rest_bounds
        if rest is None:
            steps = math.inf if self.horizon is None else float(self.horizon)
            if self.discount < 1:
                steps = 1 / (1 - self.discount) * (1 - self.discount**steps)
            if steps == math.inf:
                raise InvalidParameter(
                    "without a discount, `rest_bounds` or a horizon are needed: nothing else says "
                    "how much may be earned"
                )
            low, high = (r * steps for r in self.structure.reward_range)
            ends = self.structure.has_end or self.horizon is not None
            rest = (min(low, 0.0), max(high, 0.0)) if ends else (low, high)
        whole: tuple[float, float] | None = self.return_bounds
        arrays.keep(self, rest_bounds=rest, return_bounds=rest if whole is None else whole)
        for name in ("rest_bounds", "return_bounds"):
            low, high = getattr(self, name)
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise InvalidParameter(
                    f"{name} is {(low, high)}, expected two finite rising numbers"
                )

    @property
    def structure(self) -> Structure:
        """Returns the structure of the log."""
        return self.log.structure

    @property
    def starts(self) -> arrays.IntArray:
        """Returns the start that is known, or those of the log with a value in every column."""
        logged = self.log.starts.astype(np.int64)
        whole = logged[(logged >= 0).all(axis=1)]
        return whole if self.start is None else np.array([self.start])

    @property
    def rolled_behavior(self) -> ColumnRules | None:
        """Returns π_b as rules by which it can be rolled out; None if nobody knows all of it."""
        behavior = self.behavior
        return behavior if isinstance(behavior, ColumnRules) and behavior.is_whole else None
