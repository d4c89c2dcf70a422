"""What a token says, and when it is renewed: Kafka's rule as a table."""

import base64

import pytest

from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.oauth.settings import RefreshRule
from featurewatch.kafka.client_config.oauth.token import Token, read_token, renewal_s
from tests.oidc import jwt

NOW_S = 1_000_000.0


def test_a_token_says_its_end_its_begin_and_its_subject() -> None:
    """The claims count; the text never prints."""
    text = jwt({"sub": "watch", "exp": NOW_S + 20, "iat": NOW_S - 1, "client_id": "c"})
    assert read_token(f" {text}\n", "sub", "x", NOW_S) == Token(
        text, NOW_S + 20, NOW_S - 1, "watch"
    )
    assert read_token(text, "client_id", "x", NOW_S).subject == "c"
    assert text not in repr(read_token(text, "sub", "x", NOW_S))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "is not a JSON Web Token"),
        ("secret", "is not a JSON Web Token"),
        ("secret.secret.secret", "is not a JSON Web Token"),
        ("secret.é.secret", "is not a JSON Web Token"),
        (jwt([1]), "is not a JSON Web Token"),
        (jwt({"sub": "secret" * 20_000}), "is not a JSON Web Token"),
        ("a." + base64.urlsafe_b64encode(b"[" * 9000).decode() + ".b", "is not a JSON Web Token"),
        (jwt({"sub": "secret"}), "has no claim exp"),
        (jwt({"sub": "secret", "exp": True}), "claim exp of the token from x is not a time"),
        (jwt({"sub": "secret", "exp": "1"}), "claim exp of the token from x is not a time"),
        (jwt({"exp": NOW_S + 9}), "has no claim sub"),
        (jwt({"exp": NOW_S + 9, "sub": ["secret"]}), "has no claim sub"),
        (
            jwt({"exp": NOW_S - 600, "sub": "secret"}),
            "ended at 1970-01-12T13:36:40Z, 600 s ago: renew it there, or compare the clocks",
        ),
    ],
)
def test_what_is_no_valid_token_is_one_line_without_it(text: str, line: str) -> None:
    """Each says what is missing, and shows nothing of the token."""
    with pytest.raises(TokenError) as raised:
        read_token(text, "sub", "x", NOW_S)
    assert line in str(raised.value)
    assert "secret" not in str(raised.value)


RULE = RefreshRule(0.8, 0.05, 60, 300)


@pytest.mark.parametrize(
    ("lifetime_s", "issued_s", "rule", "chance", "expected_s"),
    [
        (3600, None, RULE, 0.0, 2880),
        (3600, None, RULE, 0.5, 2970),
        # The part of the lifetime counts from when the token was issued.
        (3600, -400, RULE, 0.0, 2800),
        # The buffer before the end comes first.
        (1000, None, RULE, 0.0, 700),
        # Not within the period after it came.
        (400, -10_000, RefreshRule(0.5, 0.0, 60, 300), 0.0, 60),
        # Too short for both: the rest of the lifetime counts alone.
        (20, -100, RULE, 0.0, 16),
        (20, None, RULE, 0.999, 16.999),
    ],
)
def test_the_time_of_renewal_is_that_of_kafka(
    lifetime_s: float, issued_s: float | None, rule: RefreshRule, chance: float, expected_s: float
) -> None:
    """Seconds after the token came."""
    issued_s = None if issued_s is None else NOW_S + issued_s
    token = Token("t", NOW_S + lifetime_s, issued_s, "s")
    assert renewal_s(token, NOW_S, rule, chance) - NOW_S == pytest.approx(expected_s)
