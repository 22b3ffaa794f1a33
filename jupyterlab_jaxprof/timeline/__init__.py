"""What happened in a program, as columns: one model, filled from an XProf trace or an Nsight report."""
