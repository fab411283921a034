"""Every objective once more, as its formula is written, in the plainest torch.

Independent of m2po_lab: padded tensors, min and clamp as the papers print them, Python loops where
a paper has a loop, gradients by autograd. Safe numerics are not aimed at. Columns are (B, T)
float64; each function returns the loss of each token, and the tokens that the denominator counts
where those are not all valid ones.
"""

from types import SimpleNamespace

import torch
from torch import clamp, exp, log, maximum, minimum, where

INF = float("inf")


def columns(values):
    """Tensors by their letter in METHODS; l carries the gradient."""
    t = {k: torch.as_tensor(v) for k, v in values.items()}
    m = t["keep"]
    c = SimpleNamespace(m=m, A=t["advantage"].double() * m, H=t["entropy"].double())
    c.first_A = t["advantage"].double()[:, :1]
    c.l = t["current_logp"].double().clone().requires_grad_(True)
    c.mu, c.p = t["behavior_logp"].double(), t["proximal_logp"].double()
    c.d, c.log_rho, c.log_b = (where(m, x, 0.0) for x in (c.l - c.mu, c.l - c.p, c.p - c.mu))
    c.r, c.rho, c.b = exp(c.d), exp(c.log_rho), exp(c.log_b)
    c.L = m.sum(1, keepdim=True)
    return c


def row_mean(c, x):
    return (x * c.m).sum(1, keepdim=True) / c.L.clamp(min=1) * torch.ones_like(x)


def row_sum(c, x):
    return (x * c.m).sum(1, keepdim=True) * torch.ones_like(x)


def pg(w, c):
    return -w.detach() * c.A * c.l


def clip(r, adv, low, high, top=INF):
    """PPO: the larger of two losses; for A < 0 at most -top A."""
    loss = maximum(-r * adv, -clamp(r, low, high) * adv)
    return where(adv < 0, minimum(loss, -top * adv), loss) if top < INF else loss


def ppo(c, eps_low, eps_high, c_=INF):
    return clip(c.r, c.A, 1 - eps_low, 1 + eps_high, c_)


def dual_clip(c, /, eps_low, eps_high, **k):
    return ppo(c, eps_low, eps_high, k["c"])


def two_sided(c, eps_low, eps_high, delta):
    kept = minimum(clamp(c.r, max=delta) * c.A, clamp(c.r, 1 - eps_low, 1 + eps_high) * c.A)
    return -kept


def gspo(c, eps_low, eps_high):
    return clip(exp(row_mean(c, c.d)), row_mean(c, c.A), 1 - eps_low, 1 + eps_high)


def gspo_token(c, eps_low, eps_high):
    s = exp(row_mean(c, c.d)).detach() * exp(c.l - c.l.detach())
    return clip(s, c.A, 1 - eps_low, 1 + eps_high)


def gmpo(c, eps_low, eps_high):
    sign = torch.sign(c.A)
    wide = sign * minimum(sign * c.d, sign * clamp(c.d, -eps_low, eps_high))
    return -row_mean(c, c.A) * exp(row_mean(c, wide))


def vespo(c, k_pos, lam_pos, k_neg, lam_neg):
    log_s = row_sum(c, c.d)
    up = exp(lam_pos + k_pos * log_s - lam_pos * exp(log_s))
    down = exp(lam_neg + k_neg * log_s - lam_neg * exp(log_s))
    return pg(where(c.A >= 0, up, down), c)


def minpro(c, eps_low, eps_high, **k):
    low = torch.ones_like(c.r)
    for i, row in enumerate(c.r.detach()):
        for t in range(len(row)):
            before = row[:t][c.m[i, :t]]
            low[i, t] = before.min() if len(before) else 1.0
    if k["clip"] == "weight":
        return pg(clamp(c.r * low, 1 - eps_low, 1 + eps_high), c)
    if k["clip"] == "product":
        return clip(c.r * low, c.A, 1 - eps_low, 1 + eps_high)
    return low * clip(c.r, c.A, 1 - eps_low, 1 + eps_high)


def cispo(c, eps_low, eps_high):
    return pg(clamp(c.r, 1 - eps_low, 1 + eps_high), c)


