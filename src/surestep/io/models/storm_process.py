"""Lets Storm write a UMB archive of a PRISM program; runs as a script in its own process.

Storm is a C++ library that ends the process on some errors, such as a division by zero. The script
imports nothing from surestep, so that it starts quickly. It reads `request.json` in the given
folder, and writes `answer.json` there.
"""

import json
import re
import sys
from itertools import chain
from pathlib import Path
from typing import Any

PROGRAM = "model.prism"
REQUEST = "request.json"
ANSWER = "answer.json"
MODEL = "model.umb"
KINDS = ("mdp", "dtmc")
OUT_OF_BOUNDS = "out_of_bounds"  # Storm's label of the state in which variables leave their range
LOOP = " [] true -> true; "
FEW_STATES = 10_000  # more states are named on demand, as that takes long
MOST_VALUES = 10**8  # of a variable: Storm would try to hold a state for each
# Without a type, a program is an MDP (PRISM's manual, "Model Type"); Storm wants to be told.
UNTYPED = re.compile(r"(\s|//[^\n]*+)*+(module|const|formula|global|label|rewards|init|system)\b")
COMMENT_OR_END = re.compile(r"//[^\n]*|\b(?P<end>endmodule)\b")


def answer_to(folder: Path) -> dict[str, Any]:
    """Writes the model of the program; returns names and rewards of its states, or a complaint."""
    import stormpy
    import stormpy.developer

    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    request = json.loads((folder / REQUEST).read_text())
    text = (folder / PROGRAM).read_bytes().decode("latin-1")
    if UNTYPED.match(text):
        (folder / PROGRAM).write_bytes(f"mdp {text}".encode("latin-1"))
    program = read_program(stormpy, folder / PROGRAM, request["constants"])
    kind = program.model_type.name.lower()
    if kind not in KINDS:
        return {"complaint": f"the model is of type {kind!r}, expected 'mdp' or 'dtmc'"}
    undefined = [constant.name for constant in program.get_undefined_constants()]
    if undefined:
        return {
            "complaint": f"no value is given for the constants {', '.join(undefined)}, expected "
            f"one for each, such as constants={{{undefined[0]!r}: 1}}"
        }
    structures = [structure.name for structure in program.reward_models]
    reward = request["reward"]
    if reward is None and len(structures) == 1:
        reward = structures[0]
    elif reward not in structures and (structures or reward is not None):
        return {
            "complaint": f"reward is {reward!r}, expected one of the program's reward structures: "
            f"{', '.join(map(repr, structures)) or 'there are none'}"
        }
    fixed = program.substitute_constants()
    parts = (fixed.global_integer_variables, *(x.integer_variables for x in fixed.modules))
    for variable in chain(*parts):
        low = variable.lower_bound_expression.evaluate_as_int()
        size = variable.upper_bound_expression.evaluate_as_int() - low + 1
        if size > MOST_VALUES:
            return {
                "complaint": f"variable {variable.name} has {size:,} values, expected at most "
                f"{MOST_VALUES:,}"
            }
    built = build(stormpy, program)
    plain = stormpy.io.UmbExportOptions()
    plain.compression = stormpy.io.CompressionMode.NO_COMPRESSION
    stormpy.io.export_to_umb(built, folder / MODEL, options=plain)
    answer: dict[str, Any] = {"structure": reward}
    if request["named"] or built.nr_states <= FEW_STATES:
        answer["names"] = state_names(built.state_valuations)
    rewards = built.reward_models.get(reward)
    marked = built.labeling
    dead = marked.contains_label("deadlock") and marked.get_states("deadlock")
    # Storm's set of states is true in Python even if it is empty.
    if dead and dead.get_number_of_set_bits() and rewards is not None and rewards.has_state_rewards:
        # Storm forgets the state rewards of deadlocks. With one more command, a loop in every
        # state, it keeps them, and numbers the states as before, as a loop leads to no new state.
        text = (folder / PROGRAM).read_bytes().decode("latin-1")
        ends = (part.start() for part in COMMENT_OR_END.finditer(text) if part["end"])
        at = next(ends)  # a program without modules has no deadlocks
        (folder / PROGRAM).write_bytes(f"{text[:at]}{LOOP}{text[at:]}".encode("latin-1"))
        program = read_program(stormpy, folder / PROGRAM, request["constants"])
        model = build(stormpy, program)
        answer["state_rewards"] = [*model.reward_models[reward].state_rewards]
    return answer


def read_program(storm: Any, path: Path, constants: Any) -> Any:
    """Reads the program in a file, with the constants that are given."""
    program = storm.parse_prism_program(path)
    return storm.io.instantiate_constants(program, constants)[0] if constants else program


def build(storm: Any, program: Any) -> Any:
    """Builds Storm's model of a program, with its labels, rewards, and values of variables.

    Storm's own checks allow no rounding in sums of probabilities: 0.8 + 0.1 + 0.1 is not 1 then. We
    check sums ourselves, so Storm is asked again only whether a variable leaves its range, for
    which it has a state of its own.
    """
    options = build_options(storm)
    options.set_exploration_checks()
    try:
        return storm.build_model(program, options=options)
    except Exception:  # Storm's own errors come as RuntimeError and in other classes
        options = build_options(storm)
        options.set_add_out_of_bounds_state()
        if storm.build_model(program, options=options).labeling.contains_label(OUT_OF_BOUNDS):
            raise
        return storm.build_model(program, options=build_options(storm))


def build_options(storm: Any) -> Any:
    """Returns the options for everything that Storm builds besides transitions."""
    options = storm.BuilderOptions()
    options.set_build_state_valuations()
    options.set_build_choice_labels()
    options.set_build_all_labels()
    options.set_build_all_reward_models()
    return options


def state_names(values: Any) -> list[str]:
    """Returns the values of the variables in each state, such as (x=1,b=true)."""
    # A set without an order; and Storm's own text leaves out variables that are true.
    columns = [
        [f"{variable.name}={str(value).lower()}" for value in values.get_values_states(variable)]
        for variable in sorted(values.get_all_variables(), key=lambda variable: variable.index)
    ]
    return [f"({','.join(row)})" for row in zip(*columns, strict=True)]


def main(folder: Path) -> None:
    """Writes `answer.json`: what `answer_to` returns, or the error of Storm as a complaint."""
    try:
        answer = answer_to(folder)
    except Exception as problem:  # Storm's own errors come as RuntimeError and in other classes
        words = " ".join(str(problem).split()).replace(str(folder / PROGRAM), "the program")
        answer = {"complaint": f"Storm says: {words[:400]}"}
    (folder / ANSWER).write_text(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
