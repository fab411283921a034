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
# # 04 M2PO step by step
#
# M2PO masks the few tokens that carry a mini-batch's drift, and leaves the rest alone. The whole
# algorithm fits on eight tokens. Four rules that go by its name do not agree on these eight, and
# this notebook says why.
#
# **You will be able to**
#
# 1. run Algorithm 1 of the paper by hand, and name the tokens it never touches;
# 2. write it as a threshold that can be found once and applied anywhere;
# 3. say where it differs from a clip;
# 4. tell the four rules apart that are called M2PO.
#
# Needs notebook 01 (d, r, M2) and nothing but numpy.

# %%
import numpy as np

from m2po_lab import tutorials as lab
from m2po_lab.core import apply, eligible, keep_m2po, objective, solve_threshold, sums
from m2po_lab.core.moments import m2
from m2po_lab.tutorials.drawings import m2po as draw
from m2po_lab.tutorials.exercises.m2po import shown_mask
from m2po_lab.tutorials.lessons import m2po as lesson

lab.theme()

# %% [markdown]
# ## 1 Eight tokens
#
# Two answers to one prompt. The first was right, its tokens have advantage $A = 1$; the second was
# wrong, $A = -1$. They were sampled some updates ago, and $d = \log\pi - \log\mu$ says how far the
# policy has moved since.

# %%
batch = lesson.eight_tokens()
d = batch.log_ratio()
inside = eligible(batch)

rows = ["| token | A | d | d² | in H |", "|---|---|---|---|---|"]
for i, token in enumerate(lesson.TOKENS):
    a, x, h = batch.advantage.flat[i], d.flat[i], inside.flat[i]
    rows.append(f"| {token} | {a:+.0f} | {x:+.2f} | {x * x:.4f} | {'yes' if h else ''} |")
lab.say("\n".join(rows))

# %% [markdown]
# **H**, the trust-region tokens, are those that have already moved the way their advantage pushes:
#
# $$ H = \{t : (A_t > 0,\ d_t > 0)\ \text{or}\ (A_t < 0,\ d_t < 0)\}. $$
#
# Pushing these further is what a trust region is there to stop. The others are on their way back:
# "is" belongs to the right answer and has become less likely, so its gradient repairs something.
# M2PO never masks those, however large $|d|$ is. Tokens with $A = 0$ have no gradient and are not in
# H either.
#
# ## 2 Algorithm 1 by hand
#
# > While the mean of $d^2$ over what is left of H is over the budget $\tau$, drop the token with the
# > largest $d^2$ and mask it.
#
# The paper uses $\tau = 0.04$ everywhere.

# %%
budget, left = 0.04, inside
names = np.array(lesson.TOKENS).reshape(d.shape)

while m2(sums(d, left)) > budget:
    worst = left & (d**2 == (d[left] ** 2).max())
    lab.say(f"mean {float(m2(sums(d, left))):.4f} is over the budget: drop “{names[worst][0]}”")
    left = left & ~worst
lab.say(f"mean **{float(m2(sums(d, left))):.4f}** is within it: stop")

# %% [markdown]
# The core's mask is the same one:

# %%
keep = keep_m2po(batch, budget)
assert np.array_equal(keep, ~inside | left)
assert (~keep).sum() == 3

# %% [markdown]
# Move the slider to watch it. After two tokens the mean is over the budget by a hair, and a third
# one goes.

# %%
lab.slide(
    lambda dropped, budget: draw.squares(lesson.stage(batch, lesson.TOKENS, dropped, budget)),
    start={"dropped": 2, "budget": 0.04},
    dropped=range(7),
    budget=(0.01, 0.02, 0.04, 0.08, 0.16),
)

# %%
near_miss = lesson.stage(batch, lesson.TOKENS, 2, budget)
assert 0.04 < near_miss.mean < 0.042

# %% [markdown]
# ### Exercise: who is in H?
# Tokens a, b, c, d have $A = 2$ and log-ratios 0.10, -0.20, 0.50, -0.90. Tokens e, f, g, h have
# $A = -0.5$ and log-ratios 0.3, 0.3, -0.3, -0.1. Answer with a set of letters.

# %%
answer = ...
lab.check("m2po-region", answer)

# %% [markdown]
# ### Exercise: who is masked?
# The same tokens, budget 0.04.

