"""The hardware, in Amaranth: arithmetic, memories, engines, DMA and the core. Imports `isa` and nothing else of ours."""
