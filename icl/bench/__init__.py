"""Speed, measured as ratios: the things compared take turns in one process, medians are quoted."""
