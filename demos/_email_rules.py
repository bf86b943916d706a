"""Whom the e-mail demo writes to, and the rules of an e-mail as checks in code."""

from __future__ import annotations

from dataclasses import dataclass

RIVALS = ("Nimbusly", "Paperkite")
TONES = {"new": "welcome", "continuing": "thank", "churn-risk": "help"}
"""Segment, and the word without which an e-mail has not its tone."""


@dataclass(frozen=True)
class Customer:
    """One recipient."""

    name: str
    plan: str
    segment: str


CUSTOMERS = (
    Customer("Ana Lopez", "Pro", "new"),
    Customer("Li Wei", "Team", "continuing"),
    Customer("Omar Haddad", "Starter", "churn-risk"),
)


def constraints(customer: Customer) -> list[str]:
    """The rules for *customer* in words, for the roles."""
    return [
        "200 to 300 characters in all",
        f"names the recipient, {customer.name}",
        f"names the current plan, {customer.plan}",
        f"names no competitor: {', '.join(RIVALS)}",
        f"professional, and in the tone for a {customer.segment} customer: says '{TONES[customer.segment]}'",
    ]


def violations(text: str, customer: Customer) -> list[str]:
    """Which rules *text* breaks, in words."""
    broken = {
        f"{len(text)} characters, not 200 to 300": not 200 <= len(text) <= 300,
        f"{customer.name} is not named": customer.name not in text,
        f"the {customer.plan} plan is not named": customer.plan not in text,
        **{f"{rival} is named": rival.casefold() in text.casefold() for rival in RIVALS},
        f"no {TONES[customer.segment]!r} for a {customer.segment} customer": TONES[customer.segment]
        not in text.casefold(),
    }
    return [rule for rule, is_broken in broken.items() if is_broken]