# %%
answer = ...
lab.check("m2po-mask", answer)

# %% [markdown]
# ## 3 The objective
#
# Masked tokens lose their gradient. They stay in the denominator:
#
# $$ J = \frac1N \sum_{t=1}^{N} M_t\, r_t A_t, \qquad M_t \in \{0, 1\},\quad N \text{ all valid tokens.} $$
#
# So a mask makes the step shorter, never longer. There is no clip, no KL term, no entropy term.

# %%
m2po = objective("m2po", budget=0.04)
weight = m2po.weight(batch)
assert np.allclose(weight, np.where(keep, np.exp(d), 0))
assert m2po.divisor(batch) == 8
loss, report = m2po.loss(batch)
lab.say(
    f"{int(report['masked'])} of {int(report['tokens'])} tokens masked; M2 of H"
    f" {float(report['m2_before']):.3f} before, {float(report['m2_after']):.3f} after."
)

# %% [markdown]
# ## 4 The threshold form
#
# Dropping the largest one by one gives a mask of a simple form: there is a value $v^*$, and a token
# of H goes if $d^2 > v^*$. Solving for $v^*$ and applying it are two steps. That matters in
# practice, because a mini-batch is spread over micro-batches and GPUs: the threshold is solved once
# over all of them (a histogram that adds up), the mask is applied wherever the tokens are.
#
# From here on, 4096 tokens with heavy tails instead of eight:

# %%
large = lesson.heavy_tails()
threshold = solve_threshold(large, budget=0.04)
lab.say(
    f"{threshold.active} tokens in H, M2 {threshold.m2_before:.4f}. Masking the {threshold.masked}"
    f" with |d| > {threshold.log_ratio:.2f} leaves {threshold.m2_after:.4f}."
)
assert threshold.m2_after <= 0.04 < threshold.m2_before

# %%
lab.slide(
    lambda budget: draw.bounds(
        large, t := solve_threshold(large, budget), 1 - apply(large, t).mean()
    ),
    start={"budget": 0.04},
    budget=(0.0, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.08, 0.16),
)

# %% [markdown]
# Red tokens go. Orange lines are PPO's clip: it drops everything beyond them, whether the
# mini-batch as a whole has drifted or not.
#
# ### One mask, however the mini-batch is cut
#
# What if every micro-batch looks at its own tokens only? Then a micro-batch with a wild token
# masks more than it would have to, and one without wastes its budget.

# %%
counts = (1, 2, 4, 8, 16, 32, 64)
found = lesson.split(large, counts)
draw.split(counts, found)

# %%
together, alone, released = (found[name] for name in found)
lab.say(
    f"One threshold masks {together[0]:.2%} of the tokens at every split. M2PO solved in each of 64"
    f" micro-batches by itself masks {alone[-1]:.2%}, the authors' released code {released[0]:.2%} as"
    f" a whole and {released[-1]:.2%} in 64."
)
assert len(set(together)) == 1
assert alone[-1] > 2 * alone[0]
assert released[-1] > 1.5 * released[0]

# %% [markdown]
# ## 5 A budget is not a clip
#
# A clip asks each token: are you out of bounds? A budget asks the mini-batch: have you drifted too
# far, and if so, who is to blame? Let the drift grow, and count who is dropped:

# %%
scales = np.geomspace(0.02, 0.6, 12).tolist()
drift, share = lesson.growing(scales, ("ppo", "m2po"))
draw.growing(drift, share, budget=0.04)

# %%
last_within = max(i for i, value in enumerate(drift) if value <= 0.04)
lab.say(
    f"At an M2 of {drift[last_within]:.3f}, still within the budget, the clip drops"
    f" {share['ppo'][last_within]:.0%} of the tokens and M2PO none. At {drift[-1]:.1f} it is"
    f" {share['ppo'][-1]:.0%} against {share['m2po'][-1]:.0%}."
)
assert share["m2po"][last_within] == 0
assert share["ppo"][last_within] > 0.04
assert all(m <= p for m, p in zip(share["m2po"], share["ppo"], strict=True))

