"""The embedded engine: models that run on this machine's CPU, and the cache of their files.

catalog      the known models and the paths of their files
fetch        downloads a model's file into the cache
gguf         reads the header of GGUF files
constraints  translates a form's constraint for the engine, and refuses unsupported ones
batch        schedules requests into steps of one continuous batch
worker       the process that owns the engine
engine       the client of that process
embedded     the language model that agents use
embed        sentence vectors
similarity   scores captions by sentence vectors
files        hashing, atomic writes and file locks
"""
