"""M2PO inside verl 0.9.1: `VERL_USE_EXTERNAL_MODULES=full_scale.verl_plugin`.

Importing this package registers the loss modes (`MODES`) and the engines that solve M2PO's mask
over the whole optimizer mini-batch. verl itself is not changed. See `M2POLossConfig` for settings.
"""

import os
from importlib.metadata import version

from full_scale import VERL
from full_scale.verl_plugin import engine, losses
from full_scale.verl_plugin.config import M2POLossConfig
from full_scale.verl_plugin.modes import MODES

__all__ = ["MODES", "M2POLossConfig"]

if version("verl") != VERL:
    raise ImportError(
        f"full_scale.verl_plugin hooks into engines of verl {VERL}, and verl {version('verl')} is "
        f'installed: pip install "verl[verl-core,math]=={VERL}"'
    )
losses.register()
engine.register()
os.environ.setdefault("VERL_ENGINE_VENDOR", engine.VENDOR)
