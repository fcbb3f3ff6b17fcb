"""What is pasted into a drafted repro: tiny models and generated data. It imports nothing of ours."""
