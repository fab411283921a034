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
# # 01 Importance weights from zero
#
# A policy is being trained. The answers it learns from were sampled a while ago, by an older
# version of itself. Importance weights make up for the difference, at a price. This notebook
# measures the price, and shows what the usual gauge of it cannot see.
#
# **You will be able to**
#
# 1. say what an importance weight corrects, and check that it does;
# 2. read an effective sample size (ESS), and say what a whole answer of weights is worth;
# 3. say why M2PO bounds the second moment M2 and not the KL divergence;
# 4. name the kind of drift to which ESS is blind.
#
# Needs nothing but numpy. Every number below comes out of the cell above it.

# %%
import numpy as np

from m2po_lab import tutorials as lab
from m2po_lab.core import objective, sums
from m2po_lab.core.moments import ess_fraction, m2
from m2po_lab.exactness import bandit, stale_steps
from m2po_lab.tutorials.drawings import weights as draw
from m2po_lab.tutorials.lessons import weights as lesson

lab.theme()

# %% [markdown]
# ## 1 Two policies, one question
#
# One question with five answers, A to E. D is right: reward 1, the others 0. The **old** policy
# $\mu$ sampled; the **new** policy $\pi$ has learned since: the logit of D is 2 nats up.

# %%
log_mu = np.log([0.40, 0.25, 0.15, 0.15, 0.05])
log_pi = lesson.tilted(log_mu, answer=3, nats=2.0)
reward = np.array([0.0, 0.0, 0.0, 1.0, 0.0])

draw.two_policies(log_mu, log_pi)

# %% [markdown]
# The **importance weight** of a sampled answer $a$ is the ratio
#
# $$ r = \frac{\pi(a)}{\mu(a)} = e^{d}, \qquad d = \log\pi(a) - \log\mu(a). $$
#
# It is above 1 where the new policy likes the answer more than the old one did. Averages over old
# samples, weighted by $r$, are averages under the new policy:
#
# $$ \mathbb E_\mu[r\,R] = \sum_a \mu(a)\,\frac{\pi(a)}{\mu(a)}\,R(a) = \mathbb E_\pi[R]. $$
#
# A `TokenBatch` holds what a training framework logs: the log-probs of the sampled tokens under
# both policies, and what they earned. Here, 2000 answers:

# %%
rng = np.random.default_rng(1)
batch = lesson.sample(log_mu, log_pi, reward, (1, 2000), rng)

truth = np.exp(log_pi) @ reward
plain = batch.advantage.mean()
loss, _ = objective("is").loss(batch)
lab.say(
    f"The new policy earns **{truth:.3f}**. The plain mean of the old samples says {plain:.3f},"
    f" the weighted mean {-float(loss):.3f}."
)

# %% [markdown]
# `objective("is")` is the loss without any trust region: minus the mean of $r A$. Its value is the
# importance-weighted estimate, and its gradient is the policy gradient. Every other objective in
# this field changes $r$ in that formula, and gives up some of its truth for less noise.

# %%
assert abs(-float(loss) - truth) < 0.1 < abs(plain - truth)

# %% [markdown]
# ## 2 The price: variance
#
# The weighted mean is right *on average*. Repeat the experiment 2000 times with 200 samples each,
# and move the new policy away from the old one.

# %%
lab.slide(
    lambda nats: draw.spread(
        lesson.estimates(log_mu, lesson.tilted(log_mu, 3, nats), reward),
        f"answer D raised by {nats:g} nats",
    ),
    start={"nats": 2.0},
    nats=(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0),
)

# %% [markdown]
# Orange never leaves its place: the old samples do not know of the new policy. Blue is centred on
# the truth and gets wider the further the policies are apart. Grey is what the same number of fresh
# samples would give.
#
# The **effective sample size** puts the width into one number, from the weights alone (Kong 1992):
#
# $$ \frac{\mathrm{ESS}}{n} = \frac{(\sum_i r_i)^2}{n\sum_i r_i^2} \in (0, 1]. $$

