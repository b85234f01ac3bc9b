"""`--where`: what an expression chooses, and that an odd one is refused."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.input.where import Conditions, parse_condition
from rwq_cli.output.json_text import indented, json_error, json_text

DATA = json.dumps(
    {
        "tenant": {"id": 3, "name": "Müller & Co"},
        "size": 100,
        "price": 0.10,
        "kind": "img-resize",
        "at": "2026-01-02T03:04:05Z",
        "number": "3",
        "version": "1.10",
        "items": [{"sku": 7}, {"sku": "8"}],
        "ok": True,
        "failed": False,
        "nothing": None,
        "empty": "",
        "": "no name",
        "odd key": 1,
        "a.b": 2,
        'say "hi"\\': 3,
        "0": "zero",
        "schlüssel": 4,
        "zero": 0,
    }
).encode()


def holds(data: bytes, *expressions: str) -> bool:
    return Conditions([parse_condition(text) for text in expressions])(data)


HOLD = [
    *("tenant.id=3", ".tenant.id=3", "tenant.id==3", "tenant.id=3.0", "tenant.id=30e-1"),
    *(" tenant.id = 3 ", "tenant.id\t=\t3", "tenant.id!=4", "tenant.id>2"),
    *("tenant.id>=3", "tenant.id<=3", "tenant.id<3.5", "size>099", "size<1e3", "price=0.1"),
    *("kind=img-resize", 'kind="img-resize"', "kind='img-resize'", "kind~^img", "kind~'^img'"),
    *('tenant.name="Müller & Co"', r'tenant.name="M\u00fcller & Co"', "tenant.name~r & C"),
    *("tenant.name~Mü.ler", "at>2026-01-01", "at<2026-01-03T", "number=3", 'number="3"'),
    *("number~^3$", "tenant.id~^3$", "version=1.10", "version!=1.1", "items[0].sku=7"),
    *("items[1].sku=8", ".items[0]['sku']=7", 'items[0]["sku"]=7', "ok", "ok=true"),
    *("!failed", "failed=false", "failed!=true", "nothing=null", "!nothing", "!missing"),
    *("missing=null", "missing!=3", "tenant.id.x!=3", "items[2]=null", "items.x=null"),
    *('empty=""', "empty", '""="no name"', "zero", '"odd key"=1', "['odd key']=1"),
    *("'a.b'=2", '["a.b"]=2', r'"say \"hi\"\\"=3', "0=zero", "schlüssel=4", "tenant", "items"),
    *("tenant!=3", "tenant[0]=null", "ok!=1", "kind>img", "kind<=img-resize"),
]


@pytest.mark.parametrize("text", HOLD)
def test_an_expression_that_holds(text: str) -> None:
    assert holds(DATA, text)
    assert not holds(b"not JSON", text)


HOLD_NOT = [
    *("tenant.id=4", 'tenant.id="3"', "tenant.id!=3", "tenant.id>3", "tenant.id<3"),
    *("tenant.id='3'", "tenant=3", "tenant~id", "items~sku", "items=7", "tenant.id.x=3"),
    *("number=3.0", "number>2", "number<4", "version=1.1", "kind=img", "kind~^resize"),
    *("kind~IMG", "kind>100", "kind<100", "size>ab", "size<ab", "size>'9'", "at>2027"),
    *("missing", "missing=3", "missing<3", "missing~.", "missing=''", "nothing", "failed"),
    *("!ok", "!zero", "!empty", "!tenant", "ok=1", "ok='true'", "ok~true", "nothing~null"),
    *("nothing='null'", "empty=null", "items[2].sku=7", "items[0]=7", "tenant[0]=3"),
    *("items['0'].sku=7", "a.b=2", "[0]=1", ".=3", ".~x", "!."),
]


@pytest.mark.parametrize("text", HOLD_NOT)
def test_an_expression_that_does_not_hold(text: str) -> None:
    assert not holds(DATA, text)


def test_several_conditions_must_all_hold() -> None:
    assert holds(DATA, "tenant.id=3", "size>99", "tenant.id<4", "items[1].sku=8", "items[0].sku=7")
    assert not holds(DATA, "tenant.id=3", "size>100")
    assert not holds(DATA, "tenant.id=4", "size>99")
    assert not holds(DATA, "items[0].sku=7", "items[1].sku=7")


FORMS = [
    (b"3", ".=3"),
    (b" 3\n", ". = 3"),
    (b'"text"', ".~^text$"),
    (b"null", "!."),
    (b"true", "."),
    (b"[1, [2, 3]]", "[1][0]=2"),
    (b"[1, [2, 3]]", ".[1][1]=3"),
    (b"[]", "[0]=null"),
    (b'{"a": 1}', "a=1"),
    (b'{"a": 1}', "[0]!=1"),
    (b'{"b": {"a": 1}, "b": {"a": 2}}', "b.a=2"),
    (rb'{"\u0061": "\u00e9"}', "a=é"),
    (b'{"a": "\xc3\xa9"}', "a=é"),
    (b'{"a": -0}', "a=0"),
    (b'{"a": 1e400}', "a>1e399"),
    (b'{"a": 1e400}', "a<1e401"),
    (b'{"a": 18446744073709551617}', "a=18446744073709551617"),
    (b'{"a": 18446744073709551617}', "a!=18446744073709551616"),
    (b'{"a": 18446744073709551617}', "a>18446744073709551616"),
    (b'{"a": 9007199254740993}', "a!=9007199254740992.0"),
    (b'{"a": 0.1000000000000000055511151231257827}', "a!=0.1"),
    (b'{"a": 1' + b"0" * 10_000 + b"}", "a=1e10000"),
    (b"[" + b"0," * 5000 + b"5]", "[5000]=5"),
    # Half of a surrogate pair is no text, but many encoders write it.
    (rb'{"a": 1, "b": "\ud83d"}', "a=1"),
    (rb'{"a": "x\ud83d", "\udfff": 2}', "a~^x"),
    (rb'{"a": "\\ud83d \ud83d\ude00"}', r"a~ud83d .$"),
]


@pytest.mark.parametrize(("data", "text"), FORMS, ids=[text for _, text in FORMS])
def test_json_of_every_form(data: bytes, text: str) -> None:
    assert holds(data, text)


NOT_JSON = [
    *(b"", b" ", b"text", b"{", b"{'a': 1}", b'{"a": 1,}', b'{"a": 1} x', b"[1 2]", b"01", b"+1"),
    *(b"NaN", b"Infinity", b"-Infinity", b'{"b": NaN, "a": 1}', b'{"a": 1, "b": Infinity}'),
    *(b'\xef\xbb\xbf{"a": 1}', b'{"a": 1, "b": "\xff"}', b'{"a": 1, "\xff": 2}', b"\xff"),
    *(rb'{"a": 1, "b": "\q"}', rb'{"a": 1, "b": "\ud800", "c": NaN}'),
    *(b'{"a": 1, "b": "\x01"}', b'{"a": 1, "b": ["\xc0\x80"]}', b'[0, {"a": 1}, "\xed\xa0\x80"]'),
    *(b"[" * 100_000, b'{"a": 1, "b": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    *(b'{"a":' * 100_000, b'{"a": 1, "b": ' + b'{"b":' * 50_000 + b"1" + b"}" * 50_001),
]


@pytest.mark.parametrize(
    "text", ["a=1", "a!=2", "!x", "!a", ".!=1", "!.", "[0]!=1", "[1].a!=2", "[0]=null"]
)
def test_data_that_is_not_json_never_matches(text: str) -> None:
    assert [data[:40] for data in NOT_JSON if holds(data, text)] == []


def test_large_data_is_read() -> None:
    rows = b",".join([b'{"a":1,"b":[1.5,"x"]}'] * 100_000)
    assert holds(b'{"tenant":{"id":3},"rows":[' + rows + b"]}", "tenant.id=3", "rows[999].b[1]=x")
    assert not holds(b'{"tenant":{"id":3},"rows":[' + rows + b"}", "tenant.id=3")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Half of a surrogate pair is not JSON here.
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)


def is_meant(target: Any, value: Any) -> bool:
    """Whether a test for a scalar value holds for what is at its path."""
    if value is None or isinstance(value, bool):
        return target is value or target == json.dumps(value)
    if isinstance(value, int | float) and isinstance(target, bool | str):
        return target == json.dumps(value) and isinstance(target, str)
    return bool(target == value)


@given(VALUES, st.lists(st.sampled_from(["a", "b", 0, 1]), max_size=3), VALUES, st.booleans())
def test_values_are_found_as_a_decoder_finds_them(
    document: Any, path: list[str | int], other: Any, ascii_only: bool
) -> None:
    target = document
    for step in path:
        is_there = (
            step in target
            if isinstance(target, dict)
            else isinstance(target, list) and isinstance(step, int) and step < len(target)
        )
        target = target[step] if is_there else None
    data = json.dumps(document, ensure_ascii=ascii_only).encode()
    text = "".join(f"[{json.dumps(step)}]" for step in path) or "."
    assert holds(data, text) is (target is not None and target is not False)
    assert holds(data, f"!{text}") is (target is None or target is False)
    values = [value for value in (target, other) if not isinstance(value, dict | list)]
    meant = [is_meant(target, value) for value in values]
    assert [holds(data, f"{text}={json.dumps(value)}") for value in values] == meant
    assert [not holds(data, f"{text}!={json.dumps(value)}") for value in values] == meant


ODD = [
    *("", "  ", "=3", "!", "!!a", "a..b=1", "a.=1", "a.b.", "tenant.id=", "size> ", "a=>3", "a=~x"),
    *("a=,", "a=1,b=2", "a=John Smith", "a='x'y", "a=5'", 'a="x', "a='x", '"a', "a['b=1"),
    *("a[x]=1", "a[]=1", "a[*]=1", "a[-1]=1", "a[1=2", "a['b'", "kind~", "kind~'a' b"),
    *("tenant.id:3", "a b", "size:100", "!a=3", "a\udcff=1"),
]
WRONG = {
    r'a="\q"': r'not a JSON string: "\q"',
    r'"\ud800"=1': r'not a JSON string: "\ud800"',
    "kind~[a": "--where is not a regular expression: unterminated character set",
    "kind~ x(": "--where is not a regular expression: missing ), unterminated subpattern",
    "kind~'x('": "--where is not a regular expression: missing ), unterminated subpattern",
    "kind~a{1,99999999999}": "--where is not a regular expression: the repetition number is too",
    "a=1e99999999999999999999": "--where: the exponent of 1e99999999999999999999 is too large",
    "a<=-1e-9999999999999999999": "--where: the exponent of -1e-9999999999999999999 is too large",
}


@pytest.mark.parametrize(
    ("text", "reason"), [*((text, f"--where cannot be {text!r}") for text in ODD), *WRONG.items()]
)
def test_an_odd_expression_is_refused_and_shown(text: str, reason: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_condition(text)
    assert caught.value.message.startswith(reason)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["a.[0]=1", "a[1000]=1", "a[" + "9" * 5000 + "]=1"], ids=len)
def test_an_odd_expression_is_taken(text: str) -> None:
    parse_condition(text)


@given(st.text(st.sampled_from("a.[]0\"'=!<>~ ,\\é(")))
def test_any_text_is_a_condition_or_an_error(text: str) -> None:
    with suppress(InvalidArgument):
        Conditions([parse_condition(text)])(DATA)


@pytest.mark.parametrize("function", [indented, json_text, json_error])
def test_no_nesting_is_an_error(function: Callable[[bytes], object]) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert function(deep) in (deep, None)
