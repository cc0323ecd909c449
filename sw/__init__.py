"""Software: what makes, runs and explains programs."""
