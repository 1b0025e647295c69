"""An MCP server for tests: over stdio, or, with a port as argument, over HTTP on loopback."""

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("test")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def shout(text: str, mark: str = "!") -> str:
    """Says it louder."""
    return text.upper() + mark


@server.tool()
def fail(text: str) -> str:
    """Fails."""
    raise ToolError(f"cannot {text}")


@server.tool()
def two(a: str, b: str) -> str:
    """Needs two."""
    return a + b


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="streamable-http", port=int(sys.argv[1]))
    else:
        server.run(transport="stdio")
