# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 Clipping under staleness
#
# PPO's clip keeps a policy near the one that sampled. When the rollouts are old, near is not where
# the policy should be. This notebook trains a small policy on rollouts that are 256 updates old, and
# looks at the tokens the clip takes away: they are not a random tenth.
#
# **You will be able to**
#
# 1. say on which side of which bound the clip binds, and what it leaves unbounded;
# 2. measure how the clipped share and the time to learn grow with staleness;
# 3. show that the clip drops the tokens with the highest entropy, where the decisions are;
# 4. weigh a wider clip against a budget.
#
# Needs notebook 01 (r) and nothing but numpy; trains for about half a minute.

# %%
import numpy as np

from m2po_lab import tutorials as lab
from m2po_lab.tutorials.drawings import clipping as draw
from m2po_lab.tutorials.lessons import clipping as lesson

lab.theme()

# %% [markdown]
# ## 1 What the clip does to a token
#
# $$ L_t = -\min\big(r_t A_t,\ \mathrm{clip}(r_t,\,1-\varepsilon,\,1+\varepsilon)\,A_t\big) $$
#
# Its gradient in $\log\pi$ is $r_t A_t$, or nothing at all once the token has moved past a bound in the
# direction its advantage pushes. So a clip is a mask with hard edges:

# %%
ratios = np.linspace(0.02, 2.5, 500)
lab.slide(
    lambda eps: draw.clip(
        ratios,
        lesson.gradient_weight(ratios, 1.0, "ppo", eps_low=eps, eps_high=eps),
        lesson.gradient_weight(ratios, -1.0, "ppo", eps_low=eps, eps_high=eps),
        eps,
    ),
    start={"eps": 0.2},
    eps=(0.05, 0.1, 0.2, 0.3, 0.5, 0.8),
)

# %% [markdown]
# Look at the right panel: for $A < 0$ there is no bound above. A bad token that has become ten times
# likelier gets ten times the push.
#
# ### Exercise: where does it bind?
# Tokens as $(A, r)$: a (1, 1.3), b (1, 0.5), c (-1, 0.7), d (-1, 1.9), e (1, 1.19). Which have no
# gradient under a clip of 0.2? Answer with a set of letters.

# %%
answer = ...
lab.check("clipping-binds", answer)

# %% [markdown]
# ### Exercise: unbounded?
# A token has $A < 0$ and $r = 10$. With which weight does $A$ enter PPO's gradient?

# %%
answer = ...
lab.check("clipping-weight", answer)

# %% [markdown]
# ## 2 A policy that learns from old rollouts
#
# The toy: repeat each of five digits and write the running sum modulo 10 behind it,
# `4 7 1 … → 4 4 7 1 1 2 …`. Reward 1 if the whole chain is right. The policy is a linear softmax over
# a few features (numpy, exact gradients); it starts out right in 15 % of the cases. A queue holds
# rollouts back, so that each is 256 updates old when it is trained on. GRPO: advantages from groups
# of eight answers, PPO's clip.

# %%
run = lesson.train_and_read("ppo", staleness=256)
draw.learning(run)

# %%
lab.say(
    f"Accuracy {run.reward[0]:.2f} at the start, {run.reward[:8].mean():.2f} over the first 32"
    f" updates, {run.reward[56:64].mean():.2f} just before update 256,"
    f" {run.reward[-12:].mean():.2f} at the end. {run.masked[:64].mean():.0%} of the tokens are"
    f" clipped before update 256, {run.masked[64:].mean():.0%} after it."
)
assert abs(run.reward[0] - 0.15) < 0.04
assert run.reward[56:64].mean() < 0.5 < 0.8 < run.reward[-12:].mean()
assert run.masked[:64].mean() > 0.1

# %% [markdown]
# It rises, gets stuck, and goes on at update 256. That is when the first rollout arrives that was
# sampled *during* training; until then the queue holds rollouts of the starting policy. A clip of
# 0.2 lets the policy move by 20 % from each of them, and no further: it has to wait.

# %%
policies = lesson.starts(range(3))
lags = (0, 32, 128, 256)
by_lag = {f"staleness {lag}": lesson.trained(policies, "ppo", lag) for lag in lags}
draw.accuracy(by_lag, lesson.LEARNED, "PPO's clip, three seeds")

# %%
reached = [lesson.updates_to(curves) for curves in by_lag.values()]
share = [curves.masked_fraction.mean() for curves in by_lag.values()]
lab.say(
    f"Updates to an accuracy of {lesson.LEARNED}: "
    + ", ".join(f"{n:.0f} (staleness {lag})" for n, lag in zip(reached, lags, strict=True))
    + ". Clipped: "
    + ", ".join(f"{s:.1%}" for s in share)
    + "."
)
delays = np.array(reached) - reached[0]
assert np.all(np.abs(delays[1:] / lags[1:] - 1) < 0.35)
assert sorted(share) == share
assert share[-1] > 50 * share[0]

# %% [markdown]
# The clipped share grows more than fiftyfold, and the delay is about the staleness itself: one update lost
# for every update the rollouts are late. The end is not much lower. Stale GRPO is slow, not wrong.
#
# ### Exercise: foretell
# How many updates will the same policies need at staleness 64? (20 % off is close enough; the
# checker trains them.)