def sapo(c, tau_pos, tau_neg):
    tau = where(c.A > 0, torch.full_like(c.A, tau_pos), tau_neg)
    return -4 / tau * torch.sigmoid(tau * (c.r - 1)) * c.A


def maspo(c, sigma, alpha, beta, sigma_max):
    mass = sigma * exp(c.mu) ** -alpha
    mass = mass if sigma_max is None else clamp(mass, sigma, max(sigma, sigma_max))
    width = where(c.A > 0, mass * (1 + beta * c.A), mass / (1 - beta * c.A))
    active = ((c.A > 0) & (c.r > 1)) | ((c.A < 0) & (c.r < 1))
    gate = where(active, exp(-((c.r - 1) ** 2) / (2 * width**2)), 1.0)
    return -gate.detach() * c.r * c.A


def pulled(c, strength):
    return -c.A * c.l + strength / 2 * c.d**2


def r2vpo(c, lam):
    return -(c.r * c.A - lam * (c.r - 1) ** 2)


def corrected(c, weight, k):
    """A weight without gradient on PPO of rho, or on the policy gradient."""
    if not k["proximal"]:
        return pg(weight, c)
    return weight.detach() * clip(c.rho, c.A, 1 - k["eps_low"], 1 + k["eps_high"])


def correction(c, k):
    return c.log_b if k["proximal"] else c.d


def tis(c, cap, **k):
    return corrected(c, clamp(exp(correction(c, k)), max=cap), k)


def tis_sequence(c, cap, **k):
    return corrected(c, clamp(exp(row_sum(c, correction(c, k))), max=cap), k)


def icepop(c, low, high, **k):
    b = exp(correction(c, k))
    return corrected(c, where((b >= low) & (b <= high), b, 0.0), k)


def mis(c, level, metric, low, high, cap, denominator, **k):
    d = correction(c, k).detach()
    terms = {"ratio": d, "k1": -d, "k2": d**2 / 2, "k3": exp(d) - 1 - d}[metric]
    reduce = {
        "token": lambda x: x,
        "sequence_product": lambda x: row_sum(c, x),
        "sequence_geometric": lambda x: row_mean(c, x),
        "sequence_max": lambda x: where(c.m, x, -INF).amax(1, keepdim=True) * torch.ones_like(x),
    }
    value = reduce[level](terms)
    value = exp(value) if metric in ("ratio", "k1") else value
    inside = (value <= high) & ((value >= low) | (metric in ("k2", "k3")))
    own = reduce["token" if level == "sequence_max" else level](d)
    weight = exp(own) if cap is None else clamp(exp(d), max=cap)
    loss = corrected(c, where(inside, weight, 0.0), k)
    return loss, c.m if denominator == "valid" else c.m & inside


def topr(c, level):
    d = c.d if level == "token" else row_sum(c, c.d)
    return pg(where(c.A > 0, 1.0, clamp(exp(d), max=1.0)), c)


def decoupled_ppo(c, cap, action, eps_low, eps_high):
    weight = {
        "mask": where(c.b <= cap, c.b, 0.0),
        "clamp": clamp(c.b, max=cap),
        "none": torch.ones_like(c.b),
    }[action]
    return weight * clip(c.rho, c.A, 1 - eps_low, 1 + eps_high)


def opsm(c, delta, eps_low, eps_high, anchor, denominator):
    drift = row_mean(c, -(c.d if anchor == "behavior" else c.log_rho)).detach()
    accepted = ~((c.A < 0) & (drift > delta))
    loss = where(accepted, ppo(c, eps_low, eps_high), 0.0)
    return loss, c.m if denominator == "valid" else c.m & accepted


def minirl(c, eps_low, eps_high, cap):
    gone = ((c.A > 0) & (c.rho > 1 + eps_high)) | ((c.A < 0) & (c.rho < 1 - eps_low))
    return pg(where(gone, 0.0, clamp(c.r, max=cap)), c)


def dppo_tv(c, delta, delta_low, cap):
    gap = exp(c.l) - exp(c.mu)
    low = delta if delta_low is None else delta_low
    gone = ((c.A > 0) & (gap > delta)) | ((c.A < 0) & (gap < -low))
    return pg(where(gone, 0.0, clamp(c.r, max=cap)), c)


