"""A loop whose state cannot be saved: the first checkpoint fails, and every other."""

import time

import torch

import torchyard


class Stubborn:
    """Has a state when it is attached, and none later."""

    asked = False

    def state_dict(self):
        if self.asked:
            raise RuntimeError("this optimizer has no state to give")
        self.asked = True
        return {}

    def load_state_dict(self, state):
        raise AssertionError("nothing was saved")


model = torch.nn.Linear(2, 1)
data = torch.utils.data.TensorDataset(torch.ones(8, 2))
loader = torch.utils.data.DataLoader(data, batch_size=1)
run = torchyard.attach(model=model, loader=loader, stubborn=Stubborn())
for _ in run.epochs(100_000):
    for (inputs,) in loader:
        loss = model(inputs).sum()
        time.sleep(0.05)
        run.report(loss=loss)