# %%
found = lesson.estimates(log_mu, log_pi, reward)
measured = (found.fresh.std() / found.weighted.std()) ** 2
lab.say(
    f"At 2 nats ESS/n is **{found.ess_fraction:.2f}**: judged by its weights, a sample is worth"
    f" {found.ess_fraction:.0%} of a fresh one. For this reward it is worth {measured:.0%}."
)
assert measured < found.ess_fraction < 0.5

# %% [markdown]
# ESS looks at weights and not at what they multiply. Here the largest weight sits on the only
# answer with a reward, so the truth is worse than the rule of thumb. Use ESS to compare, not to
# promise.
#
# ### Exercise: one token
# The sampler gave a token probability 0.5; the policy in training gives it 0.1. How much is $d^2$,
# in nats²?

# %%
answer = ...
lab.check("weights-token", answer)

# %% [markdown]
# ### Exercise: four weights
# Four samples have the weights 2, 0.5, 0.5 and 1. What is ESS/n?

# %%
answer = ...
lab.check("weights-ess", answer)

# %% [markdown]
# Stuck? `lab.solution("weights-ess")` shows the way.
#
# ## 3 An answer of many tokens
#
# A language model's answer has a weight for every token, and the weight of the whole answer is
# their product, $\prod_t r_t = e^{\sum_t d_t}$. Let every token be drawn from our two policies, half
# a nat apart.

# %%
near = lesson.tilted(log_mu, answer=3, nats=0.5)
lengths = (1, 2, 4, 8, 16, 32, 64, 128)
worth = lesson.worth_of_answers(log_mu, near, lengths)
draw.worth(lengths, worth, token=worth[0])

# %%
lab.say(
    f"A token keeps {worth[0]:.0%} of its worth, an answer of 16 tokens {worth[4]:.0%}, one of 64"
    f" tokens {worth[6]:.0%}."
)
assert worth[0] > 0.9
assert worth[6] < 0.15
assert worth[7] > 2 * worth[0] ** 128

# %% [markdown]
# Worth multiplies. At the right the measured curve leaves the dotted one: with 20,000 answers even
# ESS can no longer be measured, because the answers that matter were never drawn. At thousands of tokens nothing would be left, so PPO, GRPO and M2PO weigh each
# token by its own ratio. That is biased (a token's ratio ignores how likely its prefix has become),
# but usable. GSPO takes the geometric mean over the answer instead. Notebook 05 compares them.
#
# ### Exercise: how long?
# Tokens have ESS/n 0.98 each and are independent. From how many tokens on is an answer worth less
# than half?

# %%
answer = ...
lab.check("weights-length", answer)

# %% [markdown]
# ## 4 How far is far? KL, and why M2
#
# A trust region needs a measure of distance that a mini-batch can estimate. Three candidates, each
# a mean over sampled tokens:
#
# | | estimates | sign on a sample |
# |---|---|---|
# | k1 = mean of $-d$ | KL$(\mu\Vert\pi)$ | any: tokens that went up cancel those that went down |
# | k3 = mean of $e^d - 1 - d$ | the same | at least 0; linear in $\lvert d\rvert$ for $r\to0$, exponential for $r\to\infty$ |
# | M2 = mean of $d^2$ | the second moment of $d$ | at least 0; both directions count alike |
#
# 2000 mini-batches of 64 tokens from the same two policies, half a nat apart:

# %%
found = lesson.mini_batches(log_mu, near)
draw.estimators(found)

# %%
negative = (found["k1"] < 0).mean()
noise = {name: values.std() / values.mean() for name, values in found.items()}
lab.say(
    f"In **{negative:.0%}** of the mini-batches k1 is negative (red), though the divergence is not."
    f" From one mini-batch to the next it varies by {noise['k1']:.0%} of its mean, M2 by"
    f" {noise['m2']:.0%}."
)
assert negative > 0.1
assert min(found["m2"].min(), found["k3"].min()) > 0
assert noise["k1"] > 3 * noise["m2"]

