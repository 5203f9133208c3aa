"""What every part stands on: types, blocks, threads, seeds, hints and summaries."""
