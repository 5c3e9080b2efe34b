"""Components of a run, made from its recipe."""

from dataclasses import dataclass

from torchyard.recipe import Recipe
from trainer import randomness
from trainer.data import DATA, DataSets
from trainer.data.sampler import TrainSampler
from trainer.distributed.world import World
from trainer.loop.metrics_window import CorrectCounter
from trainer.models import MODELS, check_model
from trainer.numerics import compute
from trainer.optimization.ema import MovingAverage
from trainer.optimization.objective import objective_for
from trainer.optimization.optimizers import OPTIMIZERS
from trainer.optimization.schedules import SCHEDULES, Factor
from trainer.strategies import STRATEGIES, Strategy, TrainingTask


@dataclass(frozen=True, kw_only=True)
class Components:
    """Everything that a run is made of."""

    recipe: Recipe
    data: DataSets
    strategy: Strategy
    factor: Factor
    sampler: TrainSampler
    average: MovingAverage | None
    correct: CorrectCounter

    @property
    def world(self) -> World:
        return self.strategy.world


def build(recipe: Recipe, world: World) -> Components:
    """Make the components; weights are the same on all ranks, later chance is each rank's own."""
    compute.switch(recipe)
    strategy = STRATEGIES[recipe.strategy.name](recipe.strategy, world)
    # Data of the job's own may be split by chance: as one on all ranks, and in a run that goes on.
    randomness.seed_all(randomness.derive(recipe.seed, "data"))
    data = DATA[recipe.data.name](recipe.data)
    check_model(recipe, data.shape)
    sampler = _sampler(recipe, strategy, len(data.train))  # type: ignore[arg-type]
    randomness.seed_all(recipe.seed)
    model = compute.shaped(MODELS[recipe.model.name](recipe.model, data.shape), recipe)
    if not model.training:  # as transformers and others hand over pretrained ones; single layers keep their mode
        model.train()
    correct = CorrectCounter(objective_for(data.shape))
    task = TrainingTask(
        objective=correct.counting(),
        make_optimizer=lambda parameters: OPTIMIZERS[recipe.optim.name](recipe.optim, parameters),
        numerics=compute.numerics_for(recipe, world.device),
        share_size=_pass_size(recipe, strategy) // strategy.shares.count,
        sample_shape=data.shape.sample,
        clip_norm=recipe.clip_norm,
    )
    strategy.prepare(model, task)
    strategy.seed(recipe.seed)
    return Components(
        recipe=recipe,
        data=data,
        strategy=strategy,
        factor=SCHEDULES[recipe.schedule.name](recipe.schedule),
        sampler=sampler,
        average=None if recipe.ema_decay is None else MovingAverage(strategy.modules(), recipe.ema_decay),
        correct=correct,
    )


def _pass_size(recipe: Recipe, strategy: Strategy) -> int:
    """Samples of all shares in one pass."""
    if recipe.global_batch_size is None:
        return strategy.pass_size(recipe.batch_size)
    return recipe.global_batch_size // recipe.accumulate


def _sampler(recipe: Recipe, strategy: Strategy, samples: int) -> TrainSampler:
    return TrainSampler(
        samples=samples,
        size=_pass_size(recipe, strategy),
        shares=strategy.shares,
        accumulate=recipe.accumulate,
        drop_last=recipe.drop_last,
        seed=recipe.seed,
    )
