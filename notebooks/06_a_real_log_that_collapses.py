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
# # 06 Reading a real log that collapses
#
# A real run of TRL's GRPO: Qwen2.5-0.5B-Instruct learns to add two numbers, with vLLM as the sampler
# and a bfloat16 trainer. It starts out right nearly always, and twelve updates later it gets every
# single sum wrong. The log that ships with this package holds every token of it. We read it in the
# order in which you should read your own.
#
# **You will be able to**
#
# 1. read a log of any framework in one call, and see whether it can be trusted;
# 2. find where drift sits: step, lag, quadrant, token;
# 3. tell stale rollouts from too many updates on fresh ones;
# 4. do the same with a log of yours.
#
# Needs notebook 01; 04 helps.

# %%
import m2po_lab
from m2po_lab import tutorials as lab
from m2po_lab.tutorials.drawings import reallog as draw
from m2po_lab.tutorials.lessons import reallog as lesson

lab.theme()

# %% [markdown]
# ## 1 One call
#
# Token log and metric file of the same run may be mixed; they are joined by step.

# %%
analysis = m2po_lab.analyze([lesson.LOG, lesson.METRICS])
report = analysis.to_dict()

for read in report["inputs"]:
    roles = ", ".join(f"{role} = `{column}`" for role, column in read["columns"].items())
    lab.say(f"**{read['format']}**, {read['rows']} rows, {read['tokens']} tokens. {roles}")

# %% [markdown]
# Every framework names its columns in its own way. The reader recognises the format by its content
# and says which column it took for what; `columns={"behavior": "my_column"}` overrules it.
#
# ## 2 Can it be trusted?
#
# Before any number: are the two log-prob columns about the same tokens? Shifts by one, padding
# counted as tokens and sentinels look exactly like drift.

# %%
tokens, rows = report["tokens"], report["rows"]
lab.say(
    f"{tokens['kept']} of {tokens['logged']} tokens and {rows['kept']} of {rows['read']} rows count."
    f" Left out: {sum(tokens['excluded'].values())} tokens."
)
errors = [f.id for f in analysis.findings if f.severity == "error"]
assert tokens["kept"] == tokens["logged"] == 502
assert errors == []

# %% [markdown]
# No error: what follows is drift of the policy and not a fault of the log. (If yours shows one,
# stop here, and run `m2po-lab analyze --explain FINDING`.)
#
# ## 3 What one sees, and what happened

# %%
curves = lesson.curves(report)
draw.collapse(curves)

# %%
reward = [r for r in curves["reward"] if r >= 0]
lab.say(
    f"The reward goes {', '.join(f'{r:.2f}' for r in reward)}. ESS/n never falls below"
    f" **{curves['ess_fraction'].min():.2f}**. M2 jumps from {curves['m2'][1]:.1e} to"
    f" **{curves['m2'][2]:.1f}** at step 2, before anything shows in the reward."
)
assert curves["ess_fraction"].min() > 0.8
assert curves["m2"][2] > 4
assert reward[0] > 0.9 > reward[2]
assert reward[3] == 0

# %% [markdown]
# Grey and white bands are rollout batches: each is used for four updates (one step of the log is one
# update). A reward is logged when a batch is fresh. ESS looks healthy throughout, for the reason of
# notebook 01: the tokens in question were not raised but given up.
#
# ### Exercise: the worst step
# At which step is M2 of current/behavior largest? Look into `analysis.to_dict()`.

# %%
answer = ...
lab.check("reallog-step", answer)

# %% [markdown]
# ## 4 What the model wrote
#
# Answers are two or three digits long, so the whole run can be read.

# %%
found = lesson.tokens()
answers = lesson.answers(found)
lines = ["| batch | question | answers (right ones bold) | A |", "|---|---|---|---|"]
for (batch, question), given in lesson.by_question(answers).items():
    texts = ", ".join(f"**{a.text}** ({n})" if a.right else f"{a.text} ({n})" for a, n in given)
    advantages = ", ".join(f"{a.advantage:+.2f}" for a, _ in given)
    lines.append(f"| step {batch} | {question} | {texts} | {advantages} |")
