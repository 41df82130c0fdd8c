"""Completion of members' names."""
import re

import pytest
from acts import expect, field, row, say, sent


@pytest.fixture
def page(people, service, room):
    service.join(room, "zed", "Zed")
    service.join(room, "ada", "Ada Lovelace")
    service.join(room, "adam", "adam")
    service.join(room, "grace", "Grace Adams")
    return people.enter(room)


def names(page):
    return page.locator(".names li")


def test_an_at_sign_lists_everyone_and_letters_filter_by_rank(page, service, room):
    field(page).press_sequentially("@")
    expect(names(page)).to_have_text(["Ada Lovelace", "adam", "bob", "Grace Adams", "Zed"])
    field(page).press_sequentially("AD")
    expect(names(page)).to_have_text(["Ada Lovelace", "adam", "Grace Adams"])
    field(page).press_sequentially("am")
    expect(names(page)).to_have_text(["adam", "Grace Adams"])
    field(page).fill("hello @a")
    expect(names(page)).to_have_text(["Ada Lovelace", "adam", "Grace Adams"])
    service.post(room, "I spoke last", by="adam")
    expect(row(page, "I spoke last")).to_be_visible()
    field(page).press_sequentially("d")
    expect(names(page)).to_have_text(["adam", "Ada Lovelace", "Grace Adams"])


def test_no_list_in_a_mail_address_or_for_nobody(page):
    field(page).press_sequentially("a@b")
    expect(names(page)).to_have_count(0)
    field(page).fill("@nobody")
    expect(names(page)).to_have_count(0)


@pytest.mark.parametrize("typed,key,becomes", [
    ("@ada l", "Enter", "@ada l"), ("@zed", "Enter", "@Zed: "), ("hi @zed", "Tab", "hi @Zed "),
])
def test_accepting(page, typed, key, becomes):
    field(page).press_sequentially(typed)
    if becomes != typed:
        expect(names(page)).to_have_count(1)
        field(page).press(key)
        expect(field(page)).to_have_value(becomes)
        expect(names(page)).to_have_count(0)
        expect(field(page)).to_be_focused()
    else:
        expect(names(page)).to_have_count(0)


def test_arrows_move_and_a_click_accepts(page):
    field(page).press_sequentially("@ad")
    expect(names(page).nth(0)).to_have_attribute("aria-selected", "true")
    field(page).press("ArrowDown")
    expect(names(page).nth(1)).to_have_attribute("aria-selected", "true")
    field(page).press("ArrowUp")
    field(page).press("ArrowUp")
    expect(names(page).nth(2)).to_have_attribute("aria-selected", "true")
    assert field(page).get_attribute("aria-activedescendant") == names(page).nth(2).get_attribute("id")
    names(page).nth(0).click()
    expect(field(page)).to_have_value("@Ada Lovelace: ")


def test_escape_dismisses_for_that_word(page):
    field(page).press_sequentially("@a")
    expect(names(page)).to_have_count(3)
    field(page).press("Escape")
    field(page).press_sequentially("da")
    expect(names(page)).to_have_count(0)
    field(page).press_sequentially(" @z")
    expect(names(page)).to_have_count(1)


def test_joins_and_leaves_apply_at_once(page, service, room):
    field(page).press_sequentially("@")
    expect(names(page)).to_have_count(5)
    service.leave(room, "zed")
    expect(names(page)).to_have_text(["Ada Lovelace", "adam", "bob", "Grace Adams"])
    service.join(room, "carl", "Carl")
    expect(names(page)).to_have_text(["Ada Lovelace", "adam", "bob", "Carl", "Grace Adams"])


def test_who_is_mentioned_is_told_and_marked(page, people, service, room):
    field(page).press_sequentially("@grace")
    expect(names(page)).to_have_count(1)
    field(page).press("Enter")
    field(page).press_sequentially("look")
    field(page).press("Enter")
    sent(page, "@Grace Adams: look")
    assert service.messages(room)[-1]["mentions"] == ["grace"]
    service.post(room, "@bob, @bobby and not@bob")
    expect(page.locator("mark")).to_have_count(1)
    expect(page.locator("mark")).to_have_text("@bob")
    assert re.search("255, 243, 176", page.locator("mark").evaluate("(mark) => getComputedStyle(mark).backgroundColor"))