# %% [markdown]
# A bound on k1 would let a mini-batch through whose drift cancels. M2 cannot cancel. And it bounds
# what we pay for: if all ratios lie between $1/R$ and $R$ (M2PO, theorem 5.1),
#
# $$ \mathbb E_\mu\big[(r-1)^2\big] \le R^2\, M_2, \qquad \mathbb E_\mu\lvert d\rvert \le \sqrt{M_2}. $$
#
# Here without sampling noise: a bandit in training, and data that are 0 to 8 updates old.

# %%
steps = stale_steps(bandit(), lags=8)
draw.bound(steps)

# %%
assert all(s.chi_square <= s.ratio_bound**2 * s.second_moment + 1e-12 for s in steps)
lab.say(
    f"At lag 8 M2 is {steps[8].second_moment:.3f}, which allows a variance of"
    f" {steps[8].ratio_bound ** 2 * steps[8].second_moment:.3f}; it is"
    f" {steps[8].chi_square:.3f}."
)

# %% [markdown]
# ## 5 Where ESS is blind
#
# So far an answer was raised. Now move answer E, one sample in twenty, down or up.

# %%
nats = np.arange(-10.0, 7.0).tolist()
curves = lesson.along_tilt(log_mu, 4, nats, ("ess_fraction", "m2", "k3"))
lab.slide(lambda change: draw.blind(nats, curves, change), start={"change": -8.0}, change=nats)

# %%
down = lesson.statistics(
    lesson.population(log_mu, lesson.tilted(log_mu, 4, -8.0)), ("ess_fraction", "m2", "k1", "chi2")
)
lab.say(
    f"Eight nats down, the policy has given E up, and yet ESS/n is **{down['ess_fraction']:.2f}**"
    f" and chi² {down['chi2']:.2f}. M2 is **{down['m2']:.1f}**, k1 {down['k1']:.2f}."
)
assert down["ess_fraction"] > 0.94
assert down["m2"] > 3

# %% [markdown]
# ESS and chi² are made of $\sum r$ and $\sum r^2$. A token that is given up has $r \to 0$: it drops
# out of both sums, and they fall by its share of the samples, however far it falls. Reinforcement
# learning pushes bad tokens down all day long, so this is no corner case: the real run of
# notebook 06 collapses while its ESS stays high.
#
# By hand, in two lines of core:

# %%
d = np.array([[0.0] * 19 + [-8.0]])
twenty = sums(d, np.ones(d.shape, dtype=bool))
lab.say(f"ESS/n {float(ess_fraction(twenty)):.2f}, M2 {float(m2(twenty)):.2f} nats².")

# %% [markdown]
# ### Exercise: who raises the alarm?
# One answer in twenty is given up, 8 nats down. Which of these change by more than 0.1?
# Answer with a set of names: `k1`, `k3`, `ess_fraction`, `chi2`, `m2`.

# %%
answer = ...
lab.check("weights-blind", answer)

# %% [markdown]
# ## What to watch
#
# | number | on policy | it tells | it hides |
# |---|---|---|---|
# | ESS/n | 1 | how much of the data the large weights leave | tokens that were given up |
# | M2, nats² | 0 | how far tokens moved, either way | which way, and how many tokens carry it |
# | k1, nats | 0 | which way the mean went | drift that cancels |
# | min and max of d | 0 | the two tails | how many tokens are out there |
#
# No number here stands alone; `m2po-lab analyze` prints them side by side.
#
# **Next**: 02 shows which tokens a clip loses when data are stale; 04 takes M2PO apart.
#
# ## References
#
# - Zheng, Zhao, Chen: *Prosperity before collapse: how far can off-policy RL reach with stale data
#   on LLMs?* [arXiv 2510.01161](https://arxiv.org/abs/2510.01161), 2025. M2PO.
# - Kong: *A note on importance sampling using standardized weights*, University of Chicago, 1992.
# - Schulman: [*Approximating KL divergence*](http://joschu.net/blog/kl-approx.html), 2020. k1 to k3.
# - Owen: [*Monte Carlo theory, methods and examples*](https://artowen.su.domains/mc/), chapter 9.
