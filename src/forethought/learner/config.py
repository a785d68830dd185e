"""What a learner is made of: sizes of its network, settings of its updates. Needs neither JAX nor NumPy."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class NetworkConfig(BaseModel):
    """Sizes of the actor-critic; the defaults are the paper's (C.2)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cell_embedding: int = Field(default=16, ge=1)
    """Width of each embedding table of the grid's ids."""
    cell_features: int = Field(default=32, ge=1)
    """Width that the concatenated embeddings of a cell are projected to."""
    convolutions: int = Field(default=2, ge=0)
    """Number of 3x3 convolutions over the grid."""
    channels: int = Field(default=32, ge=1)
    """Channels of each convolution."""
    feature_units: int = Field(default=64, ge=1)
    """Width of the layer over the features that have no place in the grid."""
    observation_units: int = Field(default=512, ge=1)
    """Width of the observation's embedding."""
    fuse_units: int = Field(default=512, ge=1)
    """Width of the layer that joins observation and goal."""
    width: int = Field(default=256, ge=2)
    """Width of the transformer; even."""
    blocks: int = Field(default=2, ge=1)
    """Transformer blocks."""
    heads: int = Field(default=4, ge=1)
    """Attention heads; a divisor of `width`."""
    memory: int = Field(default=64, ge=1)
    """Earlier steps that a step can attend to."""
    gate_bias: float = 2.0
    """Initial value of the gates' biases; the larger, the closer a block starts to the identity."""
    feedforward: int = Field(default=256, ge=1)
    """Inner width of the feed-forward layers."""
    head_units: int = Field(default=512, ge=1)
    """Width of the hidden layers of the actor's and the critic's head."""
    head_layers: int = Field(default=2, ge=0)
    """Hidden layers of each head."""
    compute_dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of the matrix products; parameters, normalisation, softmax and losses stay in float32."""

    @model_validator(mode="after")
    def _check(self) -> "NetworkConfig":
        if self.width % self.heads:
            raise ValueError(f"heads is {self.heads}, but must divide width, which is {self.width}")
        if self.width % 2:
            raise ValueError(f"width is {self.width}, but must be even (positions are pairs of sine and cosine)")
        return self


class PPOConfig(BaseModel):
    """Settings of proximal policy optimisation; the defaults are the paper's (C.3)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rollout_length: int = Field(default=256, ge=1)
    """Steps that each environment takes between two updates."""
    minibatches: int = Field(default=8, ge=1)
    """Parts that the environments are split into; must divide their number."""
    epochs: int = Field(default=1, ge=1)
    """Passes over a rollout."""
    window: int = Field(default=64, ge=1)
    """Steps that gradients flow back through; a divisor of `rollout_length`."""
    clip: float = Field(default=0.2, gt=0)
    """Largest change of an action's probability ratio that is rewarded."""
    value_clip: float = Field(default=0.2, gt=0)
    """Largest change of a value estimate that is rewarded."""
    discount: float = Field(default=0.999, ge=0, le=1)
    """Discount factor of one step."""
    gae_lambda: float = Field(default=0.97, ge=0, le=1)
    """Decay of generalised advantage estimation."""
    value_coefficient: float = Field(default=0.5, ge=0)
    """Weight of the value loss."""
    entropy_coefficient: float = Field(default=0.005, ge=0)
    """Weight of the entropy bonus; with subroutine calls of the penalty in its place (C.4)."""
    learning_rate: float = Field(default=2e-4, gt=0)
    """Adam's step size, constant."""
    adam_epsilon: float = Field(default=1e-5, gt=0)
    """Adam's epsilon."""
    max_gradient_norm: float = Field(default=1.0, gt=0)
    """Global norm that gradients are clipped to."""
    bootstrap_at_time_limit: bool = False
    """Whether running into the step limit adds the discounted value of the last state to the last reward."""

    @model_validator(mode="after")
    def _check(self) -> "PPOConfig":
        if self.rollout_length % self.window:
            raise ValueError(f"window is {self.window}, but must divide rollout_length, which is {self.rollout_length}")
        return self
