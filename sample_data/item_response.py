"""The item-response generator behind console_demo: who resolves a task, and what it costs.

Every number here is an assumption of this project, chosen so that the set shows a fair trade-off:
easy tasks are done by any model, hard ones mostly by the strong. None is measured.
"""

from dataclasses import dataclass

import numpy as np

from hydra_core.base.types import FloatArray, IntArray

__all__ = ["ABILITY", "MODELS", "VERBOSITY", "Messages", "draw_outcomes", "draw_tokens"]

MODELS = ("gpt-5.4-mini", "claude-haiku-4.5", "gpt-5.3-codex", "claude-sonnet-4.6", "gpt-5.4")
#: (m, 4) on the labels' scale [0, 0.8]: a task that needs as much is resolved about half the time.
ABILITY = np.array(
    [
        [0.48, 0.50, 0.41, 0.40],
        [0.44, 0.43, 0.39, 0.53],
        [0.56, 0.72, 0.66, 0.42],
        [0.65, 0.69, 0.63, 0.69],
        [0.65, 0.67, 0.61, 0.61],
    ]
)
DISCRIMINATION = 10.0
GUESS, SLIP = 0.02, 0.02
#: A dimension counts by how much the task needs it, plus this floor.
RELEVANCE_FLOOR = 0.1
#: Standard deviations, in logits: of a task (all its languages, all models), of a model on a task,
#: and of one message (all models).
TASK_SD, TASK_MODEL_SD, MESSAGE_SD = 0.5, 0.4, 1.0
#: In logits: the small disadvantage of a language group, and the spread of languages around it.
GROUP_SHIFT = {"english": 0.0, "european": -0.1, "cjk": -0.15, "other": -0.2}
LANGUAGE_SD = 0.1

#: Output tokens relative to the first model.
VERBOSITY = np.array([1.0, 1.25, 0.9, 1.15, 1.05])
#: Median tokens of a task without requirements, and log-growth per unit of requirement.
INPUT_TOKENS, INPUT_GROWTH = 3_000.0, 1.5
OUTPUT_TOKENS, OUTPUT_GROWTH = 300.0, 2.2
#: Standard deviations of log tokens: of a message, and of a model on it.
ANSWER_SD, MODEL_ANSWER_SD = 0.30, 0.35


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages to simulate, one row each.

    Attributes:
        requirements: (n, 4) label requirements in [0, 0.8].
        task: (n,) number of the task.
        language: (n,) number of the language.
        groups: (n,) language group of each message.
    """

    requirements: FloatArray
    task: IntArray
    language: IntArray
    groups: tuple[str, ...]


def margins(requirements: FloatArray) -> FloatArray:
    """(n, 4) -> (n, m) ability minus requirement, averaged over what the task needs."""
    relevance = requirements + RELEVANCE_FLOOR
    relevance = relevance / relevance.sum(axis=1, keepdims=True)
    gap = ABILITY[None, :, :] - requirements[:, None, :]
    return np.asarray((gap * relevance[:, None, :]).sum(axis=2))


def draw_outcomes(messages: Messages, rng: np.random.Generator) -> FloatArray:
    """(n, m) outcomes 0 or 1: P = guess + (1 - guess - slip) * logistic(margin and effects)."""
    tasks, languages = messages.task.max() + 1, messages.language.max() + 1
    task = TASK_SD * rng.standard_normal((tasks, 1))
    task = task + TASK_MODEL_SD * rng.standard_normal((tasks, len(MODELS)))
    language = LANGUAGE_SD * rng.standard_normal(languages)
    shift = np.array([GROUP_SHIFT[group] for group in messages.groups])
    logit = DISCRIMINATION * margins(messages.requirements) + task[messages.task]
    message = MESSAGE_SD * rng.standard_normal(len(shift))
    logit += (language[messages.language] + shift + message)[:, None]
    chance = GUESS + (1.0 - GUESS - SLIP) / (1.0 + np.exp(-logit))
    return (rng.random(chance.shape) < chance).astype(np.float64)


def draw_tokens(messages: Messages, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Whole (n, m) input and output tokens, lognormal, growing with the requirements."""
    needed = messages.requirements
    context = np.log(INPUT_TOKENS) + INPUT_GROWTH * needed[:, 2:].max(axis=1)
    effort = 0.6 * needed.max(axis=1) + 0.4 * needed.mean(axis=1)
    answer = np.log(OUTPUT_TOKENS) + OUTPUT_GROWTH * effort
    shape = (len(needed), len(MODELS))
    noise = ANSWER_SD * rng.standard_normal((shape[0], 1))
    noise = noise + MODEL_ANSWER_SD * rng.standard_normal(shape)
    output_tokens = np.exp(answer[:, None] + noise) * VERBOSITY
    spread = ANSWER_SD * rng.standard_normal(shape)
    input_tokens = np.exp(context[:, None] + spread)
    return np.rint(input_tokens), np.rint(output_tokens)