def dppo_kl(c, delta, delta_low, cap):
    pi, mu = exp(c.l), exp(c.mu)
    kl = mu * log(mu / pi) + (1 - mu) * log((1 - mu) / (1 - pi))
    low = delta if delta_low is None else delta_low
    gone = ((c.A > 0) & (pi > mu) & (kl > delta)) | ((c.A < 0) & (pi < mu) & (kl > low))
    return pg(where(gone, 0.0, clamp(c.r, max=cap)), c)


def stapo(c, tau_p, entropy_quantile, quantile_of, eps_low, eps_high):
    rare = c.m & (c.A > 0) & (exp(c.l) < tau_p)
    pool = c.H[rare if quantile_of == "rare" else c.m]
    edge = torch.quantile(pool, entropy_quantile) if len(pool) else torch.tensor(0.0)
    keep = ~(rare & (edge > c.H))
    return where(keep, ppo(c, eps_low, eps_high), 0.0), c.m & keep


def aspo(c, eps_low, eps_high, cap, eps_low_entropy, eps_high_entropy, entropy_quantile):
    eps = torch.full_like(c.r, eps_low_entropy)
    for i, row in enumerate(c.H):
        if c.L[i]:
            edge = torch.quantile(row[c.m[i]], entropy_quantile)
            eps[i][row > edge] = eps_high_entropy
    low, high = (eps if e is None else e for e in (eps_low, eps_high))
    gone = ((c.A > 0) & (c.r > 1 + high)) | ((c.A < 0) & (c.r < 1 - low))
    weight = clamp(where(c.A < 0, c.r, 1 / c.r), max=cap)
    return pg(where(gone, 0.0, weight), c)


def bapo(c, /, low_start, low_max, high_start, high_max, low_step, high_step, target_ratio, **k):
    def enough(low, high):
        used = where(c.A >= 0, clamp(c.r, max=high), clamp(c.r, min=low)) * c.A * c.m
        return used.clamp(min=0).sum() >= target_ratio * -used.clamp(max=0).sum()

    low, high = low_start, high_start
    while not enough(low, high) and low < low_max and low_step > 0:
        low = min(low + low_step, low_max)
    while not enough(low, high) and high < high_max and high_step > 0:
        high = min(high + high_step, high_max)
    return clip(c.r, c.A, low, high, k["c"])


def vcpo(c, cap, base_ess):
    return pg(clamp(exp(row_sum(c, c.d)), max=cap), c)


def kl_cov(c, fraction, coef):
    a, cur = c.A[c.m], c.l.detach()[c.m]
    cov = torch.full_like(c.A, -INF)
    cov[c.m] = (a - a.mean()) * (cur - cur.mean())
    chosen = torch.zeros_like(c.m).flatten()
    k = min(int(c.m.sum()), max(1, int(c.m.sum() * fraction)))
    chosen[cov.flatten().argsort(descending=True, stable=True)[:k]] = True
    return -c.r * c.A + where(chosen.view(c.m.shape), coef * c.d.abs(), 0.0)


def remix(c, eps_low, eps_high, center, kl_coef):
    around = c.b if center == "proximal" else torch.ones_like(c.b)
    low, high = around - eps_low, around + eps_high
    loss = maximum(-c.r * c.A, -minimum(maximum(c.r, low), high) * c.A)
    return loss + kl_coef * (1 / c.rho - 1 + c.log_rho)


def region(c):
    d = c.d.detach()
    return c.m & (((c.A > 0) & (d > 0)) | ((c.A < 0) & (d < 0)))


def largest_first(square, among):
    places = sorted(among.nonzero().tolist(), key=lambda ij: float(square[tuple(ij)]))
    return places[::-1]


def m2po(c, budget):
    square, keep, left = c.d.detach() ** 2, c.m.clone(), region(c)
    for place in map(tuple, largest_first(square, region(c))):
        if square[left].mean() <= budget:
            break
        keep[place] = left[place] = False
    return where(keep, -c.r * c.A, 0.0)


def m2po_all_tokens(c, budget):
    square, keep = c.d.detach() ** 2, c.m.clone()
    for place in map(tuple, largest_first(square, region(c))):
        if square[keep].mean() < budget:
            break
        keep[place] = False
    return where(keep, -c.r * c.A, 0.0)


