"""What every part stands on: types, blocks, threads, seeds and hints."""
