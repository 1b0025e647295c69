"""The embedded engine: models that run in this machine's CPU, and the cache they are kept in.

catalog      which models there are, where their files lie
fetch        brings a model's file into the cache
gguf         reads what a GGUF file says of itself
constraints  turns a form's constraint into the engine's, and refuses what the engine cannot take
batch        turns many requests into steps of one continuous batch
worker       the process that owns the engine
engine       our side of that process
embedded     the model that agents use
embed        sentence vectors
similarity   the score of captions by their sentence vectors
files        what several processes share
"""
