"""Rows of the tables as frozen records, by area; JSON columns are read through their models here and nowhere else."""
