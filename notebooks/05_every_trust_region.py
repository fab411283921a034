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
# # 05 Every trust region on the same batch
#
# PPO, DAPO, CISPO, TIS, GSPO, SAPO, TOPR, M2PO … The names multiply, but each of them answers one
# question: with which weight does a token that has moved enter the gradient? Here they all answer it
# about the same stale tokens.
#
# **You will be able to**
#
# 1. read any of these objectives as one function: the weight of a token against its ratio;
# 2. sort them by what decides: the token, the answer, or the mini-batch;
# 3. compare what they take away, in tokens and in gradient;
# 4. say what a trust region costs: bias against spread, exactly.
#
# Needs notebooks 01 and 04, and nothing but numpy.

# %%
import numpy as np

from m2po_lab import tutorials as lab
from m2po_lab.core import OBJECTIVES
from m2po_lab.tutorials.drawings import regions as draw
from m2po_lab.tutorials.exercises.regions import PLACES, shown_weights
from m2po_lab.tutorials.lessons import regions as lesson
from m2po_lab.tutorials.lessons.clipping import gradient_weight

lab.theme()

# %% [markdown]
# ## 1 One function each
#
# Whatever its loss looks like, the gradient of an objective is
#
# $$ -\frac{\partial L}{\partial \log\pi_t} = \frac{w_t\, A_t}{D}. $$
#
# Without a trust region $w = r$ (dotted). The small panels show what becomes of it; green is for
# tokens of good answers, red and dashed for those of bad ones.

# %%
names = (
    *("is", "reinforce", "ppo", "dapo", "dual_clip", "icepop"),
    *("dppo_tv", "cispo", "tis", "topr", "sapo", "maspo"),
)
ratios = np.linspace(0.01, 3, 300)
weights = {n: tuple(gradient_weight(ratios, a, n) for a in (1.0, -1.0)) for n in names}
draw.profiles(ratios, weights)

# %% [markdown]
# - **Edges** (`ppo`, `dapo`, `icepop`, `dppo_tv`): inside all, outside nothing. They differ in where
#   the edge is, and whether it looks at the ratio or (`dppo_tv`) at the difference of probabilities.
# - **Caps** (`cispo`, `tis`): nobody is left out, nobody shouts. `topr` caps bad answers at 1 and
#   does not weigh good ones at all.
# - **Soft** (`sapo`, `maspo`): the weight fades.
# - `reinforce` has no weight: it believes that all data are fresh.
#
# Corrections such as `tis` and `icepop` weigh by $b$, proximal over behavior; the panels show the
# first update on a rollout, where $b = r$.
#
# ### Exercise: name it

# %%
for sign, values in shown_weights().items():
    lab.say(
        f"{sign}: " + ", ".join(f"w({r:g}) = {w:g}" for r, w in zip(PLACES, values, strict=True))
    )
answer = ...
lab.check("regions-profile", answer)

# %% [markdown]
# ## 2 Who decides?
#
# A panel cannot show everything: in some objectives other tokens have a say.

# %%
lines = ["| what decides | objectives |", "|---|---|"]
for family, members in lesson.FAMILIES.items():
    lines.append(f"| {family} | {', '.join(f'`{m}`' for m in members)} |")
lab.say("\n".join(lines))
assert {OBJECTIVES[n].scope for n in lesson.FAMILIES["a bound for each answer"]} == {"sequence"}
assert OBJECTIVES["m2po"].scope == "mini-batch"

# %% [markdown]
# Answers have a ratio too, in two kinds that must not be mixed up: the product $\prod_t r_t$, and
# its geometric mean $\exp(\frac1T\sum_t d_t)$, which GSPO uses. Over a thousand tokens the first may
# be $10^{40}$ where the second is 1.1.
#
# ### Exercise: the ratio of an answer
# An answer of three tokens has log-ratios 0.3, -0.1 and 0.1. What is GSPO's ratio?

# %%
longest = np.exp(1000 * np.log(1.1))
assert 1e40 < longest < 1e42

answer = ...
lab.check("regions-geometric", answer)

# %% [markdown]
# ## 3 The same tokens
#
# A policy is trained for 192 updates on rollouts that are 256 updates old (the toy of notebook 02).
# The picture shows its last rollout. Each column is a token; tokens are sorted by $d$ in the
# direction of their advantage. Left of the orange line are tokens on their way back, right of it
# those already pushed further. Grey is no gradient.

# %%
batch = lesson.stale_batch(256)
judged = lesson.judge(batch)
draw.matrix(batch, judged)

# %% [markdown]
# Read it row by row. Clips (`ppo`, `dapo`) cut the right end off, wherever it begins to be far. M2PO
# cuts much later, and only as much as its budget asks for. `m2po_areal` cuts on the left as well,
# for it ignores the advantage. Rules for whole answers (`gspo`, `opsm`, `mis`) leave stripes: the ten
# tokens of an answer stay or go together.
#
# ### Exercise: who never drops a token?
# Choose from `ppo`, `dapo`, `cispo`, `topr`, `sapo`, `gspo`, `icepop`, `m2po`.

# %%
answer = ...
lab.check("regions-never", answer)

# %% [markdown]
# ## 4 How much is taken away
#
# Tokens are one measure; the gradient they carry is another. Move the slider from nearly fresh data
# to very stale ones.

