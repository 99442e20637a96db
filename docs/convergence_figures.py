#!/usr/bin/env python3
"""Prints the tables of docs/convergence.md:  python3 docs/convergence_figures.py

Exact recursions on small dense matrices, and for Table 2 a simulation with a fixed seed; standard library only. A round
is a list of groups of ranks 0..7; workers that are in no group keep their own value.
"""

import random
from math import gcd, inf, lcm, sqrt

N = 8
BETA = 0.9
ALL = [list(range(8))]
RACKS = [[0, 1, 2, 3], [4, 5, 6, 7]]
NOBODY = []
SCHEDULES = {
    "all in every iteration (BSP)": [ALL],
    "hypercube of pairs": [[[i, i | bit] for i in range(8) if not i & bit] for bit in (1, 2, 4)],
    "all in every 4th, nobody in between": 3 * [NOBODY] + [ALL],
    "all in every 8th, nobody in between": 7 * [NOBODY] + [ALL],
    "rack averages, all in every 2nd": [RACKS, ALL],
    "rack averages, all in every 4th": 3 * [RACKS] + [ALL],
    "rack averages, all in every 8th": 7 * [RACKS] + [ALL],
    "rotating delegates": [
        [[t, 4 + t]] + [[i for i in rack if i % 4 != t] for rack in RACKS] for t in range(4)
    ],
}
CENTRED = [[(i == j) - 1 / N for j in range(N)] for i in range(N)]  # I - J


def average_rows(groups, a):
    """W a, in a new matrix."""
    a = [row[:] for row in a]
    for group in groups:
        mean = [sum(column) / len(group) for column in zip(*(a[i] for i in group))]
        for i in group:
            a[i] = mean[:]
    return a


def transposed(a):
    return [list(column) for column in zip(*a)]


def average_columns(groups, a):
    """a W."""
    return transposed(average_rows(groups, transposed(a))) if groups else a


def squared(a):
    """||a||_F^2"""
    return sum(x * x for row in a for x in row)


def norm(a):
    """||a||_2 by power iteration on a' a."""
    b, v, value = transposed(a), [1.0 / (3 + i * i) for i in range(N)], 0.0
    for _ in range(60):
        w = [sum(x * y for x, y in zip(row, v)) for row in a]
        v = [sum(x * y for x, y in zip(row, w)) for row in b]
        length = sqrt(sum(x * x for x in v))
        if length < 1e-24:
            return 0.0
        value, v = sqrt(length), [x / length for x in v]
    return value


def products(schedule, start, step):
    """W_t W_{t-1} ... - J (step -1) or ... W_{t+1} W_t - J (step +1), one factor more each time, until it vanishes."""
    a, t = CENTRED, start
    while True:
        a = average_columns(schedule[t], a) if step < 0 else average_rows(schedule[t], a)
        if squared(a) < 1e-10:
            return
        yield a
        t = (t + step) % len(schedule)


def mixing(schedule):
    """T, cycle_norm, S, B."""
    t = len(schedule)
    cycle = CENTRED
    for groups in schedule:
        cycle = average_rows(groups, cycle)
    s = sum(squared(a) for start in range(t) for a in products(schedule, start, -1)) / N / t
    b = max(sum(norm(a) for a in products(schedule, start, step)) for start in range(t) for step in (-1, 1))
    return t, norm(cycle), s, b


