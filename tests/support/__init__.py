"""What tests share: worlds, logs, oracles and strategies."""
