"""Finds the roles of columns in a user's table (state, action, reward, …) by name or by choice."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from surestep._names import did_you_mean
from surestep.description import several
from surestep.errors import InvalidLog, said

Types = Mapping[str, str]  # column → type, as DuckDB calls it


class Role(NamedTuple):
    """A meaning that a column may have, and its usual names."""

    # The canonical name first, then what Minari and Gymnasium, D4RL and d3rlpy, RLDS, and OBP and
    # SCOPE-RL call it.
    aliases: tuple[str, ...]
    several: bool = False  # it may have more than one column
    needed: bool = False  # every log has it
    rare: bool = False  # few logs have it, and none needs it


ENDS = ("terminated", "terminations", "termination", "terminals", "terminal", "is_terminal")
# As they are shown and recorded.
ROLES = {
    "episode": Role(("episode", "episode_id", "trajectory", "trajectory_id")),
    "step": Role(("step", "timestep", "time_step", "t")),
    "state": Role(
        ("state", "observation", "observations", "obs", "context"), several=True, needed=True
    ),
    "action": Role(("action", "actions"), several=True, needed=True),
    "reward": Role(("reward", "rewards"), needed=True),
    "next_state": Role(
        ("next_state", "next_observation", "next_observations", "next_obs"), several=True
    ),
    "terminated": Role((*ENDS, "done", "dones")),
    "truncated": Role(("truncated", "truncations", "truncation", "timeouts", "timeout")),
    "propensity": Role(
        ("propensity", "behavior_prob", "pscore", "propensity_score", "action_prob"), rare=True
    ),
    "time": Role((), rare=True),  # only if chosen: a column called time may be the time of day
}


# The columns that are added, by role, if every row is an episode of one step.
SINGLE = {"episode": "(every row)", "step": "(always 0)", "terminated": "(always true)"}


class Remembered(NamedTuple):
    """A column of the state that repeats the value of another `column`, `steps` steps before."""

    name: str
    column: str
    steps: int


def remembered(columns: Sequence[str], steps: int) -> tuple[Remembered, ...]:
    """Returns the memory of `columns` over `steps` steps, the latest step first.

    >>> [each.name for each in remembered(["sound"], 2)]
    ['sound 1 step before', 'sound 2 steps before']
    """
    return tuple(
        Remembered(f"{column} {ago} step{'s' if ago > 1 else ''} before", column, ago)
        for ago in range(1, steps + 1)
        for column in columns
    )


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The columns of each role; an empty tuple, or None, for a role without columns.

    `propensity` is the probability of the action under the behavior policy.
    """

    state: tuple[str, ...]
    action: tuple[str, ...]
    reward: str
    next_state: tuple[str, ...] = ()
    episode: str | None = None
    step: str | None = None
    terminated: str | None = None
    truncated: str | None = None
    propensity: str | None = None
    time: str | None = None
    memory: tuple[Remembered, ...] = ()

    def __str__(self) -> str:
        """Returns one line a role: 'state       ward, severity'."""
        width = max(11, *map(len, self.shown))
        return "\n".join(f"{role:<{width}} {self.described(role)}" for role in self.shown)

    @property
    def present(self) -> tuple[str, ...]:
        """Returns the columns of the state, except those of the memory."""
        return self.state[: len(self.state) - len(self.memory)]

    def remembering(self, steps: int, columns: Sequence[str]) -> Self:
        """Adds a memory of `steps` steps to the state; refuses it if the rows have no order."""
        if not steps:
            return self
        memory = remembered((*self.state, *self.action), steps)
        faults = {each.name: "is there already" for each in memory if each.name in columns}
        faults |= dict.fromkeys(self.next_state, "says which state follows")
        if self.episode in (None, SINGLE["episode"]):
            faults = {self.state[0]: "belongs to no episode"}
        for name, fault in faults.items():
            raise InvalidLog(
                f"memory.steps is {steps}, but column {name!r} {fault}; expected episodes and "
                f"steps only ({naming('episode', 'step')}), from which the memory is made"
            )
        names = tuple(each.name for each in memory)
        return replace(self, state=(*self.state, *names), memory=memory)

    @property
    def shown(self) -> list[str]:
        """Returns the roles to show; a rare one only if it has a column."""
        return [name for name, role in ROLES.items() if not role.rare or getattr(self, name)]

    def by_role(self) -> dict[str, tuple[str, ...]]:
        """Returns the columns by role, without roles that have none."""
        return {role: several(getattr(self, role)) for role in ROLES if getattr(self, role)}

    def described(self, role: str) -> str:
        """Returns the columns of a role as text for messages and pages."""
        nothing = "(derived from the next step)" if role == "next_state" else "(none)"
        return ", ".join(several(getattr(self, role))) or nothing


