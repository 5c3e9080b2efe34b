"""Optimization: objectives, optimizers, learning rate schedules, averaged weights."""
