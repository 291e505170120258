"""Most that settings of several figures may ask for."""

MOST_STARTS = 10**5  # of a search: days
MOST_PROMPTS = 10**7  # at once, in memory
