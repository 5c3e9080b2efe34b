"""A Lightning Trainer with three loggers on top of trackers; prints what it gave to each, for the test to compare."""

import json

import lightning
from lightning.pytorch.callbacks import LearningRateMonitor
from lightning.pytorch.loggers import CSVLogger, Logger, MLFlowLogger, TensorBoardLogger
from lightning_trainer import Classifier, make_data
from torch.utils.data import DataLoader


class Recorder(Logger):
    """Keeps what every logger is given."""

    name = version = "recorder"

    def __init__(self):
        self.given = {}

    def log_metrics(self, metrics, step=None):
        for name, value in metrics.items():
            self.given.setdefault(name, []).append((step, float(value)))

    def log_hyperparams(self, params, *args):
        pass


class Logging(Classifier):
    """One that gives its loggers something by itself."""

    def on_train_epoch_end(self):
        for logger in self.loggers:
            logger.log_metrics({"own": 2.0 * self.current_epoch}, step=self.global_step)


if __name__ == "__main__":
    lightning.seed_everything(0)
    recorder = Recorder()
    loggers = [recorder, TensorBoardLogger("logs"), CSVLogger("logs"), MLFlowLogger(tracking_uri="sqlite:///own.db")]
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        devices=1,
        logger=loggers,
        callbacks=[LearningRateMonitor("step")],
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = make_data(256)
    trainer.fit(Logging(0.001), DataLoader(data, batch_size=32, shuffle=True), DataLoader(data, batch_size=256))
    print("given " + json.dumps(recorder.given), flush=True)
