"""Which column of a user's table means what: the roles of a log, and the names they go by."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from surestep.errors import InvalidLog, InvalidParameter

# The canonical name of each role first, then what Minari and Gymnasium, D4RL and d3rlpy, RLDS, and
# OBP and SCOPE-RL call it.
ALIASES = {
    "episode": ("episode", "episode_id", "trajectory", "trajectory_id"),
    "step": ("step", "timestep", "time_step", "t"),
    "state": ("state", "observation", "observations", "obs", "context"),
    "action": ("action", "actions"),
    "reward": ("reward", "rewards"),
    "next_state": ("next_state", "next_observation", "next_observations", "next_obs"),
    "terminated": (
        *("terminated", "terminations", "termination", "terminals", "terminal"),
        *("is_terminal", "done", "dones"),
    ),
    "truncated": ("truncated", "truncations", "truncation", "timeouts", "timeout"),
    "is_last": ("is_last",),
    "behavior_prob": ("behavior_prob", "pscore", "propensity", "action_prob"),
    "weight": (),  # never by name: it may be that of a patient
}
ROLES = tuple(ALIASES)
SEVERAL = ("state", "action", "next_state")  # roles that may have more than one column
NEEDED = ("state", "action", "reward")
RARE = ("is_last", "behavior_prob", "weight")  # roles that nobody misses


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The columns of each role; an empty tuple where a log has none, None for a single one.

    A row where `is_last` is true holds only the last observation of its episode, as in RLDS:
    `terminated` there says how the step before ended. `behavior_prob` is how likely the behavior
    policy was to take the action, `weight` how many identical rows one stands for.
    """

    state: tuple[str, ...]
    action: tuple[str, ...]
    reward: str
    next_state: tuple[str, ...] = ()
    episode: str | None = None
    step: str | None = None
    terminated: str | None = None
    truncated: str | None = None
    is_last: str | None = None
    behavior_prob: str | None = None
    weight: str | None = None

    def __str__(self) -> str:
        """One line a role: 'state       ward, severity'."""
        shown = [role for role in ROLES if role not in RARE or getattr(self, role)]
        return "\n".join(f"{role:<11} {self.described(role)}" for role in shown)

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
        if self.is_last is not None and (self.episode is None or self.step is None):
            raise InvalidLog(
                f"column {self.is_last!r} marks last observations, as RLDS does, but a column of "
                "episodes or one of steps is missing; add 'episode' and 'step' (its number in the "
                "episode), or name them with --episode and --step"
            )
        if self.is_last is not None and self.truncated is not None:
            raise InvalidLog(
                f"both {self.is_last!r} and {self.truncated!r} say where recordings stopped; "
                "choose only one of the two"
            )
        if self.episode is not None and self.step is None:
            raise InvalidLog(
                f"there are episodes (column {self.episode!r}), but no column says which step of "
                "its episode a row is; add a column 'step', or name it with --step"
            )
        if self.episode is None and not self.next_state:
            raise InvalidLog(
                "there is neither a column of episodes nor one of next states, so nobody knows "
                "where a decision led; add 'next_state', or 'episode' and 'step', or name them "
                "with --next-state, or --episode and --step"
            )


def resolve(
    columns: Sequence[str], chosen: Mapping[str, str | Sequence[str]] | None = None
) -> ColumnMapping:
    """The columns of each role: those `chosen`, else by name, canonical ones before aliases.

    A column that was chosen for something else, such as a patient's weight for the state, is not
    found by name for a role that nobody misses.
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
        role: asked.get(role) or by_name(role, free if role in RARE else columns) for role in ROLES
    }
    if resolved["is_last"] and "truncated" not in asked:
        resolved["truncated"] = ()  # what is not terminal at the last observation was cut short
    if not resolved["next_state"]:
        following = tuple(f"next_{name}" for name in resolved["state"])
        resolved["next_state"] = following if all(name in columns for name in following) else ()
    for role in NEEDED:
        if not resolved[role]:
            raise InvalidLog(
                f"no column says what the {role} is; {closest(role, columns)}; name it with "
                f"--{role.replace('_', '-')}"
            )
    return ColumnMapping(
        **{
            role: given if role in SEVERAL else given[0] if given else None
            for role, given in resolved.items()
        }  # type: ignore[arg-type]
    )


def names(role: object, given: object) -> tuple[str, ...]:
    """Checks and returns the columns that someone chose for a role."""
    if role not in ROLES:
        raise InvalidParameter(f"role is {role!r}, expected one of {', '.join(ROLES)}")
    columns = (given,) if isinstance(given, str) else given
    if not isinstance(columns, Sequence) or not all(isinstance(name, str) for name in columns):
        raise InvalidParameter(f"columns of {role} are {given!r}, expected names")
    if len(columns) > 1 and role not in SEVERAL:
        raise InvalidParameter(f"{role} has {len(columns)} columns, expected one")
    twice = [name for index, name in enumerate(columns) if name in columns[:index]]
    if twice:
        raise InvalidParameter(f"column {twice[0]!r} is chosen twice for {role}")
    return tuple(columns)


def by_name(role: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the column that has the role's name or one of its aliases, in any case of letters."""
    wanted = ALIASES[role]
    if wanted and wanted[0] in columns:
        return (wanted[0],)
    matches = [name for name in columns if name.lower() in wanted]
    if len(matches) > 1:
        raise InvalidLog(
            f"the {role} may be column {' or '.join(map(repr, matches))}; choose one with "
            f"--{role.replace('_', '-')}"
        )
    return tuple(matches)


def closest(name: str, columns: Sequence[str]) -> str:
    """The names that come closest, or all of them."""
    near = difflib.get_close_matches(name, columns, n=3)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"the columns are {', '.join(map(repr, columns)) or 'none at all'}"