lab.say("\n".join(lines))

# %%
(outlier,) = [a for a in answers if "=" in a.text]
assert (outlier.text, outlier.right) == ("15 + 36 = 51", False)
assert outlier.advantage < -2.4

# %% [markdown]
# It begins with a matter of form. Seven of eight answers to 15 + 36 were “51”, one was
# “15 + 36 = 51”: right, but not what the exact-match reward wants. In a group of seven right ones a
# single wrong one gets a large negative advantage, and all its tokens are pushed down. Its first
# token is a “1”.
#
# Two batches later the answer to 24 + 71 begins with a “1” too often, and “1” is punished again, in
# the only group with any signal:

# %%
path = lesson.begins_with(found, "24 + 71", "1")
lab.say(
    "Probability of beginning the answer to 24 + 71 with “1”, update by update: "
    + ", ".join(f"**{p:.2g}**" for p in path.values())
)
assert path[8] > 0.5
assert path[11] < 1e-4

# %% [markdown]
# A factor of several thousand in three updates on one batch. In the next batch every sum is wrong.
#
# Now token by token. Red tokens belong to bad answers, green ones to good ones, grey ones have no
# gradient at all. Orange lines are PPO's clip.

# %%
lab.slide(lambda step: draw.step(found, step), start={"step": 2}, step=range(16))

# %% [markdown]
# Step through 8 to 11, the updates on one batch: the red tokens sink from update to update. And look
# at 4 to 7: every advantage is 0, nothing can be learned, and still the grey tokens move. The
# usual suspect is the optimizer's momentum, which carries on with what it was told before.
#
# ## 5 Where the drift sits

# %%
lab.Picture(analysis.plot.by_quadrant(), "Nearly all of the squared drift is in (A<0, r<1).")

# %%
quadrants = report["ratios"]["current/behavior"]["by_quadrant"]
mass = {name: s["n"] * s["m2"] for name, s in quadrants.items()}
heavy = "A<0,r<1"
lab.say(
    f"{quadrants[heavy]['n']} of {tokens['kept']} tokens hold **{mass[heavy] / sum(mass.values()):.0%}**"
    f" of the drift; {quadrants['A=0']['n'] / tokens['kept']:.0%} of the tokens have A = 0."
)
assert mass[heavy] > 0.95 * sum(mass.values())

# %% [markdown]
# Three consequences. The mass sits on the side where ESS is blind. M2 over all tokens, over those
# with $A \neq 0$ and over the trust-region tokens H are three different numbers; say which one you
# quote. And a wider upper bound (DAPO's clip-higher) changes nothing here.
#
# ### Exercise: which quadrant, in your words?
# Name the quadrant that carries the drift, as the table has it.

# %%
answer = ...
lab.check("reallog-quadrant", answer)

# %% [markdown]
# ## 6 Stale, mismatched, or too many updates?
#
# Drift has three sources: rollouts that are old when they arrive, an engine that computes other
# probabilities than the trainer, and the updates on the batch itself. The lag tells them apart.

# %%
lab.Picture(analysis.plot.by_lag(), "M2 is tiny at lag 0 and rises within the four updates.")

# %%
source = report["attribution"]
lab.say(
    f"M2 at lag 0 is {source['floor_lag0']:.4f} (engine and rounding); staleness adds"
    f" {source['staleness']:.4f}; the updates on the batch add **{source['in_step']:.2f}**."
)
assert source["in_step"] > 100 * (source["floor_lag0"] + source["staleness"])

# %% [markdown]
# ### Exercise: the diagnosis
# Which of these findings names the cause: `staleness-drift`, `engine-mismatch`, `in-step-drift`,
# `weights-not-synced`, `low-tail`, `entropy-collapse`?

# %%
answer = ...
lab.check("reallog-cause", answer)

# %% [markdown]
# ## 7 Would a trust region have helped?
#
# What each objective would do to these very tokens, counted over the whole log:

