"""Softmax policies on bandits: numpy only, seconds a run, solved exactly beside."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core.objectives import Objective
from m2po_lab.core.objectives.aggregation import Counts, divisor
from toy_envs.chain import Bandit, Floats, answer_states
from toy_envs.policy import Engine, Rollout, State, Update, draw
from toy_envs.softmax import EPS, Adam, Features, log_policy, weight_gradient


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """Supervised training on noisy demonstrations before reinforcement learning.

    Attributes:
        steps: of Adam.
        batch: demonstrations a step.
        learning_rate: constant.
    """

    steps: int = 500
    batch: int = 128
    learning_rate: float = 0.1


def warm_weights(
    bandit: Bandit, features: Floats, rng: np.random.Generator, warm: WarmStart
) -> Floats:
    """Train weights (F, A) from zero on demonstrations of the bandit's noisy teacher."""
    adam = Adam(np.zeros((features.shape[1], bandit.arms)))
    for _ in range(warm.steps):
        prompts = bandit.prompts(rng, warm.batch)
        answers = bandit.demonstrations(rng, prompts)
        state = answer_states(bandit, prompts, answers).ravel()
        pull = np.full(state.shape, 1 / state.size)
        logp = log_policy(features, adam.weights)
        adam.step(weight_gradient(features, logp, state, answers.ravel(), pull), warm.learning_rate)
    return adam.weights


class BanditPolicy:
    """A linear softmax over the arms of each state of a bandit, trained by Adam.

    Args:
        bandit: gives prompts, states and rewards.
        seed: of the random features and the demonstrations of the warm start.
        prompts: prompts a rollout.
        samples: answers a prompt.
        features: how states share weights.
        warm: supervised training before the start.
        gradient_clip: largest Euclidean norm of a gradient.
        eps: of Adam.
        engine: what the sampler makes of the trainer's logits.
    """

    def __init__(
        self,
        bandit: Bandit,
        seed: int,
        *,
        prompts: int = 32,
        samples: int = 8,
        features: Features | None = None,
        warm: WarmStart | None = None,
        gradient_clip: float = 1.0,
        eps: float = EPS,
        engine: Engine | None = None,
    ) -> None:
        """Draw the features, take the warm start."""
        self.bandit, self.engine, self.vocabulary = bandit, engine, bandit.vocabulary
        self.prompts, self.samples, self.gradient_clip = prompts, samples, gradient_clip
        rng = np.random.default_rng(seed)
        self.features = (features or Features()).of(bandit.inputs, rng)
        weights = warm_weights(bandit, self.features, rng, warm or WarmStart())
        self.optimizer = Adam(weights, eps)

    def table(self) -> Floats:
        """Log-probs (S, A) of every arm in every state, for `toy_envs.closed_form`."""
        return log_policy(self.features, self.optimizer.weights)

    def rollout(self, rng: np.random.Generator) -> Rollout:
        """Draw prompts, answer each `samples` times, score."""
        prompts = np.repeat(self.bandit.prompts(rng, self.prompts), self.samples, axis=0)
        table = self.table()
        return sample(self.bandit, lambda state: table[state], prompts, rng, self.engine)

    def logp(self, rollout: Rollout) -> Floats:
        """Log-probs (R, T) under the policy as it stands."""
        states = answer_states(self.bandit, rollout.prompts, rollout.tokens)
        return np.asarray(self.table()[states, rollout.tokens])

    def gradient(self, part: Rollout, objective: Objective) -> tuple[Floats, Update]:
        """Ascent direction (F, A) of an objective on a mini-batch: minus the loss's gradient."""
        states = answer_states(self.bandit, part.prompts, part.tokens)
        table = self.table()
        current = table[states, part.tokens]
        pull, keep = token_pull(part, current, objective)
        ascent = weight_gradient(self.features, table, states, part.tokens, pull)
        norm = float(np.sqrt((ascent * ascent).sum()))
        return ascent, Update(current_logp=current, keep=keep, gradient_norm=norm)

    def update(self, part: Rollout, objective: Objective, learning_rate: float) -> Update:
        """Take one Adam step down the objective's loss."""
        ascent, update = self.gradient(part, objective)
        self.optimizer.step(ascent, learning_rate, self.gradient_clip)
        return update

    def state(self) -> State:
        """Weights and Adam's state; the features follow from the seed."""
        return self.optimizer.state()

    def load(self, state: State) -> None:
        """Go on from `state()`."""
        self.optimizer.load(state)


def token_pull(
    part: Rollout, current: Floats, objective: Objective, seeds: int = 1
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return how an objective pulls each token's log-prob, and which tokens it keeps.

    Args:
        part: a mini-batch, or those of several seeds one after the other, all of one size.
        current: (R, T) log-probs under the policy in training.
        objective: whose loss to descend.
        seeds: how many mini-batches there are.

    Returns:
        -dLoss/dl of each token, w A / D and a penalty's share, (R, T); the keep mask, (R, T).
    """
    spec = objective.spec
    if seeds > 1 and (spec.counted is not None or objective.scope not in ("token", "sequence")):
        width = part.n_rows // seeds
        pieces = [
            token_pull(part.rows(a, a + width), current[a : a + width], objective)
            for a in range(0, part.n_rows, width)
        ]
        pulls, keeps = zip(*pieces, strict=True)
        return np.concatenate(pulls), np.concatenate(keeps)
    batch = part.batch(current)
    keep, weight = objective.judge(batch)
    ascent = weight * batch.advantage if spec.penalty is None else objective.gradient(batch)
    if spec.counted is None:
        # All tokens count, so the mask need not be solved once more to count them.
        counts = Counts(tokens=int(part.keep.sum()) // seeds, rows=part.n_rows // seeds)
        pull = ascent / divisor(
            objective.aggregation, batch, part.keep, counts, objective.max_length
        )
    else:
        pull = ascent / objective.divisor(batch)
    return pull, keep


def sample(
    bandit: Bandit,
    logits: Callable[[NDArray[np.int64]], Floats],
    prompts: NDArray[np.int64],
    rng: np.random.Generator,
    engine: Engine | None = None,
) -> Rollout:
    """Answer the prompts (R, P), token by token, and score the answers.

    Args:
        bandit: the task.
        logits: gives (R, A) logits of the policy for the states (R,) of the rows.
        prompts: token ids.
        rng: one uniform number a token.
        engine: what the sampler makes of the log-probs.
    """
    state, drawn = bandit.first_state(prompts), []
    for t in range(bandit.answer_length):
        drawn.append(draw(logits(state), rng, engine))
        if t + 1 < bandit.answer_length:
            state = bandit.next_state(prompts, t, state, drawn[-1][0])
    tokens, logps, entropies = (np.stack(column, axis=1) for column in zip(*drawn, strict=True))
    return Rollout(
        prompts=prompts,
        tokens=tokens,
        keep=bandit.keep(tokens),
        behavior_logp=logps,
        entropy=entropies,
        reward=bandit.reward(prompts, tokens),
        advantage=np.zeros(len(tokens)),
        version=np.zeros(tokens.shape, np.int32),
    )
