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
# # 03 Prosperity before collapse
#
# Take the trust region away and train on stale rollouts: for a while nothing is faster. Then it
# falls. The authors of M2PO call this *prosperity before collapse*; it says that stale data hold all
# there is to learn, and that something has to keep the policy from overdoing it. Here it happens
# live, in numpy, in under a minute.
#
# **You will be able to**
#
# 1. reproduce the four arms of the paper's first figure on a toy;
# 2. tell the speed of a method from where it ends;
# 3. say why a high M2 is no alarm bell;
# 4. name what makes the collapse go away, and what this toy does not show.
#
# Needs notebook 02 for the toy. Optional: torch, for the small transformer at the end.

# %%
from m2po_lab import tutorials as lab
from m2po_lab.tutorials.drawings import collapse as draw
from m2po_lab.tutorials.lessons import collapse as lesson

lab.theme()

# %% [markdown]
# ## 1 Four arms
#
# | arm | rollouts | trust region |
# |---|---|---|
# | GRPO, fresh | 0 to 3 updates old | PPO's clip, 0.2 |
# | GRPO, stale | 256 to 259 updates old | PPO's clip, 0.2 |
# | no trust region, stale | 256 to 259 | none: the loss is $-rA$ |
# | M2PO, stale | 256 to 259 | budget 0.04 on M2 |
#
# Everything else is equal: task, start, learning rate, 640 updates. Six seeds each. Accuracy and M2
# are exact sums over all states, not samples.

# %%
found = lesson.arms()
lab.slide(
    lambda until: draw.arms(found, until, lesson.LAG),
    start={"until": 636},
    until=(60, 120, 180, 256, 320, 400, 512, 636),
)

# %%
rows = ["| arm | peak | final | seeds that fall below 0.6 |", "|---|---|---|---|"]
for name, curves in found.items():
    count = f"{lesson.fallen(curves)} of {len(lesson.SEEDS)}"
    rows.append(f"| {name} | {lesson.peak(curves):.2f} | {lesson.final(curves):.2f} | {count} |")
lab.say("\n".join(rows))

fresh, clip, free, m2po = found.values()
assert lesson.FALLEN == 0.6
assert lesson.final(fresh) > 0.98
assert lesson.peak(free) > 0.8 > lesson.final(free)
assert lesson.final(m2po) > 0.9 > lesson.final(free)
assert lesson.fallen(free) >= 3 > lesson.fallen(clip)

# %% [markdown]
# Move the slider from left to right. Until update 120 or so red is the best of the stale arms, and
# nearly as good as fresh data. The clip stands still until the first rollout of its own arrives
# (dotted line). Then red falls, blue goes on, orange catches up.
#
# The lesson of the red curve is its first half. Nothing was wrong with the data: rollouts of the
# *starting* policy, 256 updates old, were enough to learn most of the task. Nor is blue without a
# scratch; a seed or two dip below 0.6 on the way.
#
# ### Exercise: count
# How many seeds of `found["no trust region, stale"]` fall below 0.6 after having been above it?
# (`.value` is an array, seeds by steps. The table above says it; say it without the table.)

# %%
answer = ...
lab.check("collapse-dips", answer)

# %% [markdown]
# ## 2 What M2PO masks
#
# A trust region that drops nothing is none. What does M2PO pay?

# %%
draw.masked(found, lesson.LAG)

# %%
lab.say(
    f"From update 256 on the clip drops {lesson.masked_late(clip):.1%} of the tokens, M2PO"
    f" {lesson.masked_late(m2po):.1%}."
)
assert lesson.masked_late(m2po) < 0.5 * lesson.masked_late(clip)

# %% [markdown]
# ### Exercise: how much less?
# From update 256 on, what fraction of the clip's share does M2PO mask?

# %%
answer = ...
lab.check("collapse-ratio", answer)

# %% [markdown]
# ## 3 Is M2 an alarm?
#
# Each seed of the red arm by itself:

# %%
draw.seeds(free, "no trust region")

# %% [markdown]
# M2 is large long before the fall, when all is well, and it *drops* when the queue begins to deliver
# rollouts from training: the policy that sampled them is nearer. It measures how far off-policy the
# data are. That is not a forecast. Here is the same arm at half the learning rate:

