"""Serves societies: the command line, the HTTP endpoint, and the model servers behind them."""