# %%
answer = ...
lab.check("clipping-delay", answer)

# %% [markdown]
# ## 3 Which tokens are lost
#
# Every token of the run above is in its log. Take $|r-1|$, how far it has moved, and the entropy of
# the distribution it was sampled from:

# %%
lab.slide(
    lambda eps: draw.entropy(run, lesson.dropped(run, eps)),
    start={"eps": 0.2},
    eps=(0.05, 0.1, 0.2, 0.4, 0.8),
)

# %%
found = lesson.dropped(run, 0.2)
entropy = run.entropy_by_ratio["entropy"]
lab.say(
    f"Tokens within 0.01 of r = 1 have an entropy of {entropy[0]:.2f} nats, those between 0.2 and 0.3"
    f" **{entropy[5]:.2f}**. The clip drops {found.share:.0%} of all tokens, with a mean entropy of"
    f" **{found.entropy_dropped:.2f}**; those it keeps have {found.entropy_kept:.2f}."
)
assert run.entropy_by_ratio["low"][5] == 0.2
assert entropy[0] < 0.1 < 1.0 < entropy[5]
assert found.entropy_dropped > 2.5 * found.entropy_kept

# %% [markdown]
# A token that was certain is certain still: its ratio stays at 1. Tokens at which the policy had a
# choice are those that learning moves, and those a clip on the ratio cuts off. In this task it is
# plain which is which. Every other token copies a digit; the ones between are sums, and only sums
# have to be learned.

# %%
widths = [lesson.dropped(run, eps) for eps in (0.1, 0.2, 0.4, 0.8)]
draw.share_by_kind(widths)

# %%
lab.say(
    f"At 0.2 the clip drops {found.of_sums:.0%} of the sums and {found.of_copies:.1%} of the copies."
)
assert found.of_sums > 20 * found.of_copies

# %% [markdown]
# In the paper the same shows on language models: mean entropy rises from about 0.15 at $|r-1| = 0$ to
# 0.25 at 0.2 and 1.0 at 0.65. Here it rises faster, for this toy drifts far more per update than a
# real run does, and falls again at the far end, where tokens are that were nearly given up.

# %%
paper = {0.0: 0.15, 0.2: 0.25, 0.65: 1.0}
assert list(paper.values()) == sorted(paper.values())
assert entropy[-1] < max(entropy)

# %% [markdown]
# ## 4 A wider clip?
#
# If the clip is in the way, widen it. And if that is good, why not leave it out?

# %%
wide = {"clip 0.2": by_lag["staleness 256"]}
for eps in (0.4, 0.8):
    wide[f"clip {eps}"] = lesson.trained(policies, "ppo", 256, eps_low=eps, eps_high=eps)
wide["no trust region"] = lesson.trained(policies, "is", 256)
wide["M2PO, budget 0.04"] = lesson.trained(policies, "m2po", 256)
draw.accuracy(wide, lesson.LEARNED, "rollouts 256 updates old, three seeds")

# %%
reach = {name: lesson.updates_to(curves) for name, curves in wide.items()}
final = {name: np.median(curves.value[:, -12:].mean(axis=1)) for name, curves in wide.items()}
rows = [f"| {name} | {reach[name]:.0f} | {final[name]:.2f} |" for name in wide]
lab.say("\n".join(["| | updates to 0.6 | final accuracy |", "|---|---|---|", *rows]))
assert reach["M2PO, budget 0.04"] < 0.4 * reach["clip 0.2"]
assert final["no trust region"] < 0.85 < final["clip 0.2"]
assert final["clip 0.4"] > final["clip 0.2"]

# %% [markdown]
# Without a trust region the policy races ahead and falls back (notebook 03). M2PO is as fast at
# first and stays up. And, to be fair, so does a clip of 0.4 here: twice the usual width happens to
# suit this staleness. But which width suits depends on how far the data have drifted, which you know
# only afterwards; the budget of 0.04 was not tuned to this toy. Three seeds of a toy rank nothing:
# take the mechanism with you, not the order.
#
# ## What to watch
#
# | number | what it says under staleness |
# |---|---|
# | clipped share | how much of the data is thrown away; split it by the sign of $A$ |
# | entropy of the clipped tokens against the others | whether the clip takes the decisions |
# | reward against updates *minus the lag* | whether training is only waiting for its data |
# | M2 by lag | how far the data have drifted; the clip's width should be read against it |
#
# `m2po-lab analyze` shows who is lost by probability and by entropy for a log of yours.
#
# **Next**: 03 lets the four arms run until one collapses.
#
# ## References
#
# - Schulman et al.: *Proximal policy optimization algorithms*,
#   [arXiv 1707.06347](https://arxiv.org/abs/1707.06347), 2017.
# - Ye et al.: *Mastering complex control in MOBA games*,
#   [arXiv 1912.09729](https://arxiv.org/abs/1912.09729), 2020. The dual clip.
# - Yu et al.: *DAPO*, [arXiv 2503.14476](https://arxiv.org/abs/2503.14476), 2025. Clip-higher.
# - Zheng, Zhao, Chen: *Prosperity before collapse*,
#   [arXiv 2510.01161](https://arxiv.org/abs/2510.01161), 2025. Entropy against $|r-1|$.