# %%
batches = {8: lesson.stale_batch(8), 64: lesson.stale_batch(64), 256: batch}
lab.slide(
    lambda staleness: draw.ranking(lesson.judge(batches[staleness]), f"staleness {staleness}"),
    start={"staleness": 256},
    staleness=(8, 64, 256),
)

# %%
by_name = {one.name: one for one in judged}
m2po, ppo, gspo = (by_name[n] for n in ("m2po", "ppo", "gspo"))
lab.say(
    f"At 256, PPO drops {ppo.dropped:.0%} of the tokens and keeps {ppo.mass:.0%} of the gradient mass;"
    f" M2PO drops {m2po.dropped:.0%} and keeps **{m2po.mass:.0%}**. GSPO, with the bounds of its"
    f" paper, drops {gspo.dropped:.0%}."
)
assert m2po.dropped > 0.1
assert m2po.mass > 0.9 > ppo.mass
assert (batch.log_ratio()[m2po.gone] < -1).mean() > 0.5
assert gspo.dropped > 0.7

# %% [markdown]
# M2PO's masked tokens weighed next to nothing: most of them had been given up, $r \to 0$, so their
# gradient $r A$ was nearly 0 anyway. And GSPO's bounds of 3e-4 and 4e-4 are made for long answers:
# on ten tokens nearly everything is outside. A setting does not travel from one task to another.
#
# There is something no mask in H can help with. At staleness 64 look at the ESS of the weights:

# %%
by_name = {one.name: one for one in lesson.judge(batches[64])}
rows = [
    f"| `{n}` | {by_name[n].worth:.2f} |"
    for n in ("is", "ppo", "m2po", "dual_clip", "cispo", "tis")
]
lab.say("\n".join(["| objective | ESS/n of its weights |", "|---|---|", *rows]))
d, advantage = batches[64].log_ratio(), np.asarray(batches[64].advantage)
largest = np.unravel_index(np.argmax(np.where(advantage < 0, d, -np.inf)), d.shape)
lab.say(f"The largest ratio at A < 0 is {np.exp(d[largest]):.0f}.")
assert np.exp(d[largest]) > 10
assert max(by_name[n].worth for n in ("is", "ppo", "m2po")) < 0.5
assert min(by_name[n].worth for n in ("dual_clip", "cispo", "tis")) > 0.9

# %% [markdown]
# One token of a bad answer has become many times likelier. It is on its way back, so neither PPO's
# clip nor M2PO's mask touches it, and it takes over the mini-batch. A dual clip or a cap on the
# weight is for this. A trust region and a bound on weights are two things; you may want both.
#
# ## 5 The price, exactly
#
# How wrong does an objective make the gradient, and how noisy does it leave it? On a task with eight
# possible answers both are finite sums, without sampling. Bias: distance of the expected gradient
# from the true one. Spread: standard deviation of what one answer contributes.

# %%
exact = lesson.exact(("is", "ppo", "m2po", "cispo", "topr", "gmpo"))
draw.trade_off(exact)

# %%
at = {name: one.bias[8] for name, one in exact.items()}
lab.say(
    "Bias at lag 8: "
    + ", ".join(f"`{name}` {value:.0%}" for name, value in at.items())
    + ". Spread"
    f" at lag 8: `is` {exact['is'].spread[8]:.2f}, `ppo` {exact['ppo'].spread[8]:.2f}."
)
assert at["is"] < at["m2po"] < at["ppo"]
assert exact["ppo"].spread[8] < exact["is"].spread[8]
assert all(one.bias[0] < 1e-9 for one in exact.values())

# %% [markdown]
# On policy nobody is biased. Even without a trust region the bias grows, for a token's ratio leaves
# out how likely its prefix has become. PPO's bias jumps when the drift reaches the bound; M2PO's
# rises more slowly and stays lower. What they buy with it is less spread. No objective is best at every
# lag, and none of this says how a language model learns: it says what each estimator estimates.
#
# ## What to watch
#
# | compare | because |
# |---|---|
# | tokens dropped *and* gradient mass kept | tokens that were given up weigh nothing |
# | the sign of A of what is dropped | upper and lower edges do different things |
# | ESS of the weights that are left | a single large weight at A < 0 is in no trust region |
# | the share of answers that are dropped whole | for sequence rules it depends on length |
#
# `m2po-lab analyze` makes this comparison on a log of yours, with all the objectives it has columns
# for.
#
# **Next**: 06 reads a real log; 03 trains four of these.
#
# ## References
#
# The page of each objective names its paper and defaults. To begin with:
#
# - Schulman et al.: PPO, [arXiv 1707.06347](https://arxiv.org/abs/1707.06347); Yu et al.: DAPO,
#   [arXiv 2503.14476](https://arxiv.org/abs/2503.14476).
# - MiniMax: CISPO, [arXiv 2506.13585](https://arxiv.org/abs/2506.13585); Zheng et al.: GSPO,
#   [arXiv 2507.18071](https://arxiv.org/abs/2507.18071).
# - Le Roux et al.: TOPR, [arXiv 2503.14286](https://arxiv.org/abs/2503.14286); Zheng, Zhao, Chen:
#   M2PO, [arXiv 2510.01161](https://arxiv.org/abs/2510.01161).
