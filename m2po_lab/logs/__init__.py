"""Logs of rollouts and training: any framework's files in, token batches out."""