# %%
shown = ("is", "ppo", "m2po", "m2po_released", "m2po_areal", "gspo", "topr")
lines = ["| objective | tokens dropped | gradient mass kept |", "|---|---|---|"]
for name in shown:
    row = report["objectives"][name]
    lines.append(f"| `{name}` | {row['zero_gradient_fraction']:.1%} | {row['mass_kept']:.0%} |")
lab.say("\n".join(lines))

# %%
m2po, ppo = report["objectives"]["m2po"], report["objectives"]["ppo"]
lab.say(
    f"M2PO masks {m2po['masked']} of {m2po['active']} tokens of H, which takes their M2 from"
    f" {m2po['m2_before']:.1f} to {m2po['m2_after']:.4f}."
)
assert m2po["m2_after"] < 0.04 < m2po["m2_before"]
assert abs(m2po["zero_gradient_fraction"] - ppo["zero_gradient_fraction"]) < 0.01
assert report["objectives"]["dapo"]["zero_gradient_fraction"] == ppo["zero_gradient_fraction"]

logged = {m["name"]: [value for _, value in m["points"]] for m in report["metrics"]}
assert max(logged["clip_ratio/region_mean"]) > 0
assert 250 < logged["grad_norm"][0] < 350

# %% [markdown]
# Here M2PO and the clip drop nearly the same handful of tokens: with so few, all of them far out,
# there is nothing to tell apart. This run had a clip, it was active, and the run collapsed: a mask
# stops a token that has *already* gone too far, and the first update on a batch knows of none. The
# first update of all had a gradient norm of about 300. Hence the advice below: smaller steps, or
# fewer of them on one batch.
#
# What this log cannot say is what another objective would have led to. A what-if is about these
# tokens, not about a run that never was.
#
# ## 8 What the analysis says by itself

# %%
lines = ["| severity | finding | |", "|---|---|---|"]
lines += [f"| {f.severity} | `{f.id}` | {f.title} |" for f in analysis.findings]
lab.say("\n".join(lines))

# %%
fired = {f.id for f in analysis.findings}
assert {"in-step-drift", "low-tail", "negative-side-drift", "moving-without-signal"} <= fired

# %% [markdown]
# ## 9 Now yours
#
# Put a path in place of `None`: a file, a directory, a glob, or several of them. verl, TRL, AReaL,
# slime, NeMo-RL, prime-rl, SkyRL and others are recognised by content. If your framework does not
# log both log-probs, the report names the flag that would.

# %%
mine = None  # for example "runs/my_run/rollout_data"

analysis = analysis if mine is None else m2po_lab.analyze(mine)
lab.say("Figures this log has the numbers for: " + ", ".join(f"`{n}`" for n in analysis.plot.names))

# %% [markdown]
# The same from a shell, with a page of figures to pass around, or as a gate in CI:
#
# ```
# m2po-lab analyze runs/my_run --out report
# m2po-lab analyze runs/my_run --fail-on error
# ```
#
# ## What to watch
#
# | in this order | because |
# |---|---|
# | findings of severity error | a shifted column looks like drift |
# | M2 at lag 0 | the floor: what engine and precision alone do |
# | M2 by lag | stale data, or too many updates? |
# | min d, k1, quadrants | ESS cannot see tokens that are given up |
# | the largest tokens, with their text | a collapse has a story |
#
# **Next**: 07 mixes staleness and engine mismatch on purpose; 02 shows what a clip loses.
#
# ## References
#
# - The run: martingale 0.2.0, Apache-2.0 (`m2po_lab/data/LICENSE.martingale`).
# - Shao et al.: *DeepSeekMath*, [arXiv 2402.03300](https://arxiv.org/abs/2402.03300), 2024. GRPO.
# - Zheng, Zhao, Chen: *Prosperity before collapse*,
#   [arXiv 2510.01161](https://arxiv.org/abs/2510.01161), 2025.
# - Le Roux et al.: *Tapered off-policy REINFORCE*,
#   [arXiv 2503.14286](https://arxiv.org/abs/2503.14286), 2025. Why negatives need care.
