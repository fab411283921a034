"""What it takes to run verl without an accelerator, for tests: not for training.

`VERL_PLATFORM=cpu` and
`VERL_USE_EXTERNAL_MODULES=full_scale.cpu_support.register,full_scale.verl_plugin`.
"""
