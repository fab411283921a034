"""CATALOG: every finding, what it tests and what to do; the one table that report and docs read."""

from collections.abc import Mapping

from m2po_lab.findings.finding import Entry

CATALOG: Mapping[str, Entry] = {
    "shift-by-one": Entry(
        "error",
        "Two log-prob columns are off by one token",
        "Pearson's r of the two columns (log-probs from -20 up) with one moved by -1, 0 and +1 "
        "tokens: the best is away from 0, at least .5 and .2 above the unshifted one; or at least "
        "5 % of the rows of 16 tokens or more say so each by itself. The ratio is then not "
        "computable.",
        "Align the columns: logits at t score token t + 1, so one side lacks the shift (or has it "
        "twice). Check labels[1:] against logits[:-1] and whether the prompt's last position is "
        "included.",
        "prime-rl#1525, ms-swift#8427, maxtext#2103",
    ),
    "mask-shifted": Entry(
        "error",
        "The loss mask starts or ends one token off",
        "At least 90 % of the rows have an impossible value at their first (or last) kept token, "
        "and at most 2 % of the tokens between do: an exact 0.0 that another column puts below "
        "-.05, not a log-prob, or two columns more than .5 nats apart. That token of every row is "
        "left out, counted as masked.",
        "Move the mask by one position, or drop the position that has no log-prob (prompt end, "
        "appended EOS).",
        "ms-swift#8196, NeMo-RL index 0, prime-rl position 0",
    ),
    "length-mismatch": Entry(
        "error",
        "A column has more or fewer entries than its row has tokens",
        "Entries are counted against tokens, row by row. Nothing is cut or padded: such rows are "
        "left out as unaligned.",
        "Log every token's own log-prob: an appended EOS has none (give it a mask of 0), and some "
        "engines return one more for the token after the last.",
        "open-instruct#1041 (L-1), TensorRT-LLM#18190 (L+1)",
    ),
    "retokenised": Entry(
        "error",
        "Training encoded the text again and got other tokens",
        "Two id columns of a row neither agree nor contain each other. Such rows are left out as "
        "unaligned.",
        "Pass the sampled token ids to the trainer instead of the decoded text.",
        "Agent-R1#30",
    ),
    "missing-log-probs": Entry(
        "info",
        "No pair of log-prob columns: no ratio can be computed",
        "Fewer than two of behavior, proximal and current log-probs are in the log.",
        "Log the sampler's log-probs and the trainer's, per token.",
        "Most default dumps hold none",
    ),
    "zero-filled-log-probs": Entry(
        "error",
        "Behavior log-probs were filled with 0.0",
        "Runs of at least 2 exact 0.0 (3 where only the current policy contradicts) on kept "
        "tokens, with the other column below -.05 on half of the run or more, or on a fifth of it "
        "and 4 tokens. A single 0.0 may be an honest certainty. Also padding without a mask: 0.0 "
        "in every column at the end (or start) of half of the rows and hardly between, in runs of "
        "8 on average or up to one length. All are excluded.",
        "Mask tokens that the policy did not sample (tool output, observations, padding), and log "
        "missing values as null, not 0.",
        "SkyRL#354, vime#70",
    ),
    "positive-log-probs": Entry(
        "error",
        "Log-probs above 0",
        "Above what rounding explains: 1e-3, for current log-probs 2^-4. A fill value of 1.0 is "
        "common. Excluded.",
        "Keep fill values out of the loss mask (TRL's INVALID_LOGPROB is 1.0), and compute the "
        "log-softmax in float32.",
        "trl#2496, Flash-RL#19",
    ),
    "sentinel-value": Entry(
        "error",
        "Fill values such as -9999 on kept tokens",
        "Log-probs at or below -1000, or exactly -100 or -999. Excluded.",
        "Mask the tokens that have no log-prob, or log null.",
        "quirk list: -9999 and the like",
    ),
    "non-finite": Entry(
        "error",
        "NaN, infinity or null on kept tokens",
        "Counted by column, kind (nan, +inf, -inf, null, absent) and position. Excluded from every "
        "statistic.",
        "Find the first step it occurs in. vLLM returns None or NaN when a sampled token is "
        "outside the returned top log-probs or the logits overflow; -inf is a token that the "
        "trainer masked out.",
        "trl#6166, NeMo-RL#1742, OpenRLHF#1314, verl#721",
    ),
    "empty-rows": Entry(
        "info",
        "Rows without a kept token",
        "Rows whose mask keeps nothing, or all of whose tokens were excluded for their values. "
        "They are in no denominator.",
        "Nothing, if they are padding or dropped samples; they must not enter sequence means "
        "either.",
        "verl#7771, SkyRL#1707, miles#2796",
    ),
    "duplicate-rows": Entry(
        "error",
        "The same rows were logged more than once",
        "Same row id, step, trainer version and content; without ids only a whole file that "
        "repeats another of its step row by row. Never by content alone. Counted once.",
        "Let one rank of each tensor-, context- and pipeline-parallel group write the log.",
        "NeMo-RL worker_mixin.py:592, miles#2581",
    ),
    "repeated-padding": Entry(
        "info",
        "A batch was filled up by repeating rows",
        "The rows at the end of a step repeat earlier rows of it under other ids: two or more of "
        "at least 8 tokens each, or one of 32, at most half of the step. All such ends together "
        "hold more rows than repeat anywhere else, for a policy that is nearly certain repeats "
        "its answers honestly. They are not dropped.",
        "Give padding rows an empty mask: they count twice in every mean and in the loss.",
        "verl-omni#602",
    ),
    "ratio-identically-one": Entry(
        "warning",
        "The current log-probs equal another column bit for bit",
        "At least 99.9 % of the tokens (both exactly 0 not counted) agree to the last bit.",
        "The ratio is 1 by construction, so clip fractions are 0 whatever happens. Log the "
        "log-probs of the forward pass that makes the loss, not a copy; with one update a batch "
        "this is what on-policy means.",
        "minimind#775, AReaL#201, slime#179",
    ),
    "bypass-mode": Entry(
        "info",
        "The proximal log-probs are a copy of the behavior ones",
        "At least 99.9 % of the tokens agree to the last bit.",
        "Engine mismatch and in-step drift cannot be told apart here. To split them recompute the "
        "old log-probs (verl: algorithm.rollout_correction.bypass_mode=False).",
        "verl bypass mode",
    ),
    "low-precision-log": Entry(
        "info",
        "Log-probs lie on the grid of a narrow float",
        "At least 99 % of the non-zero values of a column are exact in bfloat16 (or float16).",
        "The log rounds by up to 2^-8 (bfloat16) or 2^-11 of each value: that is the log's "
        "precision, not the policy's. Convert to float32 before log_softmax, not after.",
        "verl#6280",
    ),
    "negative-lag": Entry(
        "error",
        "Tokens were sampled by a version newer than the trainer's",
        "train_version - version is negative on a kept token.",
        "Versions are off by one, or count different things (updates on one side, steps on the "
        "other): set both from the same counter.",
        "prime-rl#1902, UniRL#310, miles#2581",
    ),
    "lag-jump": Entry(
        "warning",
        "The largest lag jumps",
        "A step's largest lag exceeds those of all steps before (4 or more) by more than 4 and by "
        "more than 4 times their usual change, and is twice the running median of five, plus 2.",
        "Look for a recovery, a stalled actor or a queue without a bound at that step, and cap "
        "the staleness.",
        "AReaL#1388, AReaL#1345",
    ),
    "mixed-versions": Entry(
        "info",
        "Rows span several policy versions",
        "Kept tokens of one row have more than one version. Lag is counted per token.",
        "Nothing, if weights are updated in flight; a per-row version would mislabel part of "
        "these rows.",
        "labs-molt#124, verl#6029, Megatron-LM#3515",
    ),
    "staleness-drift": Entry(
        "warning",
        "Drift grows with lag",
        "M2 at some lag is above .04, its 95 % interval lies above 3 times the lag-0 floor and "
        "above the floor's interval (cells of at least 100 tokens and 8 rows; without lag 0 the "
        "smallest lag is the floor), and the lags are not all within the updates of one rollout "
        "batch (see in-step-drift).",
        "Lower the staleness bound, take fewer updates per rollout, or use a trust region made "
        "for stale data (M2PO, decoupled PPO); see the what-if table for what each would mask.",
        "arXiv 2510.01161; AReaL#482, prime-rl#2674",
    ),
    "in-step-drift": Entry(
        "warning",
        "Drift comes from the updates on one rollout batch",
        "Either current/proximal has M2 above .04 with its 95 % interval above .01; or M2 grows "
        "with lag as for staleness-drift while every trainer version used the newest version "
        "there was and no lag reaches the updates that one rollout batch gets: the trainer "
        "versions in a step, or twice the usual life of a sampler version, or, with a single "
        "version, the updates that rows trained on again link.",
        "Fewer mini-batches or epochs per rollout batch (verl: ppo_epochs, ppo_mini_batch_size; "
        "TRL: num_iterations, steps_per_generation), or a lower learning rate.",
        "arXiv 2510.01161",
    ),
    "engine-mismatch": Entry(
        "warning",
        "Sampler and trainer disagree at lag 0",
        "M2 of the lag-0 tokens, lower end of its 95 % interval, is above .01 (at least 100 "
        "tokens, 8 rows). bfloat16 explains about .002, float16 1e-5.",
        "Same precision on both sides, float32 logits, same attention and sampling kernels, same "
        "temperature; MoE: replay the routing. Correct with TIS or MIS meanwhile.",
        "NeMo-RL#1801, prime-rl#2671; real floors: fp16 3e-6, bf16 1.6e-3",
    ),
    "staleness-not-separable": Entry(
        "info",
        "Staleness and engine mismatch cannot be told apart",
        "There is a ratio, but no kept token with both a version and a trainer version; or M2 is "
        "above .04 and no token has lag 0. A warning without versions where M2 grows with the step "
        "as weights-not-synced has it for lags other than 0.",
        "Log the weight version of every token (or row) and the trainer's.",
        "slime#1781",
    ),
    "confident-disagreement": Entry(
        "error",
        "Tokens the sampler was sure of are impossible to the trainer",
        "At lag 0 a token that the behavior policy gave at least probability .5 is scored more "
        "than 2 nats lower. No rounding does this, so one such token is enough.",
        "Compare weights (is the LoRA merged, did the sync finish?), inputs (special tokens, "
        "position ids, truncation) and precision on the rows named here.",
        "verl#6780, slime#1695, fw-ai/cookbook#540",
    ),
    "weights-not-synced": Entry(
        "error",
        "Lag-0 drift grows with step: the sampler's weights do not follow",
        "Over at least 4 steps the lag-0 M2 rises (rank correlation .5), late over early by 5 "
        "times with separate 95 % intervals, to above .01. Where no token has lag 0 the smallest "
        "lag is judged, as a warning: rank correlation .7, to above .04, and the last third still "
        "1.3 times above the middle, which a learning rate that has warmed up is not.",
        "The version counter moves but the weights do not: check the weight update of the engine "
        "(LoRA adapters, tied embeddings, resume) by comparing a checksum on both sides.",
        "verl#7495, ms-swift#9855, miles#684, slime#1695",
    ),
    "temperature-mismatch": Entry(
        "error",
        "One side is not divided by the temperature",
        "Medians of d in bins of the denominator's log-prob (20 tokens each, robust to outliers): "
        "bins explain at least half of the spread of d, and below -1 the medians have a slope of "
        "at least .1.",
        "Divide the trainer's logits by the sampling temperature, or let the engine return "
        "processed log-probs (vLLM: logprobs_mode=processed_logprobs).",
        "trl#4159, prime-rl#697, NeMo-RL#902, vime#64",
    ),
    "truncated-support": Entry(
        "warning",
        "One side renormalised a truncated support (top-p or top-k)",
        "E[r] is below 1 by at least .01 and 5 standard errors although E[r] = 1 under honest "
        "sampling; at least 98 % of d lie in [log p, 0], and p >= .5 or half of them below -.05.",
        "Sample with top_p=1 and top_k=-1, or renormalise both sides alike; else every sequence "
        "carries a constant bias per token.",
        "trl#6789, trl#7269",
    ),
    "truncated-weights": Entry(
        "warning",
        "Importance weights were clipped before they were logged",
        "At least .2 % of the weights, and 5, equal the largest (or smallest) one exactly.",
        "ESS, the largest weight and the tail index are bounds only. Log log-probs, or the raw "
        "weights.",
        "trl#5231, verl#6806",
    ),
    "rare-outliers": Entry(
        "warning",
        "A handful of tokens carries nearly all of M2",
        "The top 1 % of tokens hold at least 90 % of M2, those carry at least .01, at least 5 of "
        "them are beyond .5 nats, and the median |d| is below .01.",
        "Look at the worst tokens: their text, rank and kernel. Means over all tokens say little "
        "here; mask these tokens (MIS, M2PO) rather than lower the learning rate.",
        "miles#1067, NeMo-RL#1801",
    ),
    "two-populations": Entry(
        "warning",
        "Most tokens agree, a few percent are far off on both sides",
        "At lag 0 (all tokens if lags are unknown): at least 80 % within .06 nats, .5 to 20 % "
        "beyond .5, at least a fifth of those on each side, and fewer in between than beyond.",
        "Typical of expert routing that differs between engines: replay the routing, or raise the "
        "router's precision. A dense model with this picture has rows from other weights.",
        "NeMo-RL#1441, Megatron-LM#4168",
    ),
    "low-tail": Entry(
        "warning",
        "The lower tail dominates, and ESS cannot see it",
        "At least 90 % of sum d^2 is at d <= 0, M2 is above .04, and at least 5 tokens of 5 rows "
        "have d < -.5.",
        "Watch M2, k1 and min d beside ESS and chi2: a ratio near 0 adds nothing to sums of r or "
        "r^2. The policy moves away from its own samples; see negative-side-drift.",
        "real TRL run: M2 4.63 at ESS .94; rllm#760",
    ),
    "high-tail": Entry(
        "warning",
        "The upper tail dominates",
        "M2 is above .04, at least 5 tokens of 5 rows have d > .5, and either 90 % of sum d^2 is "
        "at d > 0, or 25 % with a Pareto k-hat of the weights above .7.",
        "A few weights decide every weighted mean. Truncate them (TIS, cap 2) or mask them (MIS); "
        "with A < 0 PPO does not clip them: use a dual or two-sided clip.",
        "trl#7120; Vehtari et al., arXiv 1507.02646",
    ),
    "negative-side-drift": Entry(
        "warning",
        "The drift sits in tokens that training pushes down",
        "Of sum d^2 at A != 0 at least 75 % is in (A<0, r<1), M2 there is above .04, with at "
        "least 5 tokens of 5 rows beyond .5 nats.",
        "PPO stops these gradients only below 1 - eps. Lower eps_low, weigh negatives less (TOPR, "
        "ASPO), or mask them by M2PO or OPSM.",
        "trl#7120",
    ),
    "clip-below-noise-floor": Entry(
        "warning",
        "The clip range lies inside the noise at lag 0",
        "At least 4 % of lag-0 tokens are outside [1 - eps, 1 + eps] before any update.",
        "The clip removes numerical noise, not drift: widen it or fix the engine mismatch.",
        "RLinf#1534, verl-omni#280",
    ),
    "sequence-product": Entry(
        "warning",
        "Token ratios look fine, their product over a sequence does not",
        "M2 of tokens is at most .04, yet d adds up to more than 8 nats either way (a factor of "
        "3000) in at least 10 % of the rows, and 3.",
        "Do not weigh by the product: use token ratios or the geometric mean (GSPO), whose "
        "thresholds are others.",
        "trl#4772, trl#5814, SkyRL#1665",
    ),
    "position-growth": Entry(
        "warning",
        "Drift grows along the response",
        "Within rows of one version: the later half has the larger mean d^2 in more rows than "
        "chance allows (sign test, p < .005), and at least twice the mean.",
        "Errors accumulate over the sequence: KV-cache precision, position encoding or chunked "
        "prefill differ between engine and trainer.",
        "flat in position when healthy (AknA13)",
    ),
    "length-bias": Entry(
        "warning",
        "Length and lag are related",
        "Correlation of log length and lag over rows, within steps: at least .3 and 4 standard "
        "errors.",
        "Dropping stale rows would drop one kind of length. Correct stale rows (M2PO, TIS) or "
        "raise the staleness bound rather than discard them.",
        "tinker-cookbook#822",
    ),
    "entropy-collapse": Entry(
        "warning",
        "Entropy falls towards 0",
        "Over at least 4 steps entropy falls from above .05 to below .3 nats and below a quarter "
        "of its start: step by step (rank correlation -.7), or over 8 steps such that the second "
        "half stays there. Without an entropy column the trainer's metric stands in, else the mean "
        "of -log-prob of the samples from 200 tokens a step.",
        "M2 and ESS look better while a run dies this way. Raise eps_high (DAPO), protect "
        "high-entropy tokens, or add an entropy bonus.",
        "verl#4818, verl#2738",
    ),
    "no-learning-signal": Entry(
        "warning",
        "Every advantage is 0",
        "All known advantages are 0 in more than half of the steps, over 32 rows (else info). "
        "Without advantages the trainer's metrics stand in, over 4 steps: the share of groups with "
        "equal rewards is 1, that of mixed groups 0, or the largest and smallest advantage are 0.",
        "Groups with equal rewards teach nothing: filter them (DAPO's dynamic sampling), change "
        "the difficulty, or check the reward function.",
        "TRL frac_reward_zero_std",
    ),
    "moving-without-signal": Entry(
        "warning",
        "Log-probs drift across updates that had nothing to learn from",
        "Tokens whose lag spans only trainer versions with every advantage 0 (for "
        "current/proximal: steps without advantage): M2 above .01 and its 95 % interval above the "
        "lag-0 floor.",
        "Something else moves the weights: optimizer momentum, weight decay, KL or entropy terms, "
        "or advantages that are not the ones logged.",
        "real TRL run: steps 4-7 and 12-15",
    ),
    "over-budget": Entry(
        "info",
        "M2 of the active tokens exceeds the budget",
        "Mean d^2 over (A>0, r>1) and (A<0, r<1) is above the budget (--budget), from 100 tokens "
        "of 8 rows.",
        "The budget is the optimizer's, not proof of failure: compare what M2PO would mask with "
        "what a clip would.",
        "arXiv 2510.01161",
    ),
    "collapse-risk": Entry(
        "warning",
        "The run may collapse",
        "Does not fire. On 291 toy runs, 83 of which collapse, no rule fitted on one recipe warned "
        "of most collapses on the other with under 10 % false alarms; M2 of the active tokens has "
        "an area under the ROC of .49 (.33-.69) on the held-out transformer.",
        "See low-tail, negative-side-drift, entropy-collapse and moving-without-signal; watch the "
        "reward of fresh answers.",
        "docs/early_warning.md",
    ),
    "groups-broken": Entry(
        "warning",
        "Group ids do not group",
        "From 16 rows: every group of a step has a single row, or a group holds several prompts.",
        "Advantages relative to a group are wrong then: give all samples of a prompt one id.",
        "Search-R1#39, Search-R1#88",
    ),
}
"""Id -> entry, in the order of the report."""
