"""What a figure needs beyond one training run: trains, evaluates model and baselines on the same prompts, stores."""
