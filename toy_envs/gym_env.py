"""The bandits as Gymnasium environments, for people and libraries that know that interface.

Importing this module registers them, so `gymnasium.make("toy_envs.gym_env:m2po_lab/Chain-v0")`
needs nothing else. An episode is one answer; the group-wise training of `toy_envs.train` does not
go through here.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toy_envs.chain import Bandit, Chain, ContextualBandit

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise ImportError(
        "toy_envs.gym_env needs gymnasium; install it with: pip install 'm2po-lab[toy]'"
    ) from error


class BanditEnv(gymnasium.Env[np.int64, np.int64]):
    """One answer to one random prompt, token by token.

    The observation is the state's number, the action an arm. The reward is 0 until the last token,
    then that of the whole answer. `info` holds the prompt and the tokens so far.

    Args:
        bandit: the task; the chain by default.
    """

    def __init__(self, bandit: Bandit | None = None) -> None:
        """Make the spaces."""
        self.bandit = bandit or Chain()
        self.observation_space = spaces.Discrete(self.bandit.states)
        self.action_space = spaces.Discrete(self.bandit.arms)
        self._prompt = np.empty((0, 0), np.int64)
        self._state = np.empty(0, np.int64)
        self._tokens: list[int] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Draw a prompt.

        Args:
            seed: starts the environment's generator anew; the same one gives the same prompts.
            options: "prompt", the token ids of the prompt to answer instead of a random one.

        Returns:
            The first state, and the prompt in `info`.
        """
        super().reset(seed=seed)
        given = (options or {}).get("prompt")
        if given is None:
            self._prompt = self.bandit.prompts(self.np_random, 1)
        else:
            self._prompt = self._checked(np.asarray(given))
        self._state = self.bandit.first_state(self._prompt)
        self._tokens = []
        return self._state[0], self._info()

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Choose the next token.

        Args:
            action: an arm.

        Returns:
            Next state (the same one after the last token), reward, whether the answer is complete,
            False, and `info`.

        Raises:
            ValueError: no such arm, or the answer is complete already.
        """
        if not self.action_space.contains(action):
            raise ValueError(f"action {action} is not an arm; they are 0 to {self.bandit.arms - 1}")
        position, length = len(self._tokens), self.bandit.answer_length
        if not len(self._state) or position == length:
            raise ValueError("there is no answer to go on with; call reset() first")
        self._tokens.append(int(action))
        done = position + 1 == length
        reward = 0.0
        if done:
            reward = float(self.bandit.reward(self._prompt, np.array([self._tokens]))[0])
        else:
            arm = np.array([self._tokens[-1]])
            self._state = self.bandit.next_state(self._prompt, position, self._state, arm)
        return self._state[0], reward, done, False, self._info()

    def _checked(self, prompt: NDArray[np.int64]) -> NDArray[np.int64]:
        if prompt.shape != (self.bandit.prompt_length,):
            raise ValueError(
                f"options['prompt'] has shape {prompt.shape}; a prompt of {self.bandit.name} has "
                f"{self.bandit.prompt_length} token ids"
            )
        return prompt[None]

    def _info(self) -> dict[str, Any]:
        return {"prompt": self._prompt[0].copy(), "tokens": tuple(self._tokens)}


gymnasium.register("m2po_lab/Chain-v0", entry_point="toy_envs.gym_env:BanditEnv")
gymnasium.register(
    "m2po_lab/OneStep-v0",
    entry_point="toy_envs.gym_env:BanditEnv",
    kwargs={"bandit": ContextualBandit()},
)