# %%
half = lesson.trained("is", 256, lesson.RATE / 2)
draw.compare({"rate 0.06": free, "rate 0.03": half}, "no trust region, stale, two learning rates")

# %%
lab.say(
    f"At half the rate M2 reaches {half.m2.mean(axis=0).max():.1f} nats², at the full rate"
    f" {free.m2.mean(axis=0)[: 256 // 4].max():.1f} before update 256. Of the six seeds"
    f" {lesson.fallen(half)} fall at half the rate, {lesson.fallen(free)} at the full one."
)
assert lesson.RATE / 2 == 0.03
assert half.m2.mean(axis=0).max() > 1
assert lesson.fallen(half) < lesson.fallen(free)

# %% [markdown]
# An M2 of more than 1, twenty-five times the budget, and no collapse. A budget is a choice of the
# optimizer, and M2 over it is its business; whether a run is about to fail is another question.
#
# ### Exercise: which way?
# Between updates 256 and 320, while the red arm is falling, does its M2 `"rises"` or `"falls"`?

# %%
answer = ...
lab.check("collapse-alarm", answer)

# %% [markdown]
# ## 4 Make it go away
#
# If an effect cannot be made to vanish, one has not understood it. States of this policy share
# weights through random features, so pushing one token moves others that no rollout has seen since.
# Without shared weights:

# %%
alone = lesson.trained("is", 256, shared=False)
draw.compare({"shared weights": free, "a weight for each state": alone}, "no trust region, stale")

# %%
lab.say(
    f"{lesson.fallen(alone)} of six seeds fall without shared weights; they end at"
    f" {lesson.final(alone):.2f}."
)
assert lesson.fallen(alone) == 0
assert lesson.final(alone) > 0.9

# %% [markdown]
# Now you: one seed, your staleness, your learning rate, trained when you let go of the slider.

# %%
lab.slide(
    lambda seed, staleness, rate: draw.compare(
        lesson.one_seed(seed, staleness, rate), f"seed {seed}, staleness {staleness}, rate {rate:g}"
    ),
    start={"seed": 202, "staleness": 256, "rate": 0.06},
    seed=range(200, 210),
    staleness=(0, 32, 64, 128, 256),
    rate=(0.015, 0.03, 0.06, 0.12),
)

# %% [markdown]
# ## 5 What this toy does not show
#
# - 640 updates are two and a half lags. Run to 880, and M2PO's lead over the clip is gone
#   (LOG.md): its lead is one of speed.
# - Six seeds are few. Over all 24 seeds that were measured, 18 fall without a trust region, 3 with
#   M2PO, none with the clip (LOG.md). State counts, not means.
# - Drift per update is far larger than in a real run. In the paper, collapse takes from 800 to 1700
#   updates.
# - A clip of the right width does as well here (notebook 02).
#
# The same on a small transformer (103,000 parameters, half a minute a run; needs the extra `toy`
# for torch):
#
# ```
# m2po-lab toy figure running-sum --seeds 1 --out four-arms
# m2po-lab toy run bandit --objective is --staleness 256 --seed 202 --out run
# m2po-lab analyze run/log
# ```
#
# ## What to watch
#
# | number | before the fall | in it |
# |---|---|---|
# | reward of *fresh* answers | best of all arms | falls |
# | M2 against the data trained on | high, and no alarm | may fall |
# | gradient norm | small: the policy is sure | jumps |
# | seeds | all fine | some fall, some do not: run more than one |
#
# **Next**: 04 takes the blue arm apart.
#
# ## References
#
# - Zheng, Zhao, Chen: *Prosperity before collapse: how far can off-policy RL reach with stale data
#   on LLMs?* [arXiv 2510.01161](https://arxiv.org/abs/2510.01161), 2025.
# - Shao et al.: *DeepSeekMath*, [arXiv 2402.03300](https://arxiv.org/abs/2402.03300), 2024. GRPO.
# - Levine et al.: *Offline reinforcement learning*,
#   [arXiv 2005.01643](https://arxiv.org/abs/2005.01643), 2020. Why old data are hard.