def momentum(schedule, turn, period):
    """S of the parameters with momentum, in units of the effective learning rate; turn(t): is the momentum averaged?"""
    xx, xm, mm = ([[0.0] * N for _ in range(N)] for _ in range(3))
    steps = period * (2 + 80 // period)
    total = 0.0
    for t in range(steps):
        groups = schedule[t % len(schedule)]
        for i in range(N):  # m becomes BETA m + noise, x becomes x - m
            for j in range(N):
                mm[i][j] = BETA * BETA * mm[i][j] + CENTRED[i][j]
        old = xm
        xm = [[BETA * old[i][j] - mm[i][j] for j in range(N)] for i in range(N)]
        xx = [[xx[i][j] - BETA * (old[i][j] + old[j][i]) + mm[i][j] for j in range(N)] for i in range(N)]
        if groups:
            xx = average_columns(groups, average_rows(groups, xx))
            xm = average_rows(groups, xm)
            if turn(t):
                xm = average_columns(groups, xm)
                mm = average_columns(groups, average_rows(groups, mm))
        if t >= steps - period:
            total += sum(xx[i][i] for i in range(N))
    return total / period / N * (1 - BETA) ** 2


def by_iteration(schedule, k):
    """One part of the momentum is averaged in every k-th iteration: S of each kind of part."""
    t = len(schedule)
    return [momentum(schedule, lambda now, p=p: now % k == p, lcm(t, k)) for p in range(gcd(t, k))]


def by_cycle(schedule, k):
    """One part is averaged throughout every k-th cycle."""
    t = len(schedule)
    return momentum(schedule, lambda now: now // t % k == 0, t * k)


def mode(clear_x, clear_m, sharpness):
    """One component of the disagreement: what is left of x when averages clear x and m at these iterations, under noise
    and under a gradient that always differs by 1, for sharpness = learning rate * curvature. Effective units."""
    xx = xm = mm = x = m = 0.0
    period = len(clear_x)
    for _ in range(2 + 400 // period):
        noise = frozen = 0.0
        for t in range(period):
            a, b = 1 - sharpness, sharpness
            xx, xm, mm = (
                a * a * xx - 2 * a * BETA * xm + BETA * BETA * mm + 1,
                a * b * xx + (a * BETA - b * BETA) * xm - BETA * BETA * mm - 1,
                b * b * xx + 2 * b * BETA * xm + BETA * BETA * mm + 1,
            )
            x, m = a * x - BETA * m - 1, b * x + BETA * m + 1
            if clear_x[t]:
                xx = xm = x = 0.0
            if clear_m[t]:
                mm = xm = m = 0.0
            noise += xx
            frozen += x * x
    return noise / period * (1 - BETA) ** 2, frozen / period * (1 - BETA) ** 2


def equal_bytes(p, k):
    """Two racks: p - 1 rack averages and one of all, with one idle round per k others, which pays for averaging the
    momentum in every k-th cycle; k = 0: never. Noise, noise in a sharp direction, frozen differences."""
    active = (p - 1) * "r" + "a"
    active *= lcm(p, k) // p if k else 1
    cycle = "".join(("i" if k and n % k == 0 else "") + kind for n, kind in enumerate(active))
    result = []
    for sharpness in (0, 2):
        total = [0.0, 0.0]
        for dimension, kinds in ((6, "ra"), (1, "a")):  # inside the racks; between them
            clear = [kind in kinds for kind in cycle]
            never = [False] * len(clear)
            clear_m = clear + never * (k - 1) if k else never
            for n, value in enumerate(mode(clear * max(k, 1), clear_m, sharpness)):
                total[n] += dimension * value / N
        result += total
    return result[0], result[2], result[1]


def stable_until(p):
    """The least sharpness at which local momentum diverges if x is averaged in every p-th iteration: |(F^p)_mm| > 1."""
    for n in range(1, 3800):
        h, x, m = n / 1000, 0.0, 1.0
        for _ in range(p):
            x, m = (1 - h) * x - BETA * m, h * x + BETA * m
        if abs(m) > 1:
            return h
    return inf


def simulate(schedule, eta, sigma, zeta, iterations=480, runs=24):
    """f_i(x) = x^2 / (1 + x^2) + b_i x with b_i = +-zeta, so L = 2 and f* = 0, from x = 1.2: the mean of |grad f|^2 at
    the mean model, and of the disagreement V."""
    noise = random.Random(1)
    total = disagreement = 0.0
    for _ in range(runs):
        x = [1.2] * N
        for t in range(iterations):
            mean = sum(x) / N
            total += (2 * mean / (1 + mean * mean) ** 2) ** 2
            disagreement += sum((y - mean) ** 2 for y in x) / N
            x = [
                y - eta * (2 * y / (1 + y * y) ** 2 + (zeta if i % 2 else -zeta) + noise.gauss(0, sigma))
                for i, y in enumerate(x)
            ]
            for group in schedule[t % len(schedule)]:
                value = sum(x[i] for i in group) / len(group)
                for i in group:
                    x[i] = value
    return total / runs / iterations, disagreement / runs / iterations


def theorem(s, b, eta, sigma, zeta, iterations=480):
    """The right sides of (4) and (5) for the same problem."""
    disagreement = (eta * (sigma * sqrt(s) + b * zeta) / (1 - 2 * eta * b)) ** 2
    start = 1.44 / 2.44
    return 2 * start / (eta * iterations) + 2 * eta * sigma**2 / N + 4 * disagreement, disagreement


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def header(*cells):
    row(*cells)
    row(*("---" for _ in cells))


def main():
    print("Table 1\n")
    header("N = 8", "T", "cycle_norm", "S", "S with overlap", "B", "bound on S", "bound on B")
    figures = {}
    for name, schedule in SCHEDULES.items():
        t, rho, s, b = mixing(schedule)
        figures[name] = s, b
        s_bound = (1 - 1 / N) * (1.5 * (t - 1) + t * rho**2 / (1 - rho**2))
        b_bound = 2 * (t - 1) + t * rho / (1 - rho)
        overlap = s + 1 - 1 / N
        row(name, f"{t}", f"{rho:.3f}", f"{s:.4f}", f"{overlap:.4f}", f"{b:.2f}", f"{s_bound:.2f}", f"{b_bound:.2f}")

    print("\nTable 2\n")
    header("eta, sigma, zeta", "schedule", "mean V", "(5)", "mean of squared gradient", "(4)")
    for eta, sigma, zeta in ((0.02, 2.0, 0.0), (0.05, 2.0, 0.0), (0.02, 0.5, 0.5)):
        for name in ("hypercube of pairs", "rack averages, all in every 8th"):
            gradient, disagreement = simulate(SCHEDULES[name], eta, sigma, zeta)
            gradient_bound, disagreement_bound = theorem(*figures[name], eta, sigma, zeta)
            values = f"{disagreement:.5f}", f"{disagreement_bound:.5f}", f"{gradient:.4f}", f"{gradient_bound:.4f}"
            row(f"{eta}, {sigma}, {zeta}", name, *values)

    print("\nTable 3\n")
    periods = "2nd / 4th / 8th"
    header("beta = 0.9", "no momentum", "local", "averaged", periods + " iteration", periods + " cycle", "at equal eta")
    for name, schedule in SCHEDULES.items():
        plain = figures[name][0]
        if plain == 0:
            continue
        t = len(schedule)
        local = momentum(schedule, lambda now: False, t)
        averaged = momentum(schedule, lambda now: True, t)
        iterations = [by_iteration(schedule, k) for k in (2, 4, 8)]
        if "all in" in name:  # parts that never meet the round of all: no better than local
            assert all(abs(max(parts) - local) < 1e-5 for parts in iterations)
        row(
            name, f"{plain:.4f}", f"{local:.4f}", f"{averaged:.4f}",
            " / ".join(f"{sum(parts) / len(parts):.4f}" for parts in iterations),
            " / ".join(f"{by_cycle(schedule, k):.4f}" for k in (2, 4, 8)),
            f"{local / plain / (1 - BETA) ** 2:.1f}, {averaged / plain / (1 - BETA) ** 2:.1f}",
        )  # fmt: skip

    print("\nTable 4\n")
    header("p = 2 / 4 / 8", "noise", "noise, eta lambda = 2", "differences that stay")
    treatments = {"local": 0, "rotating, K = 8": 8, "rotating, K = 4": 4, "rotating, K = 2": 2, "averaged": 1}
    for name, k in treatments.items():
        columns = zip(*(equal_bytes(p, k) for p in (2, 4, 8)))
        row(name, *(" / ".join(f"{value:.4f}" for value in column) for column in columns))

    print("\nTable 5\n")
    periods = (1, 2, 3, 4, 8, 16)
    header("p", *(str(p) for p in periods))
    limits = [stable_until(p) for p in periods]
    row("diverges from eta lambda =", *("never" if limit == inf else f"{limit:.2f}" for limit in limits))


if __name__ == "__main__":
    main()
