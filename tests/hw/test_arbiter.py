"""The memory arbiter against a model of its contract: classes, round robin, patience."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.arbiter import PATIENCE, Arbiter
from tests.hw.datapath import generator

CYCLES = 3000


def model(clients):
    """Generator: give it (request, urgent) as lists of bool, get the winner or None."""
    last, refused, winner = -1, [0] * clients, None
    while True:
        request, urgent = yield winner
        classes = ([i for i in range(clients) if request[i] and refused[i] == PATIENCE],
                   [i for i in range(clients) if request[i] and urgent[i]], [i for i in range(clients) if request[i]])
        pool = next((c for c in classes if c), [])
        winner = min(pool, key=lambda i: (i <= last, i), default=None)
        refused = [min(refused[i] + 1, PATIENCE) if request[i] and i != winner else 0 for i in range(clients)]
        last = last if winner is None else winner


@pytest.mark.parametrize("clients,busy,pressing", [(2, 0.9, 0.5), (4, 0.7, 0.2), (9, 0.95, 0.3), (9, 0.2, 0.5)])
def test_against_model(clients, busy, pressing):
    rng, dut, reference = generator(f"arbiter {clients} {busy}"), Arbiter(clients), model(clients)
    next(reference)
    served = np.zeros(clients, int)

    async def bench(ctx):
        waits = np.zeros(clients, int)
        request = np.zeros(clients, bool)
        for _ in range(CYCLES):
            request |= rng.random(clients) < busy  # a request stays until it is granted
            urgent = rng.random(clients) < pressing
            ctx.set(dut.request, sum(int(r) << i for i, r in enumerate(request)))
            ctx.set(dut.urgent, sum(int(u) << i for i, u in enumerate(urgent)))
            winner = reference.send((list(request), list(urgent)))
            assert ctx.get(dut.grant) == (0 if winner is None else 1 << winner)
            waits = np.where(request, waits + 1, 0)
            if winner is not None:
                served[winner] += 1
                request[winner] = False
                waits[winner] = 0
            assert waits.max() <= PATIENCE + clients - 1
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
    assert served.min() > CYCLES * busy / clients / 4


def test_one_client_needs_no_clock():
    dut = Arbiter(1)

    async def bench(ctx):
        for request in (0, 1, 0):
            ctx.set(dut.request, request)
            await ctx.delay(1e-9)
            assert ctx.get(dut.grant) == request

    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()
