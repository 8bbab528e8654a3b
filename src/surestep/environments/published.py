"""Settings that several published experiments share."""

# "More for Less" (IJCAI 2023): the same for its three benchmarks.
PAPER_DELTA = 0.1
PAPER_EPISODES = (
    *(1, 2, 5, 8, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
    *(10_000, 20_000, 50_000, 100_000),
)

# Laroche et al. (2019), on Gridworld and Random MDPs alike.
SPIBB_N_WEDGES = (5, 7, 10, 15, 20, 30, 50, 70, 100)

# Scholl et al. (2022), on Wet Chicken and Random MDPs alike.
SCHOLL_N_WEDGES = (3, 7, 10, 20, 50)
