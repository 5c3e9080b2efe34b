"""Reading what a job's own tracker writes: TensorBoard, Weights & Biases, MLflow and Trackio, each from its files.

A reader of a format is a pure function from the bytes of a file to points. It goes on from any place that it has
returned, waits for a record that is not whole yet, and steps over what is none. No tracker's package is needed.
"""
