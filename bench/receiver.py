"""A webhook receiver on the given port that only responds."""

import asyncio
import sys


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read the header of a request, and respond with 204."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


async def main() -> None:
    async with await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()


asyncio.run(main())
