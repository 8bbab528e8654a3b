"""Draws actions for policies with a memory: an episode remembers its observations and actions."""

from itertools import chain
from typing import Any

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidParameter
from surestep.io.labels.binning import START
from surestep.io.labels.vocabulary import Label, given_values
from surestep.io.logs.columns import remembered
from surestep.results.result import Decision, Default, Result


class Episode:
    """An episode in which the policy of a result acts; it remembers the steps that states need.

    Parameters
    ----------
    result : Result
        The result; without a memory each state is only what is observed.
    rng : Generator or int
        The source of random numbers, or its seed.
    fallback : Default, optional
        It acts in a state that is not known, or that the log never decides in.

    Examples
    --------
    >>> from surestep.results import Episode
    >>> table = {  # the sign of the first step says which way pays in the second
    ...     "episode": [i // 2 for i in range(480)],
    ...     "step": [0, 1] * 240,
    ...     "state": ["sign A", "fork", "sign A", "fork", "sign B", "fork", "sign B", "fork"] * 60,
    ...     "action": ["go", "left", "go", "right", "go", "left", "go", "right"] * 60,
    ...     "reward": [0, 1, 0, 0, 0, 0, 0, 1] * 60,
    ... }
    >>> result = surestep.improve(table, memory=1, ends="complete", discount=1, worlds=0)
    >>> episode = Episode(result, rng=0)
    >>> episode.act("sign B"), episode.act("fork")
    ('go', 'right')
    """

    def __init__(
        self, result: Result, rng: np.random.Generator | int, fallback: Default | None = None
    ) -> None:
        arrays.expect("result", result, Result)
        words = result.table.vocabulary
        steps = result.memory_steps
        acting = len(words.action_columns)
        self.result = result
        self.rng = arrays.generator(rng)
        self.fallback = fallback
        self.present = words.state_columns[
            : (len(words.state_columns) - steps * acting) // (steps + 1)
        ]
        self.memory = remembered((*self.present, *words.action_columns), steps)
        self.past: list[Label] = []  # the last step first

    def act(self, observation: object) -> Any:
        """Draws an action for the present observation, and remembers both.

        Parameters
        ----------
        observation : str, sequence or mapping
            What `Result.act` takes as a state, without the columns of the memory.

        Returns
        -------
        str, tuple of str or Decision
            What `Result.act` returns.
        """
        row = (
            dict(observation.items())
            if hasattr(observation, "items")
            else dict(
                zip(self.present, given_values("state", self.present, observation), strict=True)
            )
        )
        texts = [*chain(*self.past), *[START] * len(self.memory)]
        row |= {each.name: text for each, text in zip(self.memory, texts, strict=False)}
        answer = self.result.act(row, self.rng, self.fallback)
        _, _, label = self.result.table.vocabulary.read("state", row)
        self.past.insert(0, label[: len(self.present)])
        self.did(answer.action if isinstance(answer, Decision) else answer)
        return answer

    def did(self, action: object) -> None:
        """Replaces the remembered last action by the one that was really taken.

        Parameters
        ----------
        action : str, sequence or mapping
            The action that was taken: a text, one text a column, or a row.
        """
        if not self.past:
            raise InvalidParameter("nothing was observed yet; expected `act` before `did`")
        words = self.result.table.vocabulary
        taken = words.actions[words.index("action", action)]
        self.past[0] = (*self.past[0][: len(self.present)], *taken)
