"""What happens to the whole when parts of it are killed, filled up, fed with nonsense, or run for hours.

In CI each test takes a few tries; `scripts/endurance.sh` runs them with the full numbers.
"""
