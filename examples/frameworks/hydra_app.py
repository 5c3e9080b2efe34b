"""A training configured by Hydra that knows nothing of TorchYard; `--multirun` trains once for each value.

yard run --launcher python -- python examples/frameworks/hydra_app.py --multirun lr=0.1,0.01
"""

from dataclasses import dataclass
from pathlib import Path

import hydra
import torch
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from torch import nn
from torch.utils.tensorboard import SummaryWriter


@dataclass
class Settings:
    lr: float = 0.01
    steps: int = 50


ConfigStore.instance().store(name="settings", node=Settings)


@hydra.main(version_base=None, config_path=None, config_name="settings")
def main(settings):
    torch.manual_seed(0)
    inputs, targets = torch.randn(256, 8), torch.randn(256, 1)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=settings.lr)
    folder = Path(HydraConfig.get().runtime.output_dir)
    with SummaryWriter(folder) as writer:
        for step in range(settings.steps):
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                writer.add_scalar("loss", loss.item(), step)
    torch.save(model.state_dict(), folder / "model.pt")
    print(f"lr {settings.lr}: loss {loss.item():.4f}, in {folder.name}", flush=True)


if __name__ == "__main__":
    main()