def resolve(
    columns: Sequence[str], chosen: Mapping[str, str | Sequence[str]] | None = None
) -> ColumnMapping:
    """Returns the columns of each role: those `chosen`, else by name, canonical before aliases.

    A log without episodes, steps, next states and ends has one decision a row: every row is an
    episode. A column that was chosen for another role is not taken by name for a rare one.
    """
    asked = {role: several(given) for role, given in (chosen or {}).items()}
    for role, given in asked.items():
        for name in given:
            if name not in columns and role != "known_before":  # a query may leave that out
                raise InvalidLog(
                    f"there is no column {name!r}, chosen for {role}; {closest(name, columns)}"
                )
    taken = {name for given in asked.values() for name in given}
    free = [name for name in columns if name not in taken]
    resolved = {
        name: asked.get(name) or by_name(name, free if role.rare else columns)
        for name, role in ROLES.items()
    }
    if "is_last" in free:
        raise InvalidLog(
            "column 'is_last' marks rows that hold a last observation and no decision, as RLDS "
            "does; the query of docs/recipes.md, RLDS, makes next states and ends of them (leaving "
            "the rows out would lose the ends)"
        )
    if not resolved["next_state"]:
        following = tuple(f"next_{name}" for name in resolved["state"])
        resolved["next_state"] = following if all(name in columns for name in following) else ()
    if not any(resolved[role] for role in (*SINGLE, "next_state", "truncated")):
        resolved |= {role: (name,) for role, name in SINGLE.items()}
    check_meaning(resolved, columns)
    return ColumnMapping(
        **{
            role: given if ROLES[role].several else given[0] if given else None
            for role, given in resolved.items()
        }  # type: ignore[arg-type]
    )


def check_meaning(resolved: Mapping[str, tuple[str, ...]], columns: Sequence[str]) -> None:
    """Refuses a log without columns for needed roles, or with a column of two roles."""
    state = resolved["state"]
    next_state = resolved["next_state"]
    in_order = ("episode", "step") if resolved["episode"] or not next_state else ()
    needed = [name for name, role in ROLES.items() if role.needed or name in in_order]
    missing = [name for name in needed if not resolved[name]]
    if missing:
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        other = f", or next states with {naming('next_state')}" if "episode" in missing else ""
        raise InvalidLog(
            f"no column says what the {' and the '.join(missing)} {are}; {closest('', columns)}; "
            f"name {them} with {naming(*missing)}{other}"
        )
    for other in ("action", "reward"):
        both = {*state} & {*resolved[other]}
        if both:
            raise InvalidLog(
                f"column {min(both)!r} is that of the state and of the {other}; expected the "
                f"{other} in a column of its own, named with {naming(other)}"
            )
    if next_state and len(next_state) != len(state):
        raise InvalidLog(
            f"the next state has {len(next_state)} columns ({', '.join(next_state)}), the state "
            f"{len(state)} ({', '.join(state)}); expected as many, in the same order"
        )


def by_name(role: str, columns: Sequence[str], usual: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns the column that has the role's name or one of its aliases, in any case of letters."""
    wanted = usual or ROLES[role].aliases
    if wanted and wanted[0] in columns:
        return (wanted[0],)
    matches = [name for name in columns if name.lower() in wanted]
    if len(matches) > 1:
        raise InvalidLog(
            f"the {role} may be column {' or '.join(map(repr, matches))}; choose one with "
            f"{naming(role)}"
        )
    return tuple(matches)


def closest(name: str, columns: Sequence[str]) -> str:
    """Returns the closest names for a message, or all of them."""
    near = [*map(repr, difflib.get_close_matches(name, columns, n=3))]
    every = f"the columns are {', '.join(map(repr, columns)) or 'none at all'}"
    return did_you_mean(near) if near else every


def naming(*roles: str) -> str:
    """Returns the argument of `read_log`, or the options, that name the columns of roles.

    >>> naming("episode", "step")
    "columns={'episode': …, 'step': …}"
    """
    argument = ", ".join(f"{role!r}: …" for role in roles)
    options = " and ".join(f"--{role.replace('_', '-')}" for role in roles)
    return said(f"columns={{{argument}}}", options)
