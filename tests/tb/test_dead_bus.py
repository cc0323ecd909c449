"""A bus that never answers: the core says so, and nothing hangs."""

import numpy as np
import pytest
from test_programs import CONFIG, IMAGE_BYTES, MAX_CYCLES, WATCHDOG, encode, ld

from isa.registers import Trap
from sw.errors import TrapError
from tb.driver import RtlCore


@pytest.mark.parametrize("dead", ["read", "write"])
def test_dead_bus(dead):
    """A bus that never answers: the watchdog reports it, and that the bus owes answers."""
    core = RtlCore(CONFIG, watchdog=WATCHDOG, latency=9)
    if dead == "read":
        core.rtl.configure(latency=9, dead="read")
    back = encode("st", pn=4, n2=8, x_s2=1, d_addr=1024, d_sp=8, d_s2=1, wait_mask=1 << 3, wait3=1)
    if dead == "write":
        core.rtl.configure(latency=9, dead="write")
    with pytest.raises(TrapError) as error:
        core.run_queues({"dma0": [ld()], "dma1": [back]}, np.zeros(IMAGE_BYTES, np.uint8), MAX_CYCLES)
    assert error.value.trap == Trap.WATCHDOG and not error.value.bus_idle
    with pytest.raises(TrapError, match="soft reset"):
        core.soft_reset()
    core.close()
