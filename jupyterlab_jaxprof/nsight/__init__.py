"""The cell under Nsight Systems, in a clean process with the notebook's variables."""