# %% [markdown]
# Two things to keep in mind. Far over the budget M2PO drops nearly as much as the clip. And
# $\tau = 0.04$ is the optimizer's budget, not a diagnosis: a run whose M2 is over it is not sick,
# M2PO has something to do. Real runs are over it one update behind (notebook 06).
#
# ### Exercise: write it
# A function of `d`, `A` (two arrays of one mini-batch) and `budget` that returns a list of booleans,
# True for the tokens that stay. The checker tries it on hundreds of random mini-batches.

# %%
answer = ...
lab.check("m2po-function", answer)

# %% [markdown]
# ## 6 Four rules called M2PO
#
# | rule | looks at | drops until | divides by | scope |
# |---|---|---|---|---|
# | `m2po`, the paper | H | mean over the rest of H is within the budget | all valid tokens | mini-batch, all ranks |
# | `m2po_released`, the authors' code | H | a cap on d² meets the budget; the cap then is a clip | all valid tokens | micro-batch |
# | `m2po_areal`, AReaL | every valid token, A ignored | mean over all that stay is below it | tokens that stay | micro-batch |
# | `m2po_all_tokens`, a fork of SkyRL | H | mean over **all** that stay is below it | all valid tokens | batch |
#
# On the eight tokens:

# %%
rules = ("m2po", "m2po_released", "m2po_areal", "m2po_all_tokens", "ppo")
masks = {rule: objective(rule).keep(batch) for rule in rules}
draw.masks(lesson.TOKENS, masks, inside)

# %%
dropped = {rule: int((~mask).sum()) for rule, mask in masks.items()}
assert dropped == {
    "m2po": 3,
    "m2po_released": 5,
    "m2po_areal": 4,
    "m2po_all_tokens": 6,
    "ppo": 4,
}
assert not masks["m2po_areal"][0, 2]
assert objective("m2po_areal").divisor(batch) == 4
assert m2(sums(d, ~inside)) > budget

# %% [markdown]
# - **The paper's rule** drops three tokens, and the mean of the rest is within the budget.
# - **The released code** finds the cap $c$ for which the mean of $\min(d^2, c)$ meets the budget, and
#   clips at the largest $d^2$ below $c$. It drops five: tokens beyond the cap still count, capped,
#   so the cap has to be tighter.
# - **AReaL** ignores the advantage. It drops "is", which is on its way back to where it should be,
#   and it divides by the tokens that stay: the more it masks, the longer the step per token.
# - **The fork** wants the mean over all tokens below the budget, but may drop only from H. Here the
#   two tokens outside H alone are over it, so the whole region goes and it still is not met.
#
# None of these is wrong as code, and all are in use. But a run made with one says little about
# another. To find out which one a training framework has, hand its loss function to
# `m2po_lab.conformance.check` (needs torch), which answers with the name and a counterexample for
# each of the others.
#
# ### Exercise: whose mask is this?

# %%
lab.say(
    ", ".join(f"{name} {'stays' if stays else '**goes**'}" for name, stays in shown_mask().items())
)
answer = ...
lab.check("m2po-variant", answer)

# %% [markdown]
# ## What to watch
#
# | in the log | meaning | healthy |
# |---|---|---|
# | `m2_before` | M2 of H before the mask | anything; over the budget means M2PO acts |
# | `m2_after` | M2 of what stays of H | at most the budget, by construction |
# | `masked_fraction` | masked tokens over all valid ones | far below what a clip would drop |
# | `threshold` | v*, the largest d² that stays | infinite while nothing is masked |
#
# If `masked_fraction` nears the clip fraction, the mask no longer picks outliers: the data are too
# old, or the steps too long. Then look at M2 by lag, not at the mask.
#
# **Next**: 05 puts every trust region on one batch; 03 trains with four of them.
#
# ## References
#
# - Zheng, Zhao, Chen: *Prosperity before collapse: how far can off-policy RL reach with stale data
#   on LLMs?* [arXiv 2510.01161](https://arxiv.org/abs/2510.01161), 2025. Algorithm 1, section 4.
# - The authors' code: [Infini-AI-Lab/M2PO](https://github.com/Infini-AI-Lab/M2PO); AReaL:
#   [inclusionAI/AReaL](https://github.com/inclusionAI/AReaL).
# - Schulman et al.: *Proximal policy optimization algorithms*,
#   [arXiv 1707.06347](https://arxiv.org/abs/1707.06347), 2017. The clip.
