"""What a figure needs beyond one training run: trains, compares on the same prompts, stores every array."""
