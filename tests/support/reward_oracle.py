"""Rewards of a drawn model, place by place in plain Python: an oracle for `reward_draws`."""

import numpy as np


def best_kin(seen):
    """The group of a place by what predicts the seen ones best: a function of the place."""
    wide = len(next(iter(seen))) == 3
    choices = (lambda i: i[2], lambda i: i[:2]) if wide else (lambda i: i[0], lambda i: i[1])

    def error(choice):
        total = 0.0
        for place, value in seen.items():
            others = [seen[i] for i in seen if i != place]
            kin = [seen[i] for i in seen if i != place and choice(i) == choice(place)]
            total += (value - np.mean([*kin, np.mean(others)])) ** 2
        return total

    return min((*choices, lambda _: 0), key=error)


def unknown_rewards(means, observed, settings):
    """Rewards of which only these means were observed, so often or not at all, place by place.

    A function that draws them all with a generator.
    """
    seen = {i: means[i] for i in np.ndindex(*observed.shape) if observed[i]}
    low, high, kin = settings.reward_low, settings.reward_high, best_kin(seen)
    noisy, kappa = settings.rewards == "bounded", 0.0
    if noisy:  # of two sizes, as only sums are known
        single = sum(observed[i] * (seen[i] - low) * (high - seen[i]) for i in seen)
        single /= sum(observed[i] - 1 for i in seen)
        between, free, reached = 0.0, 0, 0.0
        for group in {kin(i) for i in seen}:
            members = [i for i in seen if kin(i) == group]
            n, m = np.array([[observed[i], seen[i]] for i in members]).T
            between += n @ (m - n @ m / n.sum()) ** 2
            free += len(members) - 1
            reached += n.sum() - (n**2).sum() / n.sum()
        excess = between - free * single
        kappa = np.clip(single * reached / excess, 1.0, 100.0) if excess > 0 else 100.0

    atoms = list(seen) + ([] if low is None else [low, high])
    visits = [observed[i] if i in seen else 0.5 for i in atoms]
    shapes = [n * (1 + kappa) / (n + kappa) if n > 0.5 else n for n in visits]
    members = {
        group: [j for j, i in enumerate(atoms) if i in seen and kin(i) == group]
        for group in {kin(place) for place in np.ndindex(*observed.shape)}
    }

    def drawn(rng):
        weight, own = rng.gamma(shapes), {}

        def mean(i):
            if not isinstance(i, tuple):
                return i
            if not noisy:
                return seen[i]
            x = (seen[i] - low) / (high - low)
            return low + (high - low) * rng.beta(observed[i] * x, observed[i] * (1 - x))

        def other(place):
            group = kin(place)
            own.setdefault(group, rng.exponential())
            inside = members[group]
            total = weight[inside].sum()
            if not inside or rng.random() * (own[group] + total) >= total:
                inside, total = list(range(len(atoms))), weight.sum()
            return mean(atoms[rng.choice(inside, p=weight[inside] / total)])

        values = np.zeros(observed.shape)
        for i in np.ndindex(*observed.shape):
            if i not in seen:
                values[i] = other(i)
            elif noisy:
                share = rng.beta(observed[i], kappa)
                values[i] = share * mean(i) + (1 - share) * other(i)
            else:
                values[i] = seen[i]
        return values

    return drawn