def m2po_areal(c, budget, eps_low, eps_high, cap):
    square, selected = c.log_b**2, c.m.clone()
    for place in map(tuple, largest_first(square, c.m)[: max(int(c.m.sum()) - 1, 0)]):
        if square[selected].mean() < budget:
            break
        selected[place] = False
    if eps_low is None:
        return where(selected, -c.r * c.A, 0.0), selected
    inside = selected & (c.b <= (INF if cap is None else cap))
    loss = c.b * clip(c.rho, c.A, 1 - eps_low, 1 + eps_high)
    return where(inside, loss, 0.0), selected


def m2po_released(c, budget, miniclip_low, miniclip_high):
    sign, r = c.first_A, c.r.detach()
    among = c.m & (((sign > 0) & (r > 1 + 1e-12)) | ((sign < 0) & (r < 1 - 1e-12)))
    v, low, high = (c.d.detach() ** 2)[among].sort()[0], 0.0, 1e5
    if len(v) and float(v.mean()) > budget + 1e-12:
        running, n = v.cumsum(0), len(v)
        cap = 0.0
        for k in range(n):
            if (v[k] - 1e-12) * (n - k - 1) + running[k] >= budget * n - 1e-12:
                cap = 0.0 if k == 0 else float(v[k - 1] - 1e-12) ** 0.5
                break
        low, high = (float(exp(torch.tensor(x))) for x in (-cap, cap))
    low = low if miniclip_low is None else min(low, 1 - miniclip_low)
    high = high if miniclip_high is None else max(high, 1 + miniclip_high)
    return clip(c.r, c.A, low, high)


FORMULAS = {
    "is": lambda c: -c.r * c.A,
    "reinforce": lambda c: -c.l * c.A,
    "ppo": ppo,
    "dapo": ppo,
    "dr_grpo": ppo,
    "dual_clip": dual_clip,
    "two_sided": two_sided,
    "gspo": gspo,
    "gspo_token": gspo_token,
    "gmpo": gmpo,
    "vespo": vespo,
    "minpro": minpro,
    "cispo": cispo,
    "sapo": sapo,
    "maspo": maspo,
    "dro": lambda c, beta: pulled(c, beta),
    "kimi": lambda c, tau: pulled(c, tau),
    "r2vpo": r2vpo,
    "tis": tis,
    "tis_sequence": tis_sequence,
    "icepop": icepop,
    "mis": mis,
    "topr": topr,
    "decoupled_ppo": decoupled_ppo,
    "opsm": opsm,
    "minirl": minirl,
    "dppo_tv": dppo_tv,
    "dppo_kl": dppo_kl,
    "stapo": stapo,
    "aspo": aspo,
    "bapo": bapo,
    "vcpo": vcpo,
    "kl_cov": kl_cov,
    "remix": remix,
    "m2po": m2po,
    "m2po_all_tokens": m2po_all_tokens,
    "m2po_areal": m2po_areal,
    "m2po_released": m2po_released,
}
"""Name -> function of the columns and the parameters. Clip-Cov draws, and is tested by itself."""


def aggregate(how, loss, m, counts, max_length):
    """One number from the losses of tokens, row by row; counts of the host replace the batch's."""
    rows = [(x[k].sum(), int(n.sum())) for x, k, n in zip(loss, m.valid, m.counted, strict=True)]
    total = sum(x for x, _ in rows)
    n_rows = counts.rows or max(sum(n > 0 for _, n in rows), 1)
    if how == "token_mean":
        return total / (counts.tokens or max(sum(n for _, n in rows), 1))
    if how == "sequence_sum":
        return total / n_rows
    if how == "constant":
        return total / (n_rows * max_length)
    return sum(x / max(n, 1) for x, n in rows) / n_rows


def loss_and_gradient(name, values, how, params, counts, max_length=None):
    c = columns(values)
    found = FORMULAS[name](c, **params)
    loss, counted = found if isinstance(found, tuple) else (found, c.m)
    loss = where(c.m, loss, 0.0)
    value = aggregate(how, loss, SimpleNamespace(valid=c.m, counted=counted), counts, max_length)
    (slope,) = torch.autograd.grad(value, c.l, allow_unused=True)
    return float(value.detach()), torch.zeros_like(c.l) if slope is None else slope
