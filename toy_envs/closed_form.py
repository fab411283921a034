"""What sampling can only estimate, exactly: value, drift and gradient of a policy on a bandit.

Policies are tables of log-probs, (..., S, A), nats; leading axes are policies side by side (seeds,
updates). Expectations are sums over states and arms, carried along the tokens of an answer.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from toy_envs.chain import Dynamics

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Drift:
    """Expectations over d = log(current / behavior), under the behavior policy.

    Attributes:
        mean: E[d], nats; minus the divergence KL(behavior || current).
        m2: E[d^2], nats^2.
        chi2: E[r^2] - 1 with r = e^d.
        ess_fraction: E[r]^2 / E[r^2], the share of samples that importance weights leave.
    """

    mean: Floats
    m2: Floats
    chi2: Floats
    ess_fraction: Floats


def occupancy(dynamics: Dynamics, logp: Floats) -> Floats:
    """Return the distribution of the state of each token under a policy, (..., T, S)."""
    states = [np.broadcast_to(dynamics.start, (*logp.shape[:-2], len(dynamics.start)))]
    for _ in range(dynamics.horizon - 1):
        states.append(_forward(dynamics, states[-1][..., None] * np.exp(logp)))
    return np.stack(states, axis=-2)


def value(dynamics: Dynamics, logp: Floats) -> Floats:
    """Return the expected reward of an answer, (...)."""
    return _dot(values(dynamics, logp)[0], dynamics.start)


def values(dynamics: Dynamics, logp: Floats) -> list[Floats]:
    """Return the expected product of the scores from each token on, T + 1 arrays (..., S)."""
    p = np.exp(logp) * dynamics.score
    ahead = [np.ones((*logp.shape[:-2], len(dynamics.start)))]
    for _ in range(dynamics.horizon):
        ahead.append((p * _backward(dynamics, ahead[-1])).sum(axis=-1))
    return ahead[::-1]


def policy_gradient(dynamics: Dynamics, logp: Floats) -> Floats:
    """Return the gradient of the value in the logits of every state, (..., S, A).

    sum over tokens of f_t(s) pi(a|s) (Q_t(s, a) - V_t(s)), where f_t is the probability of being
    in s, weighted with the scores so far (policy gradient theorem, Sutton et al. 2000).
    """
    p, ahead = np.exp(logp), values(dynamics, logp)
    reached = np.broadcast_to(dynamics.start, (*logp.shape[:-2], len(dynamics.start)))
    gradient = np.zeros(logp.shape)
    for now, then in pairwise(ahead):
        q = dynamics.score * _backward(dynamics, then)
        gradient += reached[..., None] * p * (q - now[..., None])
        reached = _forward(dynamics, reached[..., None] * p * dynamics.score)
    return gradient


def token_drift(dynamics: Dynamics, behavior: Floats, current: Floats) -> Drift:
    """Drift of single tokens, over all tokens of the answers of the behavior policy.

    What `m2po_lab.core` estimates from a log whose rollouts one policy sampled.
    """
    met = occupancy(dynamics, behavior).mean(axis=-2)[..., None] * np.exp(behavior)
    d = current - behavior
    return _drift(*((met * x).sum(axis=(-2, -1)) for x in (d, d * d, np.exp(2 * d))))


def sequence_drift(dynamics: Dynamics, behavior: Floats, current: Floats) -> Drift:
    """Drift of whole answers: d is the sum over the tokens, r the product."""
    p, d = np.exp(behavior), current - behavior
    first, second = np.zeros(d.shape[:-1]), np.zeros(d.shape[:-1])
    square = np.ones(d.shape[:-1])
    for _ in range(dynamics.horizon):
        rest, rest2 = _backward(dynamics, first), _backward(dynamics, second)
        first = (p * (d + rest)).sum(axis=-1)
        second = (p * (d * d + 2 * d * rest + rest2)).sum(axis=-1)
        square = (p * np.exp(2 * d) * _backward(dynamics, square)).sum(axis=-1)
    return _drift(*(_dot(x, dynamics.start) for x in (first, second, square)))


def _drift(mean: Floats, m2: Floats, square: Floats) -> Drift:
    """E[r] is 1 exactly: a softmax gives every arm some probability."""
    return Drift(mean, m2, square - 1, 1 / square)


def _dot(per_state: Floats, start: Floats) -> Floats:
    return np.asarray((per_state * start).sum(axis=-1))


def _forward(dynamics: Dynamics, flow: Floats) -> Floats:
    """Mass (..., S, A) that leaves by each arm -> mass (..., S) that arrives."""
    into = dynamics.transition.reshape(-1, len(dynamics.start))
    return np.asarray(flow.reshape(*flow.shape[:-2], -1) @ into)


def _backward(dynamics: Dynamics, ahead: Floats) -> Floats:
    """Values (..., S) of states -> expected values (..., S, A) behind each arm."""
    out_of = dynamics.transition.reshape(-1, len(dynamics.start)).T
    return np.asarray(ahead @ out_of).reshape(*ahead.shape, -1)
