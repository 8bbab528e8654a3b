"""The meaning of the columns of a user's table: the roles of a log, and the names they go by."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from surestep._names import did_you_mean
from surestep.errors import InvalidLog, InvalidParameter, said

ALMOST = 0.82  # alike are rewrad and reward; ward and reward, date and state are not


class Role(NamedTuple):
    """A meaning that a column may have: the names it goes by, and the words of its option."""

    # The canonical name first, then what Minari and Gymnasium, D4RL and d3rlpy, RLDS, and OBP and
    # SCOPE-RL call it.
    aliases: tuple[str, ...]
    help: str  # of its option
    several: bool = False  # it may have more than one column
    needed: bool = False  # no log is without
    rare: bool = False  # nobody misses it


# As they are shown and recorded.
ROLES = {
    "episode": Role(
        ("episode", "episode_id", "trajectory", "trajectory_id"),
        "The column that says to which episode a row belongs.",
    ),
    "step": Role(
        ("step", "timestep", "time_step", "t"),
        "The column with the number of the step in its episode.",
    ),
    "state": Role(
        ("state", "observation", "observations", "obs", "context"),
        "The column with the state; repeat it where there are several.",
        several=True,
        needed=True,
    ),
    "action": Role(
        ("action", "actions"),
        "The column with the action; repeat it where there are several.",
        several=True,
        needed=True,
    ),
    "reward": Role(("reward", "rewards"), "The column with the reward.", needed=True),
    "next_state": Role(
        ("next_state", "next_observation", "next_observations", "next_obs"),
        "The column with the state that follows; repeat it where there are several.",
        several=True,
    ),
    "terminated": Role(
        (
            *("terminated", "terminations", "termination", "terminals", "terminal"),
            *("is_terminal", "done", "dones"),
        ),
        "The column that says whether the episode ended with this step.",
    ),
    "truncated": Role(
        ("truncated", "truncations", "truncation", "timeouts", "timeout"),
        "The column that says whether the recording was cut after this step.",
    ),
    "propensity": Role(
        ("propensity", "behavior_prob", "pscore", "propensity_score", "action_prob"),
        "The column with the probability that the action had when it was taken.",
        rare=True,
    ),
    "time": Role(
        (),  # never by name: it may be that of day
        "The column with the time of a decision, or at which its episode began, where the order of "
        "the log is another one; splits in time go by it.",
        rare=True,
    ),
}


# The columns, by role, of a log of which every row is an episode of one step, and ends it.
SINGLE = {"episode": "(every row)", "step": "(always 0)", "terminated": "(always true)"}


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The columns of each role; an empty tuple where a log has none, None for a single one.

    `propensity` is how likely the behavior policy was to take the action.
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

    def __str__(self) -> str:
        """One line a role: 'state       ward, severity'."""
        width = max(11, *map(len, self.shown))
        return "\n".join(f"{role:<{width}} {self.described(role)}" for role in self.shown)

    @property
    def shown(self) -> list[str]:
        """The roles that people look for: a rare one only where it has a column."""
        return [name for name, role in ROLES.items() if not role.rare or getattr(self, name)]

    def by_role(self) -> dict[str, tuple[str, ...]]:
        """Returns the columns of each role that has some."""
        named = {role: getattr(self, role) for role in ROLES}
        return {
            role: (names,) if isinstance(names, str) else tuple(names)
            for role, names in named.items()
            if names
        }

    def described(self, role: str) -> str:
        """Returns the columns of a role in words."""
        named = getattr(self, role)
        if not named:
            return "(derived from the next step)" if role == "next_state" else "(none)"
        return named if isinstance(named, str) else ", ".join(named)

    def __post_init__(self) -> None:
        """Checks that there are whole episodes in order, or transitions that say where they led."""
        if self.next_state and len(self.next_state) != len(self.state):
            raise InvalidLog(
                f"the next state has {len(self.next_state)} columns "
                f"({', '.join(self.next_state)}), the state {len(self.state)} "
                f"({', '.join(self.state)}); expected as many, in the same order"
            )
        if self.episode is not None and self.step is None:
            raise InvalidLog(
                f"there are episodes (column {self.episode!r}), but no column says which step of "
                f"its episode a row is; add a column 'step', or name it with {naming('step')}"
            )
        if self.episode is None and not self.next_state:
            raise InvalidLog(
                "there is neither a column of episodes nor one of next states, so nobody knows "
                "where a decision led; add 'next_state', or 'episode' and 'step', or name them "
                f"with {naming('next_state')}, or {naming('episode', 'step')}"
            )


# As they are asked for: what a log must have comes first.
ROLE_OPTIONS = tuple(field.name for field in fields(ColumnMapping))


def resolve(
    columns: Sequence[str], chosen: Mapping[str, str | Sequence[str]] | None = None
) -> ColumnMapping:
    """The columns of each role: those `chosen`, else by name, canonical ones before aliases.

    A log without episodes, steps, next states and ends has one decision a row: every row is an
    episode. A column that was chosen for something else is not found by name for a role that nobody
    misses.
    """
    asked = {role: names(role, given) for role, given in (chosen or {}).items()}
    for role, given in asked.items():
        for name in given:
            if name not in columns:
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
            "does; leave out such rows and the column in the query of a description"
        )
    if not resolved["next_state"]:
        following = tuple(f"next_{name}" for name in resolved["state"])
        resolved["next_state"] = following if all(name in columns for name in following) else ()
    if not any(resolved[role] for role in (*SINGLE, "next_state", "truncated")):
        resolved |= {role: (name,) for role, name in SINGLE.items()}
    for role in ROLES:
        if ROLES[role].needed and not resolved[role]:
            raise InvalidLog(
                f"no column says what the {role} is; {like_role(role, columns)}; name it with "
                f"{naming(role)}"
            )
    both = [name for name in resolved["state"] if name in resolved["action"]]
    if both:
        raise InvalidLog(
            f"column {both[0]!r} is that of the state and of the action; expected the action in a "
            f"column of its own, named with {naming('action')}"
        )
    return ColumnMapping(
        **{
            role: given if ROLES[role].several else given[0] if given else None
            for role, given in resolved.items()
        }  # type: ignore[arg-type]
    )


def names(role: object, given: object) -> tuple[str, ...]:
    """Checks and returns the columns that someone chose for a role."""
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidParameter(f"role is {role!r}, expected one of {', '.join(ROLES)}")
    columns = (given,) if isinstance(given, str) else given
    if not isinstance(columns, Sequence) or not all(isinstance(name, str) for name in columns):
        raise InvalidParameter(f"columns of {role} are {given!r}, expected names")
    if len(columns) > 1 and not ROLES[role].several:
        raise InvalidParameter(f"{role} has {len(columns)} columns, expected one")
    twice = [name for index, name in enumerate(columns) if name in columns[:index]]
    if twice:
        raise InvalidParameter(f"column {twice[0]!r} is chosen twice for {role}")
    return tuple(columns)


def by_name(role: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the column that has the role's name or one of its aliases, in any case of letters."""
    wanted = ROLES[role].aliases
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
    """The names that come closest, or all of them."""
    near = difflib.get_close_matches(name, columns, n=3)
    if near:
        return did_you_mean(map(repr, near))
    return f"the columns are {', '.join(map(repr, columns)) or 'none at all'}"


def like_role(role: str, columns: Sequence[str]) -> str:
    """The columns whose names hold one that the role goes by, or almost; else all of them."""
    usual = ROLES[role].aliases
    near = [
        name
        for name in columns
        if set(re.split("[^a-z0-9]+", name.lower())) & set(usual)
        or difflib.get_close_matches(name.lower(), usual, cutoff=ALMOST)
    ]
    return did_you_mean(map(repr, near[:3])) if near else closest("", columns)


def naming(*roles: str) -> str:
    """Returns how the columns of roles are named: an argument of `read_log`, or options.

    >>> naming("episode", "step")
    "columns={'episode': …, 'step': …}"
    """
    argument = ", ".join(f"{role!r}: …" for role in roles)
    return said(f"columns={{{argument}}}", " and ".join(map(option_of, roles)))


def option_of(role: str) -> str:
    """Returns the option that names the columns of a role: '--next-state'."""
    return f"--{role.replace('_', '-')}"
