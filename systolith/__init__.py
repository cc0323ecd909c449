"""Systolith's public face: what a user imports."""

from isa.config import PRESETS, Config, preset
from isa.dtypes import DType
from sw.builder import Builder
from sw.compiler import Dense, compile_dense, compile_matmul
from sw.device import Device
from sw.program import Program

__all__ = ["PRESETS", "Builder", "Config", "DType", "Dense", "Device", "Program", "compile_dense", "compile_matmul",
           "preset"]
