"""FastAPI dependencies of the routes: the house, and the account that calls."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from nlsom_serve.app.house import House
from nlsom_serve.app.keys import Account


def _house(request: Request) -> House:
    house: House = request.app.state.house
    return house


def _account(request: Request) -> Account:
    account: Account = request.scope["state"]["account"]
    return account


TheHouse = Annotated[House, Depends(_house)]
TheAccount = Annotated[Account, Depends(_account)]
