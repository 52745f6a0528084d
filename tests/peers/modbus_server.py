"""A pymodbus server as a meter, or as several on one bus.

usage: modbus_server.py tcp PORT | serial DEVICE

Says `ready`, then takes lines on standard input: `SLAVE FUNCTION ADDRESS WORD...` sets registers
(function 3 holding, 4 input) and says `done`. Registers that no line has set do not exist.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import asyncio
import sys

from pymodbus import datastore
from pymodbus.server import StartAsyncSerialServer, StartAsyncTcpServer

SLAVES = range(1, 41)


def make_slave() -> tuple[object, dict[int, datastore.ModbusSparseDataBlock]]:
    blocks = {function: datastore.ModbusSparseDataBlock({65000: 0}) for function in (3, 4)}
    return datastore.ModbusSlaveContext(hr=blocks[3], ir=blocks[4]), blocks


async def take_orders(blocks: dict[int, dict[int, datastore.ModbusSparseDataBlock]]) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    print("ready", flush=True)
    while line := await reader.readline():
        slave, function, address, *words = map(int, line.split())
        # the context counts registers from 1
        values = {address + 1 + i: word for i, word in enumerate(words)}
        blocks[slave][function].values.update(values)
        print("done", flush=True)


async def serve(kind: str, place: str) -> None:
    slaves = {number: make_slave() for number in SLAVES}
    contexts = {number: slave for number, (slave, _) in slaves.items()}
    context = datastore.ModbusServerContext(contexts, single=False)
    orders = take_orders({number: blocks for number, (_, blocks) in slaves.items()})
    common = {"context": context, "ignore_missing_slaves": True}  # a bus has no one to say no
    if kind == "tcp":
        server = StartAsyncTcpServer(address=("127.0.0.1", int(place)), **common)
    else:
        server = StartAsyncSerialServer(port=place, baudrate=9600, **common)
    await asyncio.gather(server, orders)


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:3]))
